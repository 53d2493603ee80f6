-- Closes an approval that still waits and opens another one in its place, for another role, with the same deadline. Without a
-- user, only one whose time to be escalated has come. An approval that was escalated before is left alone: there is one level.
-- Says whether it was done. The run that waits for it needs no waking: the new approval waits as the old one did. Readers of
-- the run are told here, whoever holds it: see `run_commit`.
--
-- Locks the run's row first (`locks-from-root-to-leaf`), so that the run's end finds one of the two and voids it.
create function approval_escalate(
  of_tenant_id uuid, of_approval_id uuid, new_approval_id uuid, to_role text, to_user_id uuid, by_user_id uuid,
  by_token_id uuid, said text, at timestamptz default clock_timestamp()
) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  old approvals;
  told_seq bigint;
begin
  select a.* into old from approvals a where a.tenant_id = of_tenant_id and a.approval_id = of_approval_id;
  if not found then
    return false;
  end if;
  perform from runs r where r.tenant_id = of_tenant_id and r.run_id = old.run_id for no key update;
  update approvals a set status = 'escalated', closed_at = clock_timestamp(), escalated_to = new_approval_id,
    decided_by = by_user_id, comment = said
  where a.tenant_id = of_tenant_id and a.approval_id = of_approval_id and a.status = 'waiting'
    and a.expires_at > clock_timestamp() and a.escalated_from is null
    and (by_user_id is not null or a.escalate_at <= clock_timestamp());
  if not found then
    return false;
  end if;
  insert into approvals (tenant_id, approval_id, project_id, run_id, root_run_id, step, path, source, required_role, title,
    status, requested_by, assigned_to, created_at, expires_at, escalated_from, subject_digest, tool_id)
  values (of_tenant_id, new_approval_id, old.project_id, old.run_id, old.root_run_id, old.step, old.path, old.source, to_role,
    old.title, 'waiting', old.requested_by, to_user_id, clock_timestamp(), old.expires_at, of_approval_id, old.subject_digest,
    old.tool_id);
  insert into approval_subjects (tenant_id, approval_id, run_id, context, tool, arguments, form, earlier_call)
  select s.tenant_id, new_approval_id, s.run_id, s.context, s.tool, s.arguments, s.form, s.earlier_call
  from approval_subjects s
  where s.tenant_id = of_tenant_id and s.approval_id = of_approval_id;
  insert into approval_log (tenant_id, approval_id, kind, user_id, token_id, at)
  values (of_tenant_id, of_approval_id, 'escalated', by_user_id, by_token_id, clock_timestamp()),
    (of_tenant_id, new_approval_id, 'opened', by_user_id, by_token_id, clock_timestamp());
  -- No event follows a run's last.
  update runs r set last_seq = r.last_seq + 1
  where r.tenant_id = of_tenant_id and r.run_id = old.run_id and r.completed_at is null
  returning r.last_seq into told_seq;
  if found then
    insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
    values (of_tenant_id, old.run_id, told_seq, 'approval.escalated', json_build_object('step', old.step,
      'approvalId', of_approval_id, 'to', new_approval_id, 'requiredRole', to_role), at);
  end if;
  return true;
end
$$;
