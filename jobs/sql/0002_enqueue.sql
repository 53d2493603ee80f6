-- Unique jobs, one after another in the order given (the caller sorts them by key, so that two batches cannot lock in
-- opposite orders). A job of the same key that waits is locked and returned: no claim can start it before the caller
-- commits, so it sees what the caller did. One that a claim has just taken does not count, and a new one is added.
CREATE FUNCTION job_enqueue_unique(
    p_queue text[], p_name text[], p_payload text[], p_priority smallint[], p_delay_ms bigint[],
    p_max_attempts integer[], p_key text[], p_key_cap integer[], p_unique_key text[]
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
            INSERT INTO job_jobs AS j (queue, name, payload, priority, run_at, max_attempts, key, key_cap, unique_key, unique_held)
            VALUES (p_queue[i], p_name[i], p_payload[i]::json, p_priority[i], v_run_at, p_max_attempts[i],
                    p_key[i], p_key_cap[i], p_unique_key[i], p_unique_key[i])
            ON CONFLICT (queue, unique_held) WHERE unique_held IS NOT NULL DO UPDATE SET unique_held = j.unique_held
            RETURNING j.id, j.xmax = 0 INTO v_id, v_added;
        END IF;
        IF v_added AND p_key[i] IS NOT NULL THEN
            INSERT INTO job_key_moves (queue, key, cap, at) VALUES (p_queue[i], p_key[i], p_key_cap[i], v_run_at);
        END IF;
        id := v_id;
        added := v_added;
        RETURN NEXT;
    END LOOP;
END $$;

-- Cancels waiting jobs by removing them and running ones by marking them. Locks in order of id.
CREATE FUNCTION job_cancel(p_ids bigint[]) RETURNS TABLE (id bigint, running boolean)
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_waiting bigint[];
    v_running bigint[];
BEGIN
    SELECT array_agg(h.id) FILTER (WHERE h.lease_id IS NULL), array_agg(h.id) FILTER (WHERE h.lease_id IS NOT NULL)
    INTO v_waiting, v_running
    FROM (SELECT j.id, j.lease_id FROM job_jobs j WHERE j.id = ANY (p_ids) ORDER BY j.id FOR UPDATE) h;
    DELETE FROM job_jobs j WHERE j.id = ANY (v_waiting);
    UPDATE job_jobs j SET cancelled = true WHERE j.id = ANY (v_running);
    RETURN QUERY SELECT w, false FROM unnest(v_waiting) w UNION ALL SELECT r, true FROM unnest(v_running) r;
END $$;

-- Gives dead jobs a new life under their old id, with all their attempts.
CREATE FUNCTION job_revive(p_ids bigint[]) RETURNS SETOF bigint
LANGUAGE sql SET jit = off AS $$
    WITH raised AS (DELETE FROM job_dead d WHERE d.id = ANY (p_ids) RETURNING *),
    added AS (
        INSERT INTO job_jobs (id, queue, name, payload, priority, run_at, enqueued_at, max_attempts, key, key_cap, unique_key, last_error)
        SELECT id, queue, name, payload, priority, clock_timestamp(), enqueued_at, max_attempts, key, key_cap, unique_key, reason
        FROM raised RETURNING id, queue, key, key_cap, run_at
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, cap, at)
        SELECT queue, key, max(key_cap), min(run_at) FROM added WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM added
$$;
