-- Decisions number $2 to before $3 of tenant $1 whose outcome is $6, the first one made at $4 and each $5 microseconds after
-- the one before, by three writers in turn. Ten actors decide a fifth of all, 990 the others; two fifths are about 50,000
-- runs, a tenth about ten runs, a tenth about ten projects, the others about 50,000 agents; one of twenty is denied.
insert into audit_part
  (tenant_id, slot, position, decided_at, outcome, id, actor_subject, action, resource, reason, stage, failing_part,
   duration_us, request_id, trace_id, key_id, route, run_id, client_address)
select $1, 1 + number % 3, 1 + number / 3, at, outcome,
  (substr(id, 1, 14) || '7' || substr(id, 16))::uuid, 'user:' || actor, action, kind || ':' || about, 'by a role', 'model',
  case outcome when 'denied' then 'can_' || action end, 800 + chance % 2000, actor, md5(id), actor, 'GET /v1/' || kind || 's',
  case kind when 'run' then about end, '10.0.0.1'
from generate_series($2::bigint, $3::bigint - 1) as number
cross join lateral (
  select hashint8extended(number, 1) & 9007199254740991 as chance, hashint8extended(number, 2) & 9007199254740991 as other
  offset 0
) as random
cross join lateral (
  select $4::timestamptz + (number - $2) * $5::float8 * interval '1 microsecond' as at,
    md5('actor' || case when chance % 5 = 0 then chance / 5 % 10 else 10 + chance / 5 % 990 end)::uuid as actor,
    case when other % 10 < 5 then 'run' when other % 10 = 5 then 'project' else 'agent' end as kind,
    md5('about' || other % 10 || case when other % 10 in (0, 5) then other / 10 % 10 else other / 10 % 12500 end)::uuid as about,
    case when chance / 7 % 5 = 0 then 'write' else 'read' end as action,
    case when other / 7 % 20 = 0 then 'denied' else 'allowed' end as outcome,
    gen_random_uuid()::text as id
  offset 0
) as drawn
where outcome = $6
