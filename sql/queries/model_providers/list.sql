select p.model_provider_id, p.name, p.base_url, p.api_key_name, p.api_key_environment, p.api_key_secret, p.options, p.created_by,
  p.created_at, p.updated_at,
  (select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('name', m.name, 'contextWindow', m.context_window, 'prices', jsonb_build_object(
      'prompt', m.prompt_price, 'completion', m.completion_price, 'cacheRead', m.cache_read_price,
      'cacheWrite', m.cache_write_price, 'reasoning', m.reasoning_price))) order by m.name), '[]')
    from models m
    where m.tenant_id = p.tenant_id and m.model_provider_id = p.model_provider_id) as models
from model_providers p
where p.tenant_id = $1
  and ($2::uuid is null or p.model_provider_id {{>|<}} $2)
order by p.model_provider_id {{asc|desc}}
limit $3
