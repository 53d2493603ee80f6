-- Reports an event to every endpoint of the tenant that matches (flow and dry run concern runs alone): writes the event,
-- and for each endpoint a delivery with its job. Answers how many there are. With fewer ids than that nothing is written.
-- One endpoint, as most often, takes neither arrays nor joins.
create function webhook_emit(
  of_tenant_id uuid, of_type text, of_project_id uuid, of_flow_id text, is_dry_run boolean,
  of_event_id uuid, of_body text, of_run_id uuid, at timestamptz, delivery_ids uuid[], cap_well integer,
  of_queue text, of_job_name text, of_max_attempts integer
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
  insert into webhook_events (tenant_id, event_id, type, body, run_id, created_at)
  values (of_tenant_id, of_event_id, of_type, of_body, of_run_id, at);
  if matched = 1 then
    insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at,
      job_id, created_at)
    values (of_tenant_id, delivery_ids[1], endpoint_ids[1], of_event_id, of_type, of_run_id, 'being-sent', now(),
      job_enqueue_keyed(p_queue => of_queue, p_name => of_job_name, p_payload =>
        json_build_object('tenantId', of_tenant_id, 'endpointId', endpoint_ids[1], 'deliveryId', delivery_ids[1])::text,
        p_priority => 1::smallint, p_max_attempts => of_max_attempts, p_key => endpoint_ids[1]::text, p_key_cap => caps[1]),
      at);
    return matched;
  end if;
  select array_agg(json_build_object('tenantId', of_tenant_id, 'endpointId', d.endpoint_id, 'deliveryId', d.delivery_id)::text
    order by d.place)
  into payloads
  from unnest(endpoint_ids, delivery_ids[1:matched]) with ordinality d (endpoint_id, delivery_id, place);
  select array_agg(j.id order by j.id) into job_ids
  from job_enqueue(p_queue => array_fill(of_queue, array[matched]), p_name => array_fill(of_job_name, array[matched]),
    p_payload => payloads, p_priority => array_fill(1::smallint, array[matched]),
    p_delay_ms => array_fill(0::bigint, array[matched]), p_max_attempts => array_fill(of_max_attempts, array[matched]),
    p_key => endpoint_ids::text[], p_key_cap => caps) j (id);
  insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at,
    job_id, created_at)
  select of_tenant_id, d.delivery_id, d.endpoint_id, of_event_id, of_type, of_run_id, 'being-sent', now(), d.job_id, at
  from unnest(delivery_ids[1:matched], endpoint_ids, job_ids) d (delivery_id, endpoint_id, job_id);
  return matched;
end $$;
