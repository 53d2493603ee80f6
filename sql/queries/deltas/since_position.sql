-- Of any tenant: see events/moved_since.
select tenant_id, run_id, step, attempt, text_offset, text, position from run_deltas
where position > $1 order by position limit $2
