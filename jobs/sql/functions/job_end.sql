-- Ends running jobs in any way. Kinds: done, retry (counts, dead after the last attempt), snooze and handback (do not
-- count; handback keeps the run-at), dead, expired (a retry at once). Says what became of each job that was still under
-- its lease: done, waiting, dead, cancelled, or merged into another waiting job of its unique key.
--
-- The plan is kept and may have been made while the table was empty, so each statement names the rows by their ids:
-- whatever plan it has reads no others.
CREATE FUNCTION job_end(p_ids bigint[], p_leases bigint[], p_kinds text[], p_delays_ms bigint[], p_reasons text[])
RETURNS TABLE (id bigint, became text)
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_queue text;
    v_key text;
BEGIN
    -- One job that is done: what a handler says in its own transaction.
    IF p_kinds = '{done}' THEN
        DELETE FROM job_jobs j WHERE j.id = p_ids[1] AND j.lease_id = p_leases[1] AND NOT j.cancelled
        RETURNING j.queue, j.key INTO v_queue, v_key;
        IF FOUND THEN
            IF v_key IS NOT NULL THEN
                INSERT INTO job_key_moves (queue, key, freed) VALUES (v_queue, v_key, 1);
            END IF;
            id := p_ids[1];
            became := 'done';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    -- Jobs that their handlers have ended: none is held any more.
    IF NOT EXISTS (
        SELECT FROM unnest(p_ids, p_leases) u (id, lease_id) JOIN job_jobs j ON j.id = u.id AND j.lease_id = u.lease_id
        WHERE j.id = ANY (p_ids)
    ) THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT j.*, u.kind, u.reason,
               CASE WHEN u.kind IN ('handback', 'expired') THEN j.run_at
                    ELSE clock_timestamp() + u.delay_ms * interval '1 millisecond' END AS next_run_at
        FROM unnest(p_ids, p_leases, p_kinds, p_delays_ms, p_reasons) u (id, lease_id, kind, delay_ms, reason)
        JOIN job_jobs j ON j.id = u.id AND j.lease_id = u.lease_id
        WHERE j.id = ANY (p_ids)
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
        INSERT INTO job_dead (id, enqueued_at, attempt, max_attempts, key_cap, priority, queue, name, key, unique_key, fairness_key, reason,
            payload)
        SELECT id, enqueued_at, attempt, max_attempts, key_cap, priority, queue, name, key, unique_key, fairness_key,
               coalesce(reason, 'no reason given'), payload
        FROM decided WHERE became = 'dead'
    ),
    gone AS (DELETE FROM job_jobs j USING decided d WHERE j.id = ANY (p_ids) AND j.id = d.id AND d.became <> 'waiting'),
    back AS (
        UPDATE job_jobs j SET lease_id = NULL, run_at = d.next_run_at,
            attempt = j.attempt - CASE WHEN d.kind IN ('snooze', 'handback') THEN 1 ELSE 0 END,
            last_error = coalesce(d.reason, j.last_error)
        FROM decided d WHERE j.id = ANY (p_ids) AND j.id = d.id AND d.became = 'waiting'
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, freed)
        SELECT queue, key, count(*) FROM decided WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id, became FROM decided;
END
$$;
