-- The ids lie within minutes of the request's own, so few runs are read. The first one is the root; nothing below it has a request.
select run_id from runs
where tenant_id = $1 and run_id > $3 and run_id < $4 and request_id = $2
order by run_id limit 1
