-- Almost always nothing is unapplied: the partial index is empty, and the other tables are not read.
select s.store_id, s.model_id, s.model_version,
  array(
    select o.object from authz_objects o
    where o.tenant_id = $1 and o.applied < o.desired and (
      o.object = any($2)
      or o.object in (
        select 'org:' || p.org_id from projects p
        where p.tenant_id = $1 and p.project_id = $3 and p.org_id is not null
      )
      or o.object in (
        select 'team:' || g.team_id from team_grants g
        where g.tenant_id = $1 and g.project_id = $3
      )
    )
    order by o.object
  ) as unapplied
from authz_stores s
where s.tenant_id = $1
