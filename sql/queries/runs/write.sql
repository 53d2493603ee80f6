-- One movement of a run that is held. False: it is not written. With a job, null: nor is it, since a webhook may be due.
select run_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
  $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34::text::numeric, $35::text::numeric, $36::text::numeric,
  $37::text::numeric, $38::text::numeric, $39, $40, $41, $42)
