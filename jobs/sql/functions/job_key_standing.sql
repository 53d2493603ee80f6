-- For how many milliseconds a lease of jobs under this key still stands; 0: none does. Reads the leases, of which there
-- are few, and not the jobs that wait.
CREATE FUNCTION job_key_standing(p_queue text, p_key text) RETURNS bigint
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT coalesce(max(ceil(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000)), 0)::bigint
    FROM job_leases l, unnest(l.job_ids) u (id), job_jobs j
    WHERE l.expires_at > clock_timestamp() AND j.id = u.id AND j.lease_id = l.id AND j.queue = p_queue AND j.key = p_key
$$;
