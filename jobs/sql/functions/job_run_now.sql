-- Makes a waiting job due now. False: it runs, is due already, or is gone.
CREATE FUNCTION job_run_now(p_id bigint) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_queue text;
    v_key text;
BEGIN
    UPDATE job_jobs j SET run_at = clock_timestamp()
    WHERE j.id = p_id AND j.lease_id IS NULL AND j.run_at > clock_timestamp()
    RETURNING j.queue, j.key INTO v_queue, v_key;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF v_key IS NOT NULL THEN
        INSERT INTO job_key_moves (queue, key) VALUES (v_queue, v_key);
    END IF;
    RETURN true;
END
$$;
