-- A run that failed before its first step has an error alone. Old programs wrote JSON nulls beside it.
select format, frames, data, context, tasks, slots from flow_states
where tenant_id = $1 and run_id = $2 and format is not null and frames::text <> 'null'
