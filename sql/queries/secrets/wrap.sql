update secret_versions
set wrapping_key = $6, wrapped_data_key = $7, wrapped_at = $8
where tenant_id = $1 and environment = $2 and name = $3 and version = $4 and wrapped_data_key = $5
