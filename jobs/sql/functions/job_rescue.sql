-- Takes jobs from leases that have run out. Jobs that somebody holds locked, such as a handler in the middle of its own
-- end, are left for the next round.
--
-- Also drops the rows of keys that have nothing in flight and nothing waiting, where no claim is under way: a claim that
-- runs has read those rows.
CREATE FUNCTION job_rescue(p_limit integer) RETURNS TABLE (id bigint, became text)
LANGUAGE plpgsql SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_lease record;
    v_ids bigint[];
BEGIN
    FOR v_lease IN
        SELECT l.id, l.job_ids, l.worker FROM job_leases l WHERE l.expires_at <= clock_timestamp()
        ORDER BY l.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    LOOP
        SELECT array_agg(h.id) INTO v_ids FROM (
            SELECT j.id FROM job_jobs j WHERE j.id = ANY (v_lease.job_ids) AND j.lease_id = v_lease.id
            FOR UPDATE SKIP LOCKED) h;
        IF v_ids IS NOT NULL THEN
            RETURN QUERY SELECT s.id, s.became FROM job_end(
                p_ids => v_ids, p_leases => array_fill(v_lease.id, ARRAY[cardinality(v_ids)]),
                p_kinds => array_fill('expired'::text, ARRAY[cardinality(v_ids)]),
                p_delays_ms => array_fill(0::bigint, ARRAY[cardinality(v_ids)]),
                p_reasons => array_fill('the lease of worker ' || v_lease.worker || ' ran out', ARRAY[cardinality(v_ids)])) s;
        END IF;
        IF NOT EXISTS (SELECT FROM job_jobs j WHERE j.id = ANY (v_lease.job_ids) AND j.lease_id = v_lease.id) THEN
            DELETE FROM job_leases l WHERE l.id = v_lease.id;
        END IF;
    END LOOP;
    DELETE FROM job_keys k USING (
        SELECT queue, key FROM job_keys WHERE in_flight = 0 AND next_at = 'infinity'
            AND pg_try_advisory_xact_lock('job_keys'::regclass::oid::integer, hashtext(queue))
        LIMIT 1000 FOR UPDATE SKIP LOCKED
    ) t WHERE k.queue = t.queue AND k.key = t.key;
END $$;
