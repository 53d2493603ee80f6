-- Decides an approval that still waits, and makes the run that waits for it due. `became`:
-- - decided
-- - closed: it does not wait any more, or its time is over.
-- - role-lost: with `needs_role`, the reviewer does not have the role that it requires.
-- - unknown: there is none.
--
-- Locks the run's row before the approval's (`locks-from-root-to-leaf`). So a run that is about to wait sees the decision, or
-- is seen waiting here (`no-lost-wake-up`). PostgreSQL's clock alone says whether its time is over.
create function approval_decide(
  of_tenant_id uuid, of_approval_id uuid, to_status text, by_user_id uuid, by_token_id uuid, needs_role boolean, said text,
  arguments_given json, answer_given json, out became text, out of_run_id uuid
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  run record;
  stood record;
begin
  select a.run_id into of_run_id from approvals a where a.tenant_id = of_tenant_id and a.approval_id = of_approval_id;
  if not found then
    became := 'unknown';
    return;
  end if;
  select r.status, r.waiting_for, r.job_id into run from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id for no key update;
  select a.status, a.required_role, a.expires_at <= clock_timestamp() as is_over into stood from approvals a
  where a.tenant_id = of_tenant_id and a.approval_id = of_approval_id for no key update;
  if stood.status <> 'waiting' or stood.is_over then
    became := 'closed';
    return;
  end if;
  if needs_role then
    -- Whoever takes the role away or ends the person waits for the decision, or is seen here.
    perform 1 from reviewers v join users u on u.tenant_id = v.tenant_id and u.user_id = v.user_id
    where v.tenant_id = of_tenant_id and v.user_id = by_user_id and v.role = stood.required_role and u.deactivated_at is null
    for share of v, u;
    if not found then
      became := 'role-lost';
      return;
    end if;
  end if;
  became := 'decided';
  update approvals a set status = to_status, closed_at = clock_timestamp(), decided_by = by_user_id, comment = said
  where a.tenant_id = of_tenant_id and a.approval_id = of_approval_id and a.status = 'waiting';
  insert into approval_log (tenant_id, approval_id, kind, user_id, token_id, at)
  values (of_tenant_id, of_approval_id, to_status, by_user_id, by_token_id, clock_timestamp());
  if arguments_given is not null or answer_given is not null then
    update approval_subjects s set edited_arguments = arguments_given, answer = answer_given
    where s.tenant_id = of_tenant_id and s.approval_id = of_approval_id;
  end if;
  if run.status = 'waiting' and run.waiting_for = 'approval' then
    perform job_run_now(p_id => run.job_id);
  end if;
end
$$;
