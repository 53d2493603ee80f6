-- Enqueues jobs without a unique key. Ids are drawn in the order given, so ascending ids are that order.
--
-- One job without a key, as most are, takes neither arrays nor joins.
CREATE FUNCTION job_enqueue(
    p_queue text[], p_name text[], p_payload text[], p_priority smallint[], p_delay_ms bigint[],
    p_max_attempts integer[], p_key text[], p_key_cap integer[], p_fairness_key text[] DEFAULT NULL
) RETURNS SETOF bigint
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    IF cardinality(p_queue) = 1 AND p_key[1] IS NULL THEN
        RETURN QUERY
        INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, fairness_key)
        VALUES (p_queue[1], p_name[1], p_payload[1]::json, p_priority[1],
                clock_timestamp() + p_delay_ms[1] * interval '1 millisecond', p_max_attempts[1], p_fairness_key[1])
        RETURNING id;
        RETURN;
    END IF;
    RETURN QUERY
    WITH added AS (
        INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, key, key_cap, fairness_key)
        SELECT queue, name, payload::json, priority, clock_timestamp() + delay_ms * interval '1 millisecond',
               max_attempts, key, key_cap, fairness_key
        FROM unnest(p_queue, p_name, p_payload, p_priority, p_delay_ms, p_max_attempts, p_key, p_key_cap, p_fairness_key)
             WITH ORDINALITY AS i (queue, name, payload, priority, delay_ms, max_attempts, key, key_cap, fairness_key, place)
        ORDER BY place
        RETURNING id, queue, key, key_cap
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, cap)
        SELECT queue, key, (array_agg(key_cap ORDER BY id DESC))[1] FROM added WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM added ORDER BY id;
END
$$;
