select count(*) from secrets where tenant_id = $1
