-- What a call costs in US dollars. Cache tokens are part of the prompt and reasoning tokens part of the completion. A part
-- without a price of its own costs what its whole costs. A count that is not known is not charged. Null when nothing is
-- known, or when tokens that were counted have no price.
-- One expression, so that PostgreSQL inlines it into the statement that calls it.
create function model_call_cost(
  prompt bigint, completion bigint, cache_read bigint, cache_write bigint, reasoning bigint,
  prompt_price numeric, completion_price numeric, cache_read_price numeric, cache_write_price numeric, reasoning_price numeric
) returns numeric language sql immutable parallel safe as $$
  select case when coalesce(prompt, completion, cache_read, cache_write, reasoning) is not null then (
    case when prompt > coalesce(cache_read, 0) + coalesce(cache_write, 0)
      then (prompt - coalesce(cache_read, 0) - coalesce(cache_write, 0)) * prompt_price else 0 end
    + case when cache_read > 0 then cache_read * coalesce(cache_read_price, prompt_price) else 0 end
    + case when cache_write > 0 then cache_write * coalesce(cache_write_price, prompt_price) else 0 end
    + case when completion > coalesce(reasoning, 0)
      then (completion - coalesce(reasoning, 0)) * completion_price else 0 end
    + case when reasoning > 0 then reasoning * coalesce(reasoning_price, completion_price) else 0 end
  ) / 1000000 end
$$;
