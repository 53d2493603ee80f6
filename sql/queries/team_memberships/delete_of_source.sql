delete from team_memberships
where tenant_id = $1 and source_provider_id = $2 and ($3::uuid is null or user_id = $3) and team_id = any ($4::uuid[])
