-- What a job does outside of the database may be over when its lease is. Then the lease says whether it is still being done,
-- and the job's attempt that somebody has begun it: no row of the caller's own has to be written before it begins.

-- Keeps the lease of a job for so long at least, whatever becomes of who holds it. False: the job is not under that lease
-- any more. Its row is held meanwhile, or it could be taken just then.
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

-- How often a job was claimed and not given back, and for how long a lease of it stands still; 0: it waits, or its lease
-- ran out. Null: there is no such job.
CREATE FUNCTION job_standing(p_id bigint, OUT attempt integer, OUT left_ms bigint)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    SELECT j.attempt, coalesce((SELECT greatest(0, ceil(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000))
        FROM job_leases l WHERE l.id = j.lease_id), 0)
    INTO attempt, left_ms FROM job_jobs j WHERE j.id = p_id;
END
$$;

-- For how long a lease of jobs under this key stands still; 0: none does. By the leases, of which there are few, and not by
-- the jobs that wait.
CREATE FUNCTION job_key_standing(p_queue text, p_key text) RETURNS bigint
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT coalesce(max(ceil(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000)), 0)::bigint
    FROM job_leases l, unnest(l.job_ids) u (id), job_jobs j
    WHERE l.expires_at > clock_timestamp() AND j.id = u.id AND j.lease_id = l.id AND j.queue = p_queue AND j.key = p_key
$$;

-- As job_enqueue_one in 0011, under a key.
CREATE FUNCTION job_enqueue_keyed(
    p_queue text, p_name text, p_payload text, p_priority smallint, p_max_attempts integer, p_key text, p_key_cap integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
    v_now timestamptz := clock_timestamp();
BEGIN
    INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, key, key_cap)
    VALUES (p_queue, p_name, p_payload::json, p_priority, v_now, p_max_attempts, p_key, p_key_cap)
    RETURNING id INTO v_id;
    INSERT INTO job_key_moves (queue, key, cap, at) VALUES (p_queue, p_key, p_key_cap, v_now);
    RETURN v_id;
END
$$;
