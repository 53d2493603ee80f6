-- What the newest event of a step says, of those up to $3.
select kind, (data->>'step')::integer as step, (data->>'attempt')::integer as attempt from run_events
where tenant_id = $1 and run_id = $2 and seq <= $3 and kind like 'step.%' order by seq desc limit 1
