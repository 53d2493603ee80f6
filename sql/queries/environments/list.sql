-- The environments that a variable, a secret or the setting names.
select named.environment
from (
  select environment from environment_variables where tenant_id = $1
  union
  select environment from secrets where tenant_id = $1
  union
  select $2::text where $2 is not null
) named
where $3::text is null or named.environment collate "C" > $3 collate "C"
order by named.environment collate "C"
limit $4
