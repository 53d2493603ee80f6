with project as (
  insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at, org_id)
  values ($1, $2, $3, $4, $5, $5, $6)
  returning tenant_id, project_id, name, created_by, created_at, updated_at, archived_at
), creator as (
  -- A project's owner is a person.
  insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
  select p.tenant_id, p.project_id, p.created_by,
    case u.kind when 'person' then 'owner' else 'admin' end, p.created_at
  from project p
  join users u on u.tenant_id = p.tenant_id and u.user_id = p.created_by
)
select project_id, name, created_by, created_at, updated_at, archived_at from project
