-- Extends the lease of a job so that it stands for p_ms at least, whatever becomes of its holder. False: the job is no
-- longer under that lease. The job's row is locked meanwhile, so that nobody takes the job at this moment.
CREATE FUNCTION job_keep_lease(p_id bigint, p_lease bigint, p_ms bigint) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    PERFORM FROM job_jobs j WHERE j.id = p_id AND j.lease_id = p_lease FOR SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE job_leases l SET expires_at = greatest(l.expires_at, clock_timestamp() + p_ms * interval '1 millisecond')
    WHERE l.id = p_lease;
    RETURN FOUND;
END
$$;
