-- The newest sign-in of each person counts, if the provider was not changed since.
select p.identity_provider_id,
  max(i.last_used_at) filter (where i.groups_fault = 'groups-absent') as absent_at,
  max(i.last_used_at) filter (where i.groups_fault = 'groups-left-out') as left_out_at
from identity_providers p
join identities i on i.tenant_id = p.tenant_id and i.identity_provider_id = p.identity_provider_id
  and i.groups_fault is not null and i.last_used_at >= p.updated_at
join users u on u.tenant_id = i.tenant_id and u.user_id = i.user_id and u.deactivated_at is null
where p.tenant_id = $1 and p.identity_provider_id = any ($2)
group by p.identity_provider_id
