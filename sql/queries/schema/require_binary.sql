insert into agent_runtime_requirements (oldest_binary) values ($1)
on conflict (only_row) do update set oldest_binary = excluded.oldest_binary
