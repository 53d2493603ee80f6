-- As events/after, and what the run has streamed of the step that is under way, as of the same moment.
select seq, kind, data, created_at, more, null::integer, null::integer, null::integer, null::text
from run_events_after($1, $2, $3, $4, $5)
union all
(select null, null, null, null, null, step, attempt, text_offset, text from run_deltas
where tenant_id = $1 and run_id = $2 order by step, attempt, text_offset)
