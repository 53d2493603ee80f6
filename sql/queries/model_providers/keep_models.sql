delete from models
where tenant_id = $1 and model_provider_id = $2 and name <> all ($3::text[])
