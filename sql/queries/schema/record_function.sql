insert into agent_runtime_functions (name, definition) values ($1, $2)
on conflict (name) do update set definition = excluded.definition
