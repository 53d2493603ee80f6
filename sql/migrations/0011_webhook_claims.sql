-- The first thing that an attempt at a delivery needs is done where its job is claimed: the job's lease, the attempt's row
-- and what is to be sent are one statement and one commit for all that are claimed at once.

-- Claims jobs of the queue of webhooks and begins their attempts, as `webhook_begin_attempts` does: a row for each job, and
-- where its attempt began what is to be sent and how, and the versions of the secret that signs as they are stored, the
-- newest first. An endpoint that somebody changes at this moment is not waited for, and one attempt that cannot be written
-- does not keep the others' jobs from being claimed: where no attempt began, the job's holder sees to it alone.
create function webhook_claim_attempts(
  of_queue text, of_worker text, most integer, most_serial integer, lease_ms bigint, keyed_first boolean,
  within_ms bigint, at timestamptz
) returns table (job_id bigint, lease_id bigint, tries integer, max_tries integer, name text, key text, payload text,
  key_cap integer, event_id uuid, attempt integer, body text, url text, secret_environment text, secret_name text,
  previous_environment text, previous_name text, stands integer, versions integer[], formats smallint[], nonces bytea[],
  ciphertexts bytea[], wrapping_keys text[], wrapped_data_keys bytea[], created_by uuid[], created_at timestamptz[])
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  job_ids bigint[];
  lease_ids bigint[];
  all_tries integer[];
  all_max_tries integer[];
  names text[];
  keys text[];
  payloads text[];
  key_caps integer[];
  places bigint[];
  tenant_ids uuid[];
  endpoint_ids uuid[];
  event_ids uuid[];
  attempts integer[];
begin
  select array_agg(c.id), array_agg(c.lease_id), array_agg(c.attempt), array_agg(c.max_attempts), array_agg(c.name),
    array_agg(c.key), array_agg(c.payload), array_agg(c.key_cap)
  into job_ids, lease_ids, all_tries, all_max_tries, names, keys, payloads, key_caps
  from job_claim(of_queue, of_worker, null, most, most_serial, lease_ms, keyed_first) c;
  if job_ids is null then
    -- What was noted of keys is noted again if it is lost.
    perform set_config('synchronous_commit', 'off', true);
    return;
  end if;
  begin
    with wanted as materialized (
      select (p.payload ->> 'tenantId')::uuid as tenant_id, (p.payload ->> 'endpointId')::uuid as endpoint_id,
        (p.payload ->> 'deliveryId')::uuid as delivery_id, p.job_id, p.place
      from (
        select j.payload::json as payload, j.job_id, j.place
        from unnest(job_ids, names, payloads) with ordinality j (job_id, name, payload, place)
        where j.name = 'webhook.deliver'
      ) p
    ), held as materialized (
      select w.tenant_id, w.endpoint_id
      from (select distinct tenant_id, endpoint_id from wanted) w
        cross join lateral (
          select from webhook_endpoints e
          where e.tenant_id = w.tenant_id and e.endpoint_id = w.endpoint_id and e.unregistered_at is null
          for share skip locked
        ) e
    ), waiting as materialized (
      select w.place, w.tenant_id, w.delivery_id, w.endpoint_id, d.event_id, d.attempts + 1 as attempt
      from wanted w
        join held h on h.tenant_id = w.tenant_id and h.endpoint_id = w.endpoint_id
        cross join lateral (
          select d.event_id, d.attempts, d.job_id, d.ended_at from webhook_deliveries d
          where d.tenant_id = w.tenant_id and d.delivery_id = w.delivery_id offset 0
        ) d
        cross join lateral (
          select from webhook_events v where v.tenant_id = w.tenant_id and v.event_id = d.event_id offset 0
        ) v
      where d.ended_at is null and d.job_id = w.job_id
    ), begun as (
      insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ends_by)
      select tenant_id, delivery_id, attempt, endpoint_id, now(), now() + within_ms * interval '1 millisecond' from waiting
      on conflict do nothing
      returning tenant_id, delivery_id
    )
    select array_agg(w.place), array_agg(w.tenant_id), array_agg(w.endpoint_id), array_agg(w.event_id),
      array_agg(w.attempt)
    into places, tenant_ids, endpoint_ids, event_ids, attempts
    from waiting w join begun b on b.tenant_id = w.tenant_id and b.delivery_id = w.delivery_id;
  exception when others then
    places := null;
  end;
  return query
  with begun as materialized (
    select * from unnest(places, tenant_ids, endpoint_ids, event_ids, attempts)
      b (place, tenant_id, endpoint_id, event_id, attempt)
  ), receiver as materialized (
    select t.tenant_id, t.endpoint_id, e.url, e.secret_environment, e.secret_name, e.previous_environment,
      e.previous_name, s.version as stands, v.*
    from (select distinct tenant_id, endpoint_id from begun) t
      cross join lateral (
        select e.url, e.secret_environment, e.secret_name,
          case when e.previous_until > at then e.previous_environment end as previous_environment,
          case when e.previous_until > at then e.previous_name end as previous_name
        from webhook_endpoints e where e.tenant_id = t.tenant_id and e.endpoint_id = t.endpoint_id offset 0
      ) e
      left join lateral (
        select s.version from secrets s
        where s.tenant_id = t.tenant_id and s.environment = e.secret_environment and s.name = e.secret_name offset 0
      ) s on true
      cross join lateral (
        select array_agg(v.version) as versions, array_agg(v.format) as formats, array_agg(v.nonce) as nonces,
          array_agg(v.ciphertext) as ciphertexts, array_agg(v.wrapping_key) as wrapping_keys,
          array_agg(v.wrapped_data_key) as wrapped_data_keys, array_agg(v.created_by) as created_by,
          array_agg(v.created_at) as created_at
        from (
          select v.* from secret_versions v
          where v.tenant_id = t.tenant_id and v.environment = e.secret_environment and v.name = e.secret_name
          order by v.version desc
        ) v
      ) v
  )
  select j.job_id, j.lease_id, j.tries, j.max_tries, j.name, j.key, j.payload, j.key_cap, b.event_id, b.attempt, v.body,
    r.url, r.secret_environment, r.secret_name, r.previous_environment, r.previous_name, r.stands, r.versions, r.formats,
    r.nonces, r.ciphertexts, r.wrapping_keys, r.wrapped_data_keys, r.created_by, r.created_at
  from unnest(job_ids, lease_ids, all_tries, all_max_tries, names, keys, payloads, key_caps)
      with ordinality j (job_id, lease_id, tries, max_tries, name, key, payload, key_cap, place)
    left join begun b on b.place = j.place
    left join receiver r on r.tenant_id = b.tenant_id and r.endpoint_id = b.endpoint_id
    left join lateral (
      select v.body from webhook_events v where v.tenant_id = b.tenant_id and v.event_id = b.event_id offset 0
    ) v on true;
