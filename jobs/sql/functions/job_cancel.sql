-- Cancels waiting jobs by removing them and running ones by marking them. Locks in order of id.
CREATE FUNCTION job_cancel(p_ids bigint[]) RETURNS TABLE (id bigint, running boolean)
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_waiting bigint[];
    v_running bigint[];
BEGIN
    SELECT array_agg(h.id) FILTER (WHERE h.lease_id IS NULL), array_agg(h.id) FILTER (WHERE h.lease_id IS NOT NULL)
    INTO v_waiting, v_running
    FROM (SELECT j.id, j.lease_id FROM job_jobs j WHERE j.id = ANY (p_ids) ORDER BY j.id FOR UPDATE) h;
    DELETE FROM job_jobs j WHERE j.id = ANY (v_waiting);
    UPDATE job_jobs j SET cancelled = true WHERE j.id = ANY (v_running);
    RETURN QUERY SELECT w, false FROM unnest(v_waiting) w UNION ALL SELECT r, true FROM unnest(v_running) r;
END $$;
