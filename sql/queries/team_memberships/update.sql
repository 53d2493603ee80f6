-- From here on somebody gave it, and no group takes it away.
update team_memberships
set role = $4, source_provider_id = null
where tenant_id = $1 and team_id = $2 and user_id = $3
