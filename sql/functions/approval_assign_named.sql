-- Assigns an approval that this transaction has opened to the person whom its definition names, by id or by an email as emails
-- are matched. The person has to be active and, with `needs_role`, to have the role and to have started neither the run nor one
-- that it retries, since who did decides nothing. Otherwise the approval stays nobody's, and
-- an event of the run says so, whoever holds it: see `run_commit`. The event does not name the person, whom a definition may name
-- by email. Says whether it was assigned. The caller has locked the
-- run's row.
create function approval_assign_named(
  of_tenant_id uuid, of_approval_id uuid, named_id uuid, named_email_key text, needs_role boolean, at timestamptz
) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  opened record;
  told_seq bigint;
begin
  update approvals a set assigned_to = u.user_id
  from users u
  where a.tenant_id = of_tenant_id and a.approval_id = of_approval_id and a.status = 'waiting'
    and u.tenant_id = of_tenant_id and (u.user_id = named_id or u.email_key = named_email_key)
    and u.kind = 'person' and u.deactivated_at is null
    and (not needs_role or u.user_id <> all (run_starters(of_tenant_id => of_tenant_id, of_run_id => a.root_run_id))
      and exists (
        select from reviewers v where v.tenant_id = of_tenant_id and v.user_id = u.user_id and v.role = a.required_role
      ));
  if found then
    insert into approval_log (tenant_id, approval_id, kind, at)
    values (of_tenant_id, of_approval_id, 'assigned', clock_timestamp());
    return true;
  end if;
  select a.run_id, a.step, a.required_role into opened from approvals a
  where a.tenant_id = of_tenant_id and a.approval_id = of_approval_id;
  -- No event follows a run's last.
  update runs r set last_seq = r.last_seq + 1
  where r.tenant_id = of_tenant_id and r.run_id = opened.run_id and r.completed_at is null
  returning r.last_seq into told_seq;
  if found then
    insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
    values (of_tenant_id, opened.run_id, told_seq, 'approval.unassigned', json_build_object('step', opened.step,
      'approvalId', of_approval_id, 'requiredRole', opened.required_role), at);
  end if;
  return false;
end
$$;
