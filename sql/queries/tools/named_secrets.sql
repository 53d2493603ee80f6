select t.tenant_id, t.project_id, p.name as project, t.name as tool, t.url, named.secret,
  exists (select from secrets s where s.tenant_id = t.tenant_id and s.environment = $1::text and s.name = named.secret) as is_stored
from tools t
join projects p on p.tenant_id = t.tenant_id and p.project_id = t.project_id
cross join lateral (
  select header ->> 'secret' as secret from json_array_elements(t.secret_headers) header
  union
  select t.signing_secret where t.signing_secret is not null
) named
where t.signing_secret is not null or json_array_length(t.secret_headers) > 0
order by t.tool_id desc, named.secret
limit $2
