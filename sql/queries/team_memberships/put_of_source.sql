-- What somebody gave meanwhile stays.
insert into team_memberships (tenant_id, team_id, user_id, role, joined_at, source_provider_id)
values ($1, $2, $3, $4, $5, $6)
on conflict (tenant_id, team_id, user_id) do update set role = excluded.role
where team_memberships.source_provider_id = excluded.source_provider_id
