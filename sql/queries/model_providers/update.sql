update model_providers
set name = $3, base_url = $4, api_key_name = $5, api_key_environment = $6, api_key_secret = $7, options = $8, updated_at = $9
where tenant_id = $1 and model_provider_id = $2
