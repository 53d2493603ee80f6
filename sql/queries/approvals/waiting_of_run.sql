-- Of what a run waits for, that which expires first.
select approval_id, expires_at from approvals
where tenant_id = $1 and run_id = $2 and status = 'waiting' and expires_at > clock_timestamp()
order by expires_at limit 1
