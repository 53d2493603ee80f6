with gone as (
  delete from models where tenant_id = $1 and model_provider_id = $2
)
delete from model_providers
where tenant_id = $1 and model_provider_id = $2
