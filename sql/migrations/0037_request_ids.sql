-- Decisions and runs by the request that a user reports.
create index audit_decisions_request on audit_decisions (tenant_id, request_id, slot, decided_at, position)
  where request_id is not null;
-- Without an index: a run's id says when, and that is within minutes of when the request's id says.
alter table runs add column request_id uuid;
