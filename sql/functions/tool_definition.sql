-- A tool as runs read it, under the name by which it is called there.
-- One expression, so that PostgreSQL inlines it into the statement that calls it. A target that is no HTTP server is what
-- `tool_child` knows, which raises for any other.
create function tool_definition(of_tool tools, called text) returns json
language sql stable parallel safe as $$
  select json_build_object('id', of_tool.tool_id, 'name', called, 'description', of_tool.description, 'target', of_tool.target,
    'url', of_tool.url, 'argumentsSchema', of_tool.arguments_schema, 'timeoutMs', of_tool.timeout_ms,
    'idempotent', of_tool.idempotent, 'headers', of_tool.secret_headers, 'signingSecret', of_tool.signing_secret,
    'approval', of_tool.approval, 'dryRun', of_tool.dry_run, 'child', case when of_tool.target <> 'http' then tool_child(of_tool => of_tool) end)
$$;
