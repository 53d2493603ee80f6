select tenant_id, store_id, model_id, model_version, model_digest
from authz_stores
order by tenant_id
limit $1
