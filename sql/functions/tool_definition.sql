-- A tool as runs read it, under the name by which it is called there.
-- One expression, so that PostgreSQL inlines it into the statement that calls it. A target that is no HTTP server is what
-- `tool_child` knows, which raises for any other.
create function tool_definition(of_tool tools, called text) returns json
language sql stable parallel safe as $$
  select json_build_object('id', of_tool.tool_id, 'name', called, 'description', of_tool.description,
    'argumentsSchema', of_tool.arguments_schema, 'approval', of_tool.approval,
    'target', case of_tool.target
      when 'http' then json_build_object('kind', 'http', 'url', of_tool.url, 'timeoutMs', of_tool.timeout_ms,
        'idempotent', of_tool.idempotent, 'dryRun', of_tool.dry_run, 'headers', of_tool.secret_headers,
        'signingSecret', of_tool.signing_secret)
      else json_build_object('kind', of_tool.target, 'runs', tool_child(of_tool => of_tool)) end)
$$;
