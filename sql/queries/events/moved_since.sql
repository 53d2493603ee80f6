-- What was written after a position, and at the positions in $2, of any tenant: a reader follows runs that it may read and
-- looks their events up by run.
(select run_id, seq, position from run_events where position > $1 order by position limit $3)
union all
select run_id, seq, position from run_events where position = any ($2)
