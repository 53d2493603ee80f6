select id
from flows
where tenant_id = $1 and flow_id = $2 and ($3::uuid is null or project_id = $3)
order by id
limit 2
