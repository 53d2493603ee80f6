select s.version as stands, v.version, v.format, v.nonce, v.ciphertext, v.wrapping_key, v.wrapped_data_key, v.created_by,
  v.created_at
from secrets s
left join secret_versions v
  on v.tenant_id = s.tenant_id and v.environment = s.environment and v.name = s.name
where s.tenant_id = $1 and s.environment = $2 and s.name = $3
order by v.version desc
