-- Enqueues unique jobs, one after another in the order given. The caller sorts them by key, so that two batches cannot
-- lock in opposite orders. A job of the same key that waits is locked and returned: no claim can start it before the
-- caller commits, so it sees what the caller did. A job that a claim has just taken does not count, and a new one is
-- added.
CREATE FUNCTION job_enqueue_unique(
    p_queue text[], p_name text[], p_payload text[], p_priority smallint[], p_delay_ms bigint[],
    p_max_attempts integer[], p_key text[], p_key_cap integer[], p_unique_key text[],
    p_fairness_key text[] DEFAULT NULL
) RETURNS TABLE (id bigint, added boolean)
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_id bigint;
    v_added boolean;
    v_run_at timestamptz;
BEGIN
    FOR i IN 1 .. cardinality(p_queue) LOOP
        v_added := false;
        v_run_at := clock_timestamp() + p_delay_ms[i] * interval '1 millisecond';
        SELECT j.id INTO v_id FROM job_jobs j
        WHERE j.queue = p_queue[i] AND j.unique_key = p_unique_key[i] AND j.lease_id IS NULL
        ORDER BY j.id LIMIT 1 FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO job_jobs AS j (queue, name, payload, priority, run_at, max_attempts, key, key_cap, unique_key, unique_held,
                fairness_key)
            VALUES (p_queue[i], p_name[i], p_payload[i]::json, p_priority[i], v_run_at, p_max_attempts[i],
                    p_key[i], p_key_cap[i], p_unique_key[i], p_unique_key[i], p_fairness_key[i])
            ON CONFLICT (queue, unique_held) WHERE unique_held IS NOT NULL DO UPDATE SET unique_held = j.unique_held
            RETURNING j.id, j.xmax = 0 INTO v_id, v_added;
        END IF;
        IF v_added AND p_key[i] IS NOT NULL THEN
            INSERT INTO job_key_moves (queue, key, cap) VALUES (p_queue[i], p_key[i], p_key_cap[i]);
        END IF;
        id := v_id;
        added := v_added;
        RETURN NEXT;
    END LOOP;
END $$;
