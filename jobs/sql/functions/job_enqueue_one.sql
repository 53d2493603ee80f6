-- Enqueues one job without a concurrency key, due at once. It answers with one value: `job_enqueue` answers with rows, which
-- PostgreSQL gathers and describes for each call.
CREATE FUNCTION job_enqueue_one(
    p_queue text, p_name text, p_payload text, p_priority smallint, p_max_attempts integer, p_fairness_key text DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
BEGIN
    INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, fairness_key)
    VALUES (p_queue, p_name, p_payload::json, p_priority, clock_timestamp(), p_max_attempts, p_fairness_key)
    RETURNING id INTO v_id;
    RETURN v_id;
END
$$;
