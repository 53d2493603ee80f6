-- One commit of a run that is held: see run_commit.
select c.outcome, c.cost_usd, c.totals
from run_commit(
  held => row($1, $2, $3, $4, $5, $6)::held_run,
  at => $7, to_status => $8, kinds => $9, datas => $10,
  ended => row($11, $12, $13, $14)::step_end,
  begun => row($15, $16, $17, $18, $19, $20, $21)::step_begin,
  call => row($22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34::text::numeric, $35::text::numeric,
    $36::text::numeric, $37::text::numeric, $38::text::numeric)::model_call,
  has_text => $39,
  flow => row($40, $41, $42, $43, $44, $45)::flow_progress,
  waits => row($46, $47, $48)::run_wait,
  children => row($49, $50, $51)::children_change,
  ending => row($52, $53, $54, $55, $56, $57, $58, $59, $60)::run_end,
  checks => $61, input_text => $62, input_refused => $63
) c
