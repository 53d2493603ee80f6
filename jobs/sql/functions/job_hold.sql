-- Locks a job for the caller's transaction, unless another transaction has it: it never waits. False: another has it.
CREATE FUNCTION job_hold(p_id bigint) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    PERFORM FROM job_jobs j WHERE j.id = p_id FOR UPDATE SKIP LOCKED;
    RETURN FOUND OR NOT EXISTS (SELECT FROM job_jobs j WHERE j.id = p_id);
END
$$;
