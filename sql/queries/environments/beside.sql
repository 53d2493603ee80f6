-- What stands beside a name of an environment, whatever the case of its letters: a variable, a secret, the bytes of the other
-- variables, and how many variables the tenant has.
select
  (select v.name from environment_variables v
    where v.tenant_id = $1 and v.environment = $2 and lower(v.name collate "C") = lower($3::text collate "C")) as variable,
  (select s.name from secrets s
    where s.tenant_id = $1 and s.environment = $2 and lower(s.name collate "C") = lower($3::text collate "C")
    order by s.name <> $3 limit 1) as secret,
  (select coalesce(sum(octet_length(v.name) + octet_length(v.value)), 0)::bigint from environment_variables v
    where v.tenant_id = $1 and v.environment = $2 and v.name <> $3) as other_bytes,
  (select count(*) from environment_variables v where v.tenant_id = $1) as count
