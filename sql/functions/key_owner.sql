-- What the owner of a key is: whether they are an admin of the tenant, and their highest role beside that on an org, a team,
-- or a project and what lies in it. A member key may do what the second allows (`authz::check`).
create function key_owner(
  of_tenant_id uuid, of_user_id uuid, of_kind text, of_id uuid
) returns table (is_tenant_admin boolean, other_role text)
language sql stable as $$
  select
    exists (
      select from users u
      where u.tenant_id = of_tenant_id and u.user_id = of_user_id
        and u.tenant_role = 'admin' and u.deactivated_at is null
    ),
    case of_kind
      when 'org' then (
        select 'admin' from org_admins a
        where a.tenant_id = of_tenant_id and a.org_id = of_id and a.user_id = of_user_id
      )
      when 'team' then (
        select m.role from team_memberships m
        where m.tenant_id = of_tenant_id and m.team_id = of_id and m.user_id = of_user_id
      )
      else (
        select w.role from project_ways w
        where w.tenant_id = of_tenant_id and w.project_id = of_id and w.user_id = of_user_id
        order by array_position(array['owner', 'admin', 'editor', 'viewer'], w.role)
        limit 1
      )
    end
$$;
