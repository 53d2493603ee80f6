insert into models (tenant_id, model_provider_id, name, prompt_price, completion_price, cache_read_price,
  cache_write_price, reasoning_price, context_window)
select $1, $2, given.name, (given.prices ->> 'prompt')::numeric, (given.prices ->> 'completion')::numeric,
  (given.prices ->> 'cacheRead')::numeric, (given.prices ->> 'cacheWrite')::numeric,
  (given.prices ->> 'reasoning')::numeric, given."contextWindow"
from jsonb_to_recordset($3::jsonb) as given (name text, "contextWindow" integer, prices jsonb)
on conflict (tenant_id, model_provider_id, name) do update
set prompt_price = excluded.prompt_price, completion_price = excluded.completion_price,
  cache_read_price = excluded.cache_read_price, cache_write_price = excluded.cache_write_price,
  reasoning_price = excluded.reasoning_price, context_window = excluded.context_window
