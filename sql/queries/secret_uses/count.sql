select count(*) from secret_uses where tenant_id = $1
