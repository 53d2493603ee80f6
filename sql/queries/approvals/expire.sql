with expired as (
  update approvals set status = 'expired', closed_at = clock_timestamp()
  where tenant_id = $1 and approval_id = $2 and status = 'waiting' and expires_at <= clock_timestamp()
  returning closed_at
)
insert into approval_log (tenant_id, approval_id, kind, at)
select $1, $2, 'expired', closed_at from expired
