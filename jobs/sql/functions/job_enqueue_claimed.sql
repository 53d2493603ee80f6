-- Enqueues one job with a concurrency key as if p_worker had claimed it already. No lease id in the answer: the job
-- waits like any other, because its key is serial, more than half of the key's cap is in flight, or another job of the
-- key is due.
--
-- The key's row is not locked, so each transaction that asks before another has committed may put one job more in flight
-- than the key's cap allows.
CREATE FUNCTION job_enqueue_claimed(
    p_queue text, p_name text, p_payload text, p_max_attempts integer, p_key text, p_key_cap integer,
    p_worker text, p_lease_ms bigint, OUT id bigint, OUT lease_id bigint
)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
BEGIN
    IF p_key_cap <= 1 OR EXISTS (
        SELECT FROM job_keys k
        WHERE k.queue = p_queue AND k.key = p_key AND (k.in_flight > k.cap / 2 OR k.cap <= 1 OR k.next_at <= v_now)
    ) THEN
        id := job_enqueue_keyed(p_queue, p_name, p_payload, 1::smallint, p_max_attempts, p_key, p_key_cap);
        RETURN;
    END IF;
    lease_id := nextval('job_lease_ids');
    INSERT INTO job_jobs AS j (queue, name, payload, priority, run_at, max_attempts, key, key_cap, lease_id, attempt)
    VALUES (p_queue, p_name, p_payload::json, 1, v_now, p_max_attempts, p_key, p_key_cap, lease_id, 1)
    RETURNING j.id INTO id;
    INSERT INTO job_leases AS l (id, expires_at, worker, job_ids)
    VALUES (lease_id, v_now + p_lease_ms * interval '1 millisecond', p_worker, ARRAY[id]);
    -- A move at infinity makes nothing due.
    INSERT INTO job_key_moves (queue, key, cap, freed, at) VALUES (p_queue, p_key, p_key_cap, -1, 'infinity');
END
$$;
