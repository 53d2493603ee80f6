-- As `webhook_emit`, for a caller that has room for an attempt. Where the event is for one healthy endpoint that is not in
-- `not_to`, the delivery's job is under a lease of the caller from the beginning, and what the attempt begins with is
-- answered: its POST waits for nothing but the commit. No `lease_id`: the delivery waits. The share lock of the endpoint's
-- row is held until the lease is committed. An endpoint that is being changed at this moment is not waited for.
create function webhook_tell(
  of_tenant_id uuid, of_type text, of_project_id uuid, of_flow_id text, is_dry_run boolean,
  of_event_id uuid, of_body text, of_run_id uuid, at timestamptz, delivery_ids uuid[], cap_well integer,
  of_queue text, of_job_name text, of_max_attempts integer, of_worker text, lease_ms bigint, not_to uuid[],
  out matched integer, out endpoint_id uuid, out job_id bigint, out lease_id bigint, out payload text, out url text,
  out secret_environment text, out secret_name text, out previous_environment text, out previous_name text,
  out stands integer, out versions integer[], out formats smallint[], out nonces bytea[], out ciphertexts bytea[],
  out wrapping_keys text[], out wrapped_data_keys bytea[], out created_by uuid[], out created_at timestamptz[]
)
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  endpoint_ids uuid[];
  is_well boolean;
begin
  select array_agg(e.endpoint_id), bool_and(c.last_delivered_at is not null and not (c.is_failing or c.is_slow))
  into endpoint_ids, is_well
  from webhook_endpoints e
    left join webhook_endpoint_counts c on c.tenant_id = e.tenant_id and c.endpoint_id = e.endpoint_id
  where e.tenant_id = of_tenant_id and e.unregistered_at is null and of_type = any (e.events)
    and (e.project_id is null or e.project_id = of_project_id)
    and (of_type <> 'run.finished' or not e.has_filter
      or ((e.flow_ids is null or of_flow_id = any (e.flow_ids)) and (not is_dry_run or e.include_dry_runs is true)));
  if is_well and cardinality(endpoint_ids) = 1 and cardinality(delivery_ids) > 0 and endpoint_ids[1] <> all (not_to) then
    select r.endpoint_id, r.url, r.secret_environment, r.secret_name, r.previous_environment, r.previous_name, s.version,
      v.versions, v.formats, v.nonces, v.ciphertexts, v.wrapping_keys, v.wrapped_data_keys, v.created_by, v.created_at
    into endpoint_id, url, secret_environment, secret_name, previous_environment, previous_name, stands,
      versions, formats, nonces, ciphertexts, wrapping_keys, wrapped_data_keys, created_by, created_at
    from (
      select e.endpoint_id, e.url, e.secret_environment, e.secret_name,
        case when e.previous_until > at then e.previous_environment end as previous_environment,
        case when e.previous_until > at then e.previous_name end as previous_name
      from webhook_endpoints e
      where e.tenant_id = of_tenant_id and e.endpoint_id = endpoint_ids[1] and e.unregistered_at is null
      for share skip locked
    ) r
      left join secrets s on s.tenant_id = of_tenant_id and s.environment = r.secret_environment and s.name = r.secret_name
      cross join lateral (
        select array_agg(v.version) as versions, array_agg(v.format) as formats, array_agg(v.nonce) as nonces,
          array_agg(v.ciphertext) as ciphertexts, array_agg(v.wrapping_key) as wrapping_keys,
          array_agg(v.wrapped_data_key) as wrapped_data_keys, array_agg(v.created_by) as created_by,
          array_agg(v.created_at) as created_at
        from (
          select v.* from secret_versions v
          where v.tenant_id = of_tenant_id and v.environment = r.secret_environment and v.name = r.secret_name
          order by v.version desc
        ) v
      ) v;
  end if;
  if endpoint_id is null then
    matched := webhook_emit(of_tenant_id, of_type, of_project_id, of_flow_id, is_dry_run, of_event_id, of_body, of_run_id,
      at, delivery_ids, cap_well, of_queue, of_job_name, of_max_attempts);
    return;
  end if;
  matched := 1;
  payload := json_build_object('tenantId', of_tenant_id, 'endpointId', endpoint_id, 'deliveryId', delivery_ids[1]);
  select c.id, c.lease_id into job_id, lease_id
  from job_enqueue_claimed(of_queue, of_job_name, payload, of_max_attempts, endpoint_id::text, cap_well, of_worker,
    lease_ms) c;
  insert into webhook_events (tenant_id, event_id, type, body, run_id, created_at)
  values (of_tenant_id, of_event_id, of_type, of_body, of_run_id, at);
  insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at,
    job_id, created_at)
  values (of_tenant_id, delivery_ids[1], endpoint_id, of_event_id, of_type, of_run_id, 'being-sent', now(), job_id, at);
end $$;
