select step, attempt, text_offset, text, position from run_deltas
where tenant_id = $1 and run_id = $2 order by step, attempt, text_offset
