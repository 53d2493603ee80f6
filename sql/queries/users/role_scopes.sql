select 'org' as kind, org_id as id from org_admins where tenant_id = $1 and user_id = $2
union
select 'team', team_id from team_memberships where tenant_id = $1 and user_id = $2
union
select 'project', project_id from project_memberships where tenant_id = $1 and user_id = $2
union
select 'project', project_id from project_direct_roles where tenant_id = $1 and user_id = $2
