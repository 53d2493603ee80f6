update model_providers
set name = $3, base_url = $4, api_key_name = $5, updated_at = $6
where tenant_id = $1 and model_provider_id = $2
