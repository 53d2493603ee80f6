insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ends_by)
values ($1, $2, $3, $4, now(), now() + $5::bigint * interval '1 millisecond')
