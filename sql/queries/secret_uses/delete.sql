delete from secret_uses
where tenant_id = $1 and secret_use_id = $2
