insert into tokens (tenant_id, token_id, user_id, name, digest, last_four, seed, created_at)
values ($1, $2, $3, $4, $5, $6, true, $7)
on conflict (tenant_id) where seed do update
set digest = excluded.digest,
    last_four = excluded.last_four,
    user_id = excluded.user_id,
    name = excluded.name,
    revoked_at = null
where tokens.digest <> excluded.digest
   or tokens.user_id <> excluded.user_id
   or tokens.revoked_at is not null
