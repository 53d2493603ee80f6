select wanted.token_id
from unnest($2::uuid[]) wanted (token_id)
where not exists (
  select from tokens
  where tokens.tenant_id = $1 and tokens.token_id = wanted.token_id and tokens.revoked_at is null
)
