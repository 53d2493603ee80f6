select wanted.tenant_id, wanted.token_id
from unnest($1::uuid[], $2::uuid[]) wanted (tenant_id, token_id)
where not exists (
  select from tokens
  where tokens.tenant_id = wanted.tenant_id and tokens.token_id = wanted.token_id and tokens.revoked_at is null
)
