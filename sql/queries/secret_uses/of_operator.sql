select u.tenant_id, u.name, u.target,
  exists (select from secrets s where s.tenant_id = u.tenant_id and s.environment = $1::text and s.name = u.name) as is_stored
from secret_uses u
order by u.secret_use_id desc
limit $2
