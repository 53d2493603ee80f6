-- How many are open in all tenants, for the operator's metrics.
select count(*) from open_sessions(moment => $1, idle => $2, life => $3, by_token => $4, by_console => $5)
