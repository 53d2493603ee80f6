-- What the arguments of the tool call that an approval is about have to fit.
select t.arguments_schema
from approvals a
join tools t on t.tenant_id = a.tenant_id and t.tool_id = a.tool_id
where a.tenant_id = $1 and a.approval_id = $2
