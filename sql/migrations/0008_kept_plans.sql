-- The function of 0003, in PL/pgSQL, which keeps its plan: one in SQL that cannot be inlined is parsed and planned at
-- every call. What it does is the same.

-- What a call costs in US dollars. Cache tokens are part of the prompt and reasoning tokens part of the
-- completion; a part without a price of its own costs what its whole costs; a count that is not known is
-- not charged. Null when nothing is known, or when tokens that were counted have no price.
create or replace function model_call_cost(
  prompt bigint, completion bigint, cache_read bigint, cache_write bigint, reasoning bigint,
  prompt_price numeric, completion_price numeric, cache_read_price numeric, cache_write_price numeric, reasoning_price numeric
) returns numeric language plpgsql immutable parallel safe as $$
begin
  return (
    select case when coalesce(prompt, completion, cache_read, cache_write, reasoning) is not null then
      sum(case when tokens = 0 then 0 else tokens * price / 1000000 end) filter (where tokens is not null)
        + case when bool_or(tokens > 0 and price is null) then null else 0 end
    end
    from (values
      (greatest(prompt - coalesce(cache_read, 0) - coalesce(cache_write, 0), 0), prompt_price),
      (cache_read, coalesce(cache_read_price, prompt_price)),
      (cache_write, coalesce(cache_write_price, prompt_price)),
      (greatest(completion - coalesce(reasoning, 0), 0), completion_price),
      (reasoning, coalesce(reasoning_price, completion_price))
    ) part (tokens, price)
  );
end
$$;
