-- What happened to approvals, in the order of its positions: all of it, for those who tell reviewers, and that of a tenant,
-- for a reviewer who comes back.
create index approval_log_by_position on approval_log (position);
create index approval_log_by_tenant on approval_log (tenant_id, position);