end $$;

-- Tells every endpoint of the tenant that matches of an event (the rules of specification section 6.3; flow and dry run
-- concern runs alone): writes the event, and for each endpoint a delivery with its job, all at once. Says how many there
-- are. With fewer ids than that nothing is written.
create function webhook_emit(
  of_tenant_id uuid, of_type text, of_project_id uuid, of_flow_id text, is_dry_run boolean,
  of_event_id uuid, of_body text, of_run_id uuid, at timestamptz, delivery_ids uuid[], cap_well integer
) returns integer
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  endpoint_ids uuid[];
  caps integer[];
  payloads text[];
  job_ids bigint[];
  matched integer;
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
    return matched;
  end if;
  select array_agg(json_build_object('tenantId', of_tenant_id, 'endpointId', d.endpoint_id, 'deliveryId', d.delivery_id)::text
    order by d.place)
  into payloads
  from unnest(endpoint_ids, delivery_ids[1:matched]) with ordinality d (endpoint_id, delivery_id, place);
  select array_agg(j.id order by j.id) into job_ids
  from job_enqueue(array_fill('webhooks'::text, array[matched]), array_fill('webhook.deliver'::text, array[matched]),
    payloads, array_fill(1::smallint, array[matched]), array_fill(0::bigint, array[matched]),
    array_fill(1000000, array[matched]), endpoint_ids::text[], caps) j (id);
  insert into webhook_events (tenant_id, event_id, type, body, run_id, created_at)
  values (of_tenant_id, of_event_id, of_type, of_body, of_run_id, at);
  insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at,
    job_id, created_at)
  select of_tenant_id, d.delivery_id, d.endpoint_id, of_event_id, of_type, of_run_id, 'being-sent', now(), d.job_id, at
  from unnest(delivery_ids[1:matched], endpoint_ids, job_ids) d (delivery_id, endpoint_id, job_id);
  return matched;
end $$;
