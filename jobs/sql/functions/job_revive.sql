-- Puts dead jobs back under their old ids, due now, with all their attempts.
CREATE FUNCTION job_revive(p_ids bigint[]) RETURNS SETOF bigint
LANGUAGE sql SET jit = off AS $$
    WITH raised AS (DELETE FROM job_dead d WHERE d.id = ANY (p_ids) RETURNING *),
    added AS (
        INSERT INTO job_jobs (id, queue, name, payload, priority, run_at, enqueued_at, max_attempts, key, key_cap, unique_key, last_error,
            fairness_key)
        SELECT id, queue, name, payload, priority, clock_timestamp(), enqueued_at, max_attempts, key, key_cap, unique_key, reason,
            fairness_key
        FROM raised RETURNING id, queue, key, key_cap
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, cap)
        SELECT queue, key, max(key_cap) FROM added WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM added
$$;
