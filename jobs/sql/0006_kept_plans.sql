-- The functions of 0003 and 0004 that were written in SQL, in PL/pgSQL, and what was no function yet: a function in SQL,
-- like a statement of a client that does not prepare it, is parsed and planned at every call, which cost more than all
-- that it did; PL/pgSQL keeps its plans. What they do is the same.

-- Jobs without a unique key. Ids are drawn in the order given, so ascending ids are that order.
CREATE FUNCTION job_enqueue(
    p_queue text[], p_name text[], p_payload text[], p_priority smallint[], p_delay_ms bigint[],
    p_max_attempts integer[], p_key text[], p_key_cap integer[]
) RETURNS SETOF bigint
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH added AS (
        INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, key, key_cap)
        SELECT queue, name, payload::json, priority, clock_timestamp() + delay_ms * interval '1 millisecond',
               max_attempts, key, key_cap
        FROM unnest(p_queue, p_name, p_payload, p_priority, p_delay_ms, p_max_attempts, p_key, p_key_cap)
             WITH ORDINALITY AS i (queue, name, payload, priority, delay_ms, max_attempts, key, key_cap, place)
        ORDER BY place
        RETURNING id, queue, key, key_cap, run_at
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, cap, at)
        SELECT queue, key, (array_agg(key_cap ORDER BY id DESC))[1], min(run_at) FROM added WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM added ORDER BY id;
END
$$;

-- Brings the moves of one queue's keys into `job_keys`, in order of key (two claims merge at once without deadlock).
CREATE OR REPLACE FUNCTION job_merge_moves(p_queue text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    WITH gone AS (
        DELETE FROM job_key_moves m USING (
            SELECT queue, id FROM job_key_moves WHERE queue = p_queue ORDER BY id LIMIT 2000 FOR UPDATE SKIP LOCKED
        ) t WHERE m.queue = t.queue AND m.id = t.id
        RETURNING m.key, m.id, m.cap, m.freed, m.at
    )
    INSERT INTO job_keys AS k (queue, key, cap, in_flight, next_at)
    SELECT p_queue, key, coalesce((array_agg(cap ORDER BY id DESC) FILTER (WHERE cap IS NOT NULL))[1], 0),
           -sum(freed), greatest(min(at), p_now)
    FROM gone GROUP BY key ORDER BY key
    ON CONFLICT (queue, key) DO UPDATE SET
        cap = CASE WHEN excluded.cap > 0 THEN excluded.cap ELSE k.cap END,
        in_flight = k.in_flight + excluded.in_flight,
        next_at = CASE WHEN excluded.cap > k.cap THEN least(k.next_at, p_now) ELSE least(k.next_at, excluded.next_at) END;
END
$$;

-- Completes jobs: deletes those that are still under the lease they were claimed by, frees their keys' places.
CREATE OR REPLACE FUNCTION job_complete(p_ids bigint[], p_leases bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH gone AS (
        DELETE FROM job_jobs j USING unnest(p_ids, p_leases) u (id, lease_id)
        WHERE j.id = u.id AND j.lease_id = u.lease_id
        RETURNING j.id, j.queue, j.key
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, freed, at)
        SELECT queue, key, count(*), clock_timestamp() FROM gone WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM gone;
END
$$;

-- Settles running jobs in any way. Kinds: done, retry (counts, dead after the last attempt), snooze and handback (do
-- not count; handback keeps the run-at), dead, expired (a retry at once). Says what became of each job that was
-- still under its lease: done, waiting, dead, cancelled, or merged into another waiting job of its unique key.
CREATE OR REPLACE FUNCTION job_settle(p_ids bigint[], p_leases bigint[], p_kinds text[], p_delays_ms bigint[], p_reasons text[])
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
                INSERT INTO job_key_moves (queue, key, freed, at) VALUES (v_queue, v_key, 1, clock_timestamp());
            END IF;
            id := p_ids[1];
            became := 'done';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    -- Jobs that their handlers have settled: none is held any more.
    IF NOT EXISTS (
        SELECT FROM unnest(p_ids, p_leases) u (id, lease_id) JOIN job_jobs j ON j.id = u.id AND j.lease_id = u.lease_id
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
    SELECT id, became FROM decided;
END
$$;
