-- The tools that a version of a flow names, under its names for them.
select coalesce(json_agg(tool_definition(of_tool => t, called => w.name)), '[]') as tools
from unnest($2::text[], $3::uuid[]) w (name, id)
join tools t on t.tenant_id = $1 and t.tool_id = w.id
