-- One commit of a run that is held: see run_write. Beside what became of it: what its model call cost, and the run's totals
-- where the run ends with it.
select w.outcome,
  model_call_cost(prompt => $30, completion => $31, cache_read => $32, cache_write => $33, reasoning => $34,
    prompt_price => $35::text::numeric, completion_price => $36::text::numeric, cache_read_price => $37::text::numeric,
    cache_write_price => $38::text::numeric, reasoning_price => $39::text::numeric)::float8 as cost_usd,
  case when $6 in ('completed', 'failed', 'cancelled') and w.outcome in ('written', 'repeated')
    then run_totals(of_tenant_id => $1, of_run_id => $2) end as totals
from (select run_write(
  of_tenant_id => $1, of_run_id => $2, of_epoch => $3, events_before => $4, at => $5, to_status => $6, kinds => $7,
  datas => $8, ended_step => $9, ended_status => $10, ended_result => $11, ended_failures => $12, begun_step => $13,
  begun_kind => $14, begun_name => $15, begun_path => $16, begun_attempt => $17, begun_failures => $18,
  begun_request => $19, failure_said => $20, output_given => $21, message_said => $22, has_text => $23,
  call_step => $24, call_attempt => $25, call_provider_id => $26, call_model => $27, call_outcome => $28,
  call_failure => $29, prompt => $30, completion => $31, cache_read => $32, cache_write => $33, reasoning => $34,
  price_prompt => $35::text::numeric, price_completion => $36::text::numeric, price_cache_read => $37::text::numeric,
  price_cache_write => $38::text::numeric, price_reasoning => $39::text::numeric, call_started_at => $40,
  waits_for => $41, wakes_at => $42, taken_slots => $43, takes_all => $44, spawns => $45, of_job_id => $46,
  of_lease_id => $47, is_announced => $48,
  flow_format => $49, flow_frames => $50, flow_data => $51, flow_context => $52, flow_tasks => $53, flow_slots => $54,
  awaited_approval_id => $55, flow_error => $56, of_parent_run_id => $57, of_parent_slot => $58,
  of_attempts_before => $59, of_root_run_id => $60
) as outcome) w
