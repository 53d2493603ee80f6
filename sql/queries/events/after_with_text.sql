-- As events/after, and what the run has streamed of the step that is under way, its reasoning before its text, as of the same
-- moment.
select seq, kind, data, created_at, more, null::integer as step, null::integer as attempt, null::integer as text_offset,
  null::text as text, null::boolean as is_reasoning
from run_events_after(of_tenant_id => $1, of_run_id => $2, after_seq => $3, max_events => $4, max_bytes => $5)
union all
(select null, null, null, null, null, step, attempt, text_offset, text, true from run_reasoning
where tenant_id = $1 and run_id = $2 order by step, attempt, text_offset)
union all
(select null, null, null, null, null, step, attempt, text_offset, text, false from run_deltas
where tenant_id = $1 and run_id = $2 order by step, attempt, text_offset)
