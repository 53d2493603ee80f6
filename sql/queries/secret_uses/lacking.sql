-- Which of the names have no use of this target, in the project.
select named.name
from unnest($4::text[]) named (name)
where not exists (
  select from secret_uses u
  where u.tenant_id = $1 and u.name = named.name and u.target = $3 and (u.project_id = $2 or u.project_id is null))
order by named.name
