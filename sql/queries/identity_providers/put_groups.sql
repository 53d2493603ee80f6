insert into identity_provider_groups (tenant_id, identity_provider_id, group_name, team_id, role)
select $1, $2, given."group", given."teamId", given.role
from jsonb_to_recordset($3::jsonb) as given ("group" text, "teamId" uuid, role text)
