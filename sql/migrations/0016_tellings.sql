-- Which of the tellings to the authorization server was a tenant's last: of two readings that find the same, none was noted as
-- told in between. The database itself draws it, so that programs from before it do so too. It is drawn and not
-- counted: a number could come a second time, after a failover that lost commits or a restore.

-- A table of its own, written last by whoever tells an object: they all hold a share of the tenant's row in authz_stores by
-- then, and would wait for each other's.
create table authz_tellings (
  tenant_id uuid primary key references tenants,
  telling uuid not null
) with (fillfactor = 70);

create function authz_note_telling() returns trigger
language plpgsql as $$
begin
  insert into authz_tellings (tenant_id, telling) values (old.tenant_id, gen_random_uuid())
  on conflict (tenant_id) do update set telling = excluded.telling;
  return null;
end
$$;

-- An object is told by setting what is applied, one that is gone by the end of its row. Marking does neither.
create trigger authz_objects_told after update of applied or delete on authz_objects
  for each row execute function authz_note_telling();
