select 1
from model_providers
where tenant_id = $1 and model_provider_id = $2
for update
