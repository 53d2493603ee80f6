-- Locks due jobs of ready keys: the key that waits longest first, each up to its cap, the limit shared evenly. Of the jobs,
-- at most p_serial are of serial keys, whose cap is 1. Answers with their ids, their places in the table, and their keys'
-- caps.
--
-- Whoever changes rows of a queue's keys holds the queue's lock until its transaction ends, and reads them in a statement
-- that begins after it has the lock. So a statement sees what the claim before has done, and no row changes under it.
CREATE FUNCTION job_pick_keyed(p_queue text, p_limit integer, p_serial integer, OUT ids bigint[], OUT ctids tid[], OUT caps integer[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock('job_keys'::regclass::oid::integer, hashtext(p_queue));
    IF EXISTS (SELECT FROM job_key_moves WHERE queue = p_queue) THEN
        PERFORM job_merge_moves(p_queue => p_queue);
    END IF;
    v_now := clock_timestamp();
    WITH ready AS MATERIALIZED (
        SELECT *, count(*) OVER () AS keys, row_number() OVER (ORDER BY next_at) AS rank FROM (
            SELECT * FROM (
                SELECT * FROM (
                    SELECT key, cap, in_flight, next_at FROM job_keys
                    WHERE queue = p_queue AND next_at <= v_now AND cap > 1 AND in_flight < cap
                    ORDER BY next_at LIMIT p_limit) wide
                UNION ALL
                SELECT * FROM (
                    SELECT key, cap, in_flight, next_at FROM job_keys
                    WHERE queue = p_queue AND next_at <= v_now AND cap <= 1 AND in_flight < cap
                    ORDER BY next_at LIMIT p_serial) serial
            ) both_kinds
            ORDER BY next_at LIMIT p_limit
        ) in_turn
    ),
    picked AS MATERIALIZED (
        SELECT k.*, j.* FROM ready k, LATERAL (
            SELECT coalesce(array_agg(t.id), '{}') AS ids, array_agg(t.ctid) AS ctids FROM (
                SELECT j.id, j.ctid FROM job_jobs j
                WHERE j.queue = p_queue AND j.key = k.key AND j.run_at <= v_now AND j.lease_id IS NULL
                -- An even share of the limit; what does not divide goes to those that wait longest.
                ORDER BY j.run_at, j.id LIMIT least(k.cap - k.in_flight, (p_limit + k.keys - k.rank) / k.keys)
                FOR UPDATE SKIP LOCKED) t
        ) j
    ),
    left_over AS (
        SELECT p.*, (
            SELECT j.run_at FROM job_jobs j
            WHERE j.queue = p_queue AND j.key = p.key AND j.lease_id IS NULL AND j.id <> ALL (p.ids)
            ORDER BY j.run_at, j.id LIMIT 1) AS first_at
        FROM picked p
    ),
    written AS (
        UPDATE job_keys k SET in_flight = k.in_flight + cardinality(l.ids), next_at = CASE
            WHEN l.first_at IS NULL THEN 'infinity'
            WHEN l.first_at > v_now THEN l.first_at
            -- All wide keys got their share, so none has to wait for its turn.
            WHEN l.cap > 1 AND l.keys < p_limit THEN l.next_at
            -- To the end of the line.
            ELSE clock_timestamp() + interval '1 microsecond' END
        FROM left_over l WHERE k.queue = p_queue AND k.key = l.key
    )
    SELECT array_agg(i.id), array_agg(i.ctid), array_agg(p.cap) INTO ids, ctids, caps
    FROM picked p, unnest(p.ids, p.ctids) i (id, ctid);
END $$;
