update tokens t
set last_used_at = used.at
from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) used (tenant_id, token_id, at)
where t.tenant_id = used.tenant_id and t.token_id = used.token_id
  and (t.last_used_at is null or t.last_used_at <= used.at - make_interval(secs => $4))
