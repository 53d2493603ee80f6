-- Enqueues one job with a concurrency key, due at once.
CREATE FUNCTION job_enqueue_keyed(
    p_queue text, p_name text, p_payload text, p_priority smallint, p_max_attempts integer, p_key text, p_key_cap integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
BEGIN
    INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, key, key_cap)
    VALUES (p_queue, p_name, p_payload::json, p_priority, clock_timestamp(), p_max_attempts, p_key, p_key_cap)
    RETURNING id INTO v_id;
    INSERT INTO job_key_moves (queue, key, cap) VALUES (p_queue, p_key, p_key_cap);
    RETURN v_id;
END
$$;
