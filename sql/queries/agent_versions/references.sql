-- What a version may not refer to: a provider that is not there, a model that the provider has not, tools
-- that are not the project's.
select
  exists (select from model_providers where tenant_id = $1 and model_provider_id = $3) as has_provider,
  exists (select from models where tenant_id = $1 and model_provider_id = $3 and name = $4) as has_model,
  array(select wanted from unnest($5::uuid[]) wanted
    where not exists (select from tools where tenant_id = $1 and project_id = $2 and tool_id = wanted)) as foreign_tools
