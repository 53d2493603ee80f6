delete from tokens where digest = $1 and seed and revoked_at is null
