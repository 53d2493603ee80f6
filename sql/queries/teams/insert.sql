with team as (
  insert into teams (tenant_id, team_id, name, slug, description, created_by, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $7)
  returning tenant_id, team_id, name, slug, description, created_by, created_at, updated_at
), creator as (
  insert into team_memberships (tenant_id, team_id, user_id, role, joined_at)
  select tenant_id, team_id, created_by, 'admin', created_at from team
)
select team_id, name, slug, description, created_by, created_at, updated_at from team
