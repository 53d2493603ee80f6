-- What one job costs, which is how most come and go.

-- CHECK constraints are read from the catalog and compiled anew by every statement that writes a row, which is a good part
-- of what an enqueue or a claim costs. What they said is guaranteed by who writes: the numbers and the cap beside a key by
-- NewJob, the only way in; that a waiting job is not cancelled, that one that runs has been counted, and that one that
-- holds its unique key waits, by the functions, which change these columns together.
ALTER TABLE job_jobs
    DROP CONSTRAINT job_jobs_attempt_check,
    DROP CONSTRAINT job_jobs_max_attempts_check,
    DROP CONSTRAINT job_jobs_key_cap_check,
    DROP CONSTRAINT job_jobs_priority_check,
    DROP CONSTRAINT job_jobs_key_has_cap,
    DROP CONSTRAINT job_jobs_waiting_is_not_cancelled,
    DROP CONSTRAINT job_jobs_running_counts,
    DROP CONSTRAINT job_jobs_held_is_waiting;

-- Jobs without a unique key. Ids are drawn in the order given, so ascending ids are that order.
CREATE OR REPLACE FUNCTION job_enqueue(
    p_queue text[], p_name text[], p_payload text[], p_priority smallint[], p_delay_ms bigint[],
    p_max_attempts integer[], p_key text[], p_key_cap integer[]
) RETURNS SETOF bigint
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    IF cardinality(p_queue) = 1 AND p_key[1] IS NULL THEN
        RETURN QUERY
        INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts)
        VALUES (p_queue[1], p_name[1], p_payload[1]::json, p_priority[1],
                clock_timestamp() + p_delay_ms[1] * interval '1 millisecond', p_max_attempts[1])
        RETURNING id;
        RETURN;
    END IF;
    RETURN QUERY
    WITH added AS (
        INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, key, key_cap)
        SELECT queue, name, payload::json, priority, clock_timestamp() + delay_ms * interval '1 millisecond',
               max_attempts, key, key_cap
        FROM unnest(p_queue, p_name, p_payload, p_priority, p_delay_ms, p_max_attempts, p_key, p_key_cap)
             WITH ORDINALITY AS i (queue, name, payload, priority, delay_ms, max_attempts, key, key_cap, place)
        ORDER BY place
        RETURNING id, queue, key, key_cap, run_at
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, cap, at)
        SELECT queue, key, (array_agg(key_cap ORDER BY id DESC))[1], min(run_at) FROM added WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM added ORDER BY id;
END
$$;

-- Completes one job without a key, for a handler's own transaction. False: it is not under this lease any more, or was
-- cancelled, or has a key; then job_settle says what becomes of it.
CREATE FUNCTION job_done(p_id bigint, p_lease bigint) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    DELETE FROM job_jobs j WHERE j.id = p_id AND j.lease_id = p_lease AND NOT j.cancelled AND j.key IS NULL;
    RETURN FOUND;
END
$$;
