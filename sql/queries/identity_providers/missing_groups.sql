select identity_provider_id, groups_absent_at as absent_at, groups_left_out_at as left_out_at
from identity_providers
where tenant_id = $1 and identity_provider_id = any ($2)
