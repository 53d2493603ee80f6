insert into model_providers (tenant_id, model_provider_id, name, base_url, api_key_name, api_key_environment,
  api_key_secret, options, created_by, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
