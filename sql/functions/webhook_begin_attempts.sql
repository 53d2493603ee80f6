-- Begins attempts whose jobs were just claimed, under one lease that they do not outlast. Where the server crashed since and
-- lost the lease, none begins.
--
-- A row for each receiver that may be sent to: its URL, how it is signed, the versions of the secret as they are stored, the
-- newest first, and the attempts that begin, by their indexes in the arrays (from 1). A receiver's deliveries are those
-- from `firsts` to `lasts`. Each row is sought by its primary key, whatever the plan, which may have been made while the
-- tables were empty.
--
-- The share lock of an endpoint's row is held until the end, after the lease was committed: an unregistering sees the lease
-- or is seen here. An endpoint that is being changed at this moment is skipped.
create function webhook_begin_attempts(
  of_lease_id bigint, of_tenant_ids uuid[], of_endpoint_ids uuid[], firsts integer[], lasts integer[], of_delivery_ids uuid[],
  of_job_ids bigint[], at timestamptz
) returns table (places integer[], event_ids uuid[], attempts integer[], bodies text[], url text, secret_environment text,
  secret_name text, previous_environment text, previous_name text, stands integer, versions integer[], formats smallint[],
  nonces bytea[], ciphertexts bytea[], wrapping_keys text[], wrapped_data_keys bytea[], created_by uuid[],
  created_at timestamptz[])
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  waits text := 'being-sent';
begin
  if not exists (select from job_leases l where l.id = of_lease_id) then
    return;
  end if;
  return query
  select d.*, e.*, s.version, v.*
  from unnest(of_tenant_ids, of_endpoint_ids, firsts, lasts) r (tenant_id, endpoint_id, first, last)
    cross join lateral (
      select e.url, e.secret_environment, e.secret_name,
        case when e.previous_until > at then e.previous_environment end as previous_environment,
        case when e.previous_until > at then e.previous_name end as previous_name
      from webhook_endpoints e
      where e.tenant_id = r.tenant_id and e.endpoint_id = r.endpoint_id and e.unregistered_at is null
      for share skip locked
    ) e
    left join lateral (
      select s.version from secrets s
      where s.tenant_id = r.tenant_id and s.environment = e.secret_environment and s.name = e.secret_name offset 0
    ) s on true
    cross join lateral (
      select array_agg(v.version), array_agg(v.format), array_agg(v.nonce), array_agg(v.ciphertext),
        array_agg(v.wrapping_key), array_agg(v.wrapped_data_key), array_agg(v.created_by), array_agg(v.created_at)
      from (
        select v.* from secret_versions v
        where v.tenant_id = r.tenant_id and v.environment = e.secret_environment and v.name = e.secret_name
        order by v.version desc
      ) v
    ) v
    cross join lateral (
      select array_agg(j.place), array_agg(d.event_id), array_agg(d.attempts + 1), array_agg(v.body)
      from generate_series(r.first, r.last) j (place)
        cross join lateral (
          select d.event_id, d.attempts, d.job_id from webhook_deliveries d
          where d.tenant_id = r.tenant_id and d.delivery_id = of_delivery_ids[j.place] and d.endpoint_id = r.endpoint_id
            and d.state = waits
          offset 0
        ) d
        cross join lateral (
          select v.body from webhook_events v where v.tenant_id = r.tenant_id and v.event_id = d.event_id offset 0
        ) v
      where d.job_id = of_job_ids[j.place]
    ) d;
end $$;
