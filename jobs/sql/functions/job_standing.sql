-- How often a job was claimed and not given back, and for how many milliseconds its lease still stands; 0: the job
-- waits, or its lease has run out. Null: there is no such job.
CREATE FUNCTION job_standing(p_id bigint, OUT attempt integer, OUT left_ms bigint)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    SELECT j.attempt, coalesce((SELECT greatest(0, ceil(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000))
        FROM job_leases l WHERE l.id = j.lease_id), 0)
    INTO attempt, left_ms FROM job_jobs j WHERE j.id = p_id;
END
$$;
