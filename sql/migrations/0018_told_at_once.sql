-- An event for one endpoint that is well, and to which little is under way, begins its attempt where it is emitted: the
-- delivery's job is under a lease of that process from the beginning, and what is to be sent is read with it. So its POST
-- waits for the commit of what is reported and for nothing else.

-- As `webhook_emit` in 0017, which stays for processes of the version before. `matched` says how many endpoints are told; with
-- fewer ids nothing is written. Where the caller has a place for an attempt (`of_worker`), and the one endpoint is none of
-- `not_to`, the rest says what the attempt begins with, as `webhook_claim_deliveries` in 0016 does; else `lease_id` is null.
-- The share of the endpoint's row is held until the lease is committed; one that somebody changes at this moment is not
-- waited for.
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
  caps integer[];
  payloads text[];
  job_ids bigint[];
begin
  select array_agg(e.endpoint_id order by e.endpoint_id),
    array_agg(case when c.last_delivered_at is not null and not (c.is_failing or c.is_slow) then cap_well else 1 end
      order by e.endpoint_id)
  into endpoint_ids, caps
  from webhook_endpoints e
    left join webhook_endpoint_counts c on c.tenant_id = e.tenant_id and c.endpoint_id = e.endpoint_id
  where e.tenant_id = of_tenant_id and e.unregistered_at is null and of_type = any (e.events)
    and (e.project_id is null or e.project_id = of_project_id)
    and (of_type <> 'run.finished' or not e.has_filter
      or ((e.flow_ids is null or of_flow_id = any (e.flow_ids)) and (not is_dry_run or e.include_dry_runs is true)));
  matched := coalesce(cardinality(endpoint_ids), 0);
  if matched = 0 or matched > cardinality(delivery_ids) then
    return;
  end if;
  insert into webhook_events (tenant_id, event_id, type, body, run_id, created_at)
  values (of_tenant_id, of_event_id, of_type, of_body, of_run_id, at);
  if matched = 1 then
    endpoint_id := endpoint_ids[1];
    payload := json_build_object('tenantId', of_tenant_id, 'endpointId', endpoint_id, 'deliveryId', delivery_ids[1]);
    if of_worker is not null and caps[1] > 1 and endpoint_id <> all (not_to) then
      select r.url, r.secret_environment, r.secret_name, r.previous_environment, r.previous_name, s.version,
        v.versions, v.formats, v.nonces, v.ciphertexts, v.wrapping_keys, v.wrapped_data_keys, v.created_by, v.created_at
      into url, secret_environment, secret_name, previous_environment, previous_name, stands,
        versions, formats, nonces, ciphertexts, wrapping_keys, wrapped_data_keys, created_by, created_at
      from (
        select e.url, e.secret_environment, e.secret_name,
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
      if found then
        select c.id, c.lease_id into job_id, lease_id
        from job_enqueue_claimed(of_queue, of_job_name, payload, of_max_attempts, endpoint_id::text, caps[1],
          of_worker, lease_ms) c;
      end if;
    end if;
    if job_id is null then
      job_id := job_enqueue_keyed(of_queue, of_job_name, payload, 1::smallint, of_max_attempts, endpoint_id::text, caps[1]);
    end if;
    insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at,
      job_id, created_at)
    values (of_tenant_id, delivery_ids[1], endpoint_id, of_event_id, of_type, of_run_id, 'being-sent', now(), job_id, at);
    return;
  end if;
  select array_agg(json_build_object('tenantId', of_tenant_id, 'endpointId', d.endpoint_id, 'deliveryId', d.delivery_id)::text
    order by d.place)
  into payloads
  from unnest(endpoint_ids, delivery_ids[1:matched]) with ordinality d (endpoint_id, delivery_id, place);
  select array_agg(j.id order by j.id) into job_ids
  from job_enqueue(array_fill(of_queue, array[matched]), array_fill(of_job_name, array[matched]),
    payloads, array_fill(1::smallint, array[matched]), array_fill(0::bigint, array[matched]),
    array_fill(of_max_attempts, array[matched]), endpoint_ids::text[], caps) j (id);
  insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at,
    job_id, created_at)
  select of_tenant_id, d.delivery_id, d.endpoint_id, of_event_id, of_type, of_run_id, 'being-sent', now(), d.job_id, at
  from unnest(delivery_ids[1:matched], endpoint_ids, job_ids) d (delivery_id, endpoint_id, job_id);
end $$;
