-- Plans are kept, and may have been made while a table held next to nothing. Joined to a list, such a plan goes through the
-- table and looks the list up for each of its rows, which is far too much once there are many: so each statement here
-- names the rows that it is about, and whatever plan it has reads no others.

-- Completes jobs: deletes those that are still under the lease they were claimed by, frees their keys' places. Mostly all
-- are under one lease; a job may come twice, under one that it lost and the one that it has.
CREATE OR REPLACE FUNCTION job_complete(p_ids bigint[], p_leases bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_lease bigint := CASE WHEN p_leases[1] = ALL (p_leases) THEN p_leases[1] END;
BEGIN
    RETURN QUERY
    WITH gone AS (
        DELETE FROM job_jobs j
        WHERE j.id = ANY (p_ids)
            AND (j.lease_id = v_lease OR v_lease IS NULL
                AND (j.id, j.lease_id) IN (SELECT u.id, u.lease_id FROM unnest(p_ids, p_leases) u (id, lease_id)))
        RETURNING j.id, j.queue, j.key
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, freed, at)
        SELECT queue, key, count(*), clock_timestamp() FROM gone WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM gone;
END
$$;

-- As in 0006: settles running jobs in any way. Kinds: done, retry (counts, dead after the last attempt), snooze and handback (do
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
        INSERT INTO job_dead (id, enqueued_at, attempt, max_attempts, key_cap, priority, queue, name, key, unique_key, reason, payload)
        SELECT id, enqueued_at, attempt, max_attempts, key_cap, priority, queue, name, key, unique_key,
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
        INSERT INTO job_key_moves (queue, key, freed, at)
        SELECT queue, key, count(*), clock_timestamp() FROM decided WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id, became FROM decided;
END
$$;

-- As in 0006: brings what happened to keys into their rows, the oldest first.
--
-- What is locked is deleted by its place in the table, in a statement of its own. As one statement it locked all of them
-- anew for each of them, by such a plan. With the two thousand that a claim takes at most that is ten seconds and more, so
-- that a claim after many enqueues came to no end.
CREATE OR REPLACE FUNCTION job_merge_moves(p_queue text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_places tid[];
BEGIN
    SELECT array_agg(t.place) INTO v_places
    FROM (SELECT ctid AS place FROM job_key_moves WHERE queue = p_queue ORDER BY id LIMIT 2000 FOR UPDATE SKIP LOCKED) t;
    WITH gone AS (
        DELETE FROM job_key_moves m WHERE m.ctid = ANY (v_places)
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
