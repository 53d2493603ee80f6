-- Completes jobs: deletes those that are still under the lease they were claimed by, frees their keys' places.
CREATE FUNCTION job_complete(p_ids bigint[], p_leases bigint[]) RETURNS SETOF bigint
LANGUAGE sql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    WITH gone AS (
        DELETE FROM job_jobs j USING unnest(p_ids, p_leases) u (id, lease_id)
        WHERE j.id = u.id AND j.lease_id = u.lease_id
        RETURNING j.id, j.queue, j.key
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, freed, at)
        SELECT queue, key, count(*), clock_timestamp() FROM gone WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM gone
$$;

-- Settles running jobs in any way. Kinds: done, retry (counts, dead after the last attempt), snooze and handback (do
-- not count; handback keeps the run-at), dead, expired (a retry at once). Says what became of each job that was
-- still under its lease: done, waiting, dead, cancelled, or merged into another waiting job of its unique key.
CREATE FUNCTION job_settle(p_ids bigint[], p_leases bigint[], p_kinds text[], p_delays_ms bigint[], p_reasons text[])
RETURNS TABLE (id bigint, became text)
LANGUAGE sql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    WITH held AS MATERIALIZED (
        SELECT j.*, u.kind, u.reason,
               CASE WHEN u.kind IN ('handback', 'expired') THEN j.run_at
                    ELSE clock_timestamp() + u.delay_ms * interval '1 millisecond' END AS next_run_at
        FROM unnest(p_ids, p_leases, p_kinds, p_delays_ms, p_reasons) u (id, lease_id, kind, delay_ms, reason)
        JOIN job_jobs j ON j.id = u.id AND j.lease_id = u.lease_id
        ORDER BY j.id FOR UPDATE OF j
    ),
    decided AS MATERIALIZED (
        SELECT h.*, CASE
            WHEN h.cancelled THEN 'cancelled'
            WHEN h.kind = 'done' THEN 'done'
            WHEN h.kind = 'dead' OR (h.kind IN ('retry', 'expired') AND h.attempt >= h.max_attempts) THEN 'dead'
            WHEN h.unique_key IS NOT NULL AND EXISTS (
                SELECT FROM job_jobs o WHERE o.queue = h.queue AND o.unique_key = h.unique_key
                  AND o.unique_held IS NOT NULL AND o.id <> h.id AND o.run_at <= h.next_run_at) THEN 'merged'
            ELSE 'waiting' END AS became
        FROM held h
    ),
    buried AS (
        INSERT INTO job_dead (id, enqueued_at, attempt, max_attempts, key_cap, priority, queue, name, key, unique_key, reason, payload)
        SELECT id, enqueued_at, attempt, max_attempts, key_cap, priority, queue, name, key, unique_key,
               coalesce(reason, 'no reason given'), payload
        FROM decided WHERE became = 'dead'
    ),
    gone AS (DELETE FROM job_jobs j USING decided d WHERE j.id = d.id AND d.became <> 'waiting'),
    back AS (
        UPDATE job_jobs j SET lease_id = NULL, run_at = d.next_run_at,
            attempt = j.attempt - CASE WHEN d.kind IN ('snooze', 'handback') THEN 1 ELSE 0 END,
            last_error = coalesce(d.reason, j.last_error)
        FROM decided d WHERE j.id = d.id AND d.became = 'waiting'
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, freed, at)
        SELECT queue, key, count(*), clock_timestamp() FROM decided WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id, became FROM decided
$$;

-- Takes jobs from leases that have run out. Jobs that somebody holds locked (a handler in the middle of its own
-- settlement) are left for the next round. Also drops the rows of keys that have nothing to say.
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
            RETURN QUERY SELECT s.id, s.became FROM job_settle(
                v_ids, array_fill(v_lease.id, ARRAY[cardinality(v_ids)]),
                array_fill('expired'::text, ARRAY[cardinality(v_ids)]),
                array_fill(0::bigint, ARRAY[cardinality(v_ids)]),
                array_fill('the lease of worker ' || v_lease.worker || ' ran out', ARRAY[cardinality(v_ids)])) s;
        END IF;
        IF NOT EXISTS (SELECT FROM job_jobs j WHERE j.id = ANY (v_lease.job_ids) AND j.lease_id = v_lease.id) THEN
            DELETE FROM job_leases l WHERE l.id = v_lease.id;
        END IF;
    END LOOP;
    DELETE FROM job_keys k USING (
        SELECT queue, key FROM job_keys WHERE in_flight = 0 AND next_at = 'infinity' LIMIT 1000 FOR UPDATE SKIP LOCKED
    ) t WHERE k.queue = t.queue AND k.key = t.key;
END $$;
