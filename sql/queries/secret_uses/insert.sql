insert into secret_uses (tenant_id, secret_use_id, name, project_id, target, created_by, created_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict do nothing
returning secret_use_id, name, project_id, target, created_by, created_at
