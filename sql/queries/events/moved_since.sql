-- Which runs moved, of any tenant: a reader follows runs that it may read and looks their events up by run.
select tenant_id, run_id, max(seq), max(position) from (
  select tenant_id, run_id, seq, position from run_events where position > $1 order by position limit $2) recent
group by tenant_id, run_id
