with project as (
  insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $5)
  returning tenant_id, project_id, name, created_by, created_at, updated_at
), creator as (
  insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
  select tenant_id, project_id, created_by, 'owner', created_at from project
)
select project_id, name, created_by, created_at, updated_at from project
