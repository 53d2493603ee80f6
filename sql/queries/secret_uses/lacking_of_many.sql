-- Which of these have no use, by their places in the list.
select needed.place
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) with ordinality needed (tenant_id, project_id, name, target, place)
where not exists (
  select from secret_uses u
  where u.tenant_id = needed.tenant_id and u.name = needed.name and u.target = needed.target
    and (u.project_id = needed.project_id or u.project_id is null))
order by needed.place
