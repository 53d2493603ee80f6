-- A page of the projects into which the user has a way (those of `project_ways`), after one or from the first. It costs the
-- same for a user who may read a hundred thousand projects as for one who may read a hundred:
--
-- - Each way is read no further than the page may need, and of `projects` only the rows on the page. Their `limit 1` keeps
--   the planner from scanning all of them.
-- - Each way names its first project twice. The pair leads the index by user, team or organization. Without it, where one
--   user or team has nearly all projects, the planner takes the primary key to be as good and scans the whole tenant. The
--   bound by itself is where a later page enters the index.
-- - The plan is generic: for a limit that it does not know the planner assumes a tenth of all rows, and so would plan each
--   page anew.
create function readable_projects(
  of_tenant_id uuid, of_user_id uuid, after uuid, most bigint, newest_first boolean
) returns table (project_id uuid, name text, created_by uuid, created_at timestamptz, updated_at timestamptz)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  start uuid := coalesce(after, case when newest_first
    then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else '00000000-0000-0000-0000-000000000000' end::uuid);
begin
  if not exists (
    select from users u
    where u.tenant_id = of_tenant_id and u.user_id = of_user_id and u.deactivated_at is null
  ) then
    return;
  end if;
  if newest_first then
    return query
    select p.project_id, p.name, p.created_by, p.created_at, p.updated_at
    from (
      select way.project_id from (
        (
          select m.project_id from project_memberships m
          where m.tenant_id = of_tenant_id and m.user_id = of_user_id and m.project_id < start
            and (m.user_id, m.project_id) < (of_user_id, start)
          order by m.project_id desc limit most
        )
        union all
        (
          select d.project_id from project_direct_roles d
          where d.tenant_id = of_tenant_id and d.user_id = of_user_id and d.project_id < start
            and (d.user_id, d.project_id) < (of_user_id, start)
          order by d.project_id desc limit most
        )
        union all
        select owned.project_id
        from org_admins a
        cross join lateral (
          select o.project_id from projects o
          where o.tenant_id = of_tenant_id and o.org_id = a.org_id and o.project_id < start
            and (o.org_id, o.project_id) < (a.org_id, start)
          order by o.project_id desc limit most
        ) owned
        where a.tenant_id = of_tenant_id and a.user_id = of_user_id
        union all
        select granted.project_id
        from team_memberships t
        cross join lateral (
          select g.project_id from team_grants g
          where g.tenant_id = of_tenant_id and g.team_id = t.team_id and g.project_id < start
            and (g.team_id, g.project_id) < (t.team_id, start)
          order by g.project_id desc limit most
        ) granted
        where t.tenant_id = of_tenant_id and t.user_id = of_user_id
      ) way
      group by way.project_id
      order by way.project_id desc limit most
    ) readable
    cross join lateral (
      select * from projects one
      where one.tenant_id = of_tenant_id and one.project_id = readable.project_id limit 1
    ) p
    order by p.project_id desc;
  else
    return query
    select p.project_id, p.name, p.created_by, p.created_at, p.updated_at
    from (
      select way.project_id from (
        (
          select m.project_id from project_memberships m
          where m.tenant_id = of_tenant_id and m.user_id = of_user_id and m.project_id > start
            and (m.user_id, m.project_id) > (of_user_id, start)
          order by m.project_id asc limit most
        )
        union all
        (
          select d.project_id from project_direct_roles d
          where d.tenant_id = of_tenant_id and d.user_id = of_user_id and d.project_id > start
            and (d.user_id, d.project_id) > (of_user_id, start)
          order by d.project_id asc limit most
        )
        union all
        select owned.project_id
        from org_admins a
        cross join lateral (
          select o.project_id from projects o
          where o.tenant_id = of_tenant_id and o.org_id = a.org_id and o.project_id > start
            and (o.org_id, o.project_id) > (a.org_id, start)
          order by o.project_id asc limit most
        ) owned
        where a.tenant_id = of_tenant_id and a.user_id = of_user_id
        union all
        select granted.project_id
        from team_memberships t
        cross join lateral (
          select g.project_id from team_grants g
          where g.tenant_id = of_tenant_id and g.team_id = t.team_id and g.project_id > start
            and (g.team_id, g.project_id) > (t.team_id, start)
          order by g.project_id asc limit most
        ) granted
        where t.tenant_id = of_tenant_id and t.user_id = of_user_id
      ) way
      group by way.project_id
      order by way.project_id asc limit most
    ) readable
    cross join lateral (
      select * from projects one
      where one.tenant_id = of_tenant_id and one.project_id = readable.project_id limit 1
    ) p
    order by p.project_id asc;
  end if;
end
$$;
