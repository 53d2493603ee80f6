-- Brings what happened to keys into their rows, the oldest first, and looks up when the first waiting job of each is due.
-- The caller holds the queue's lock (`job_pick_keyed`).
--
-- A key whose turn has come keeps it. So while a key has more jobs than it may run, its row says the same and stays on
-- its page.
CREATE FUNCTION job_merge_moves(p_queue text) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now CONSTANT timestamptz := clock_timestamp();
BEGIN
    WITH gone AS (
        -- By their place in the table: a plan that was made for few would look for each of them among all.
        DELETE FROM job_key_moves m
        WHERE m.ctid = ANY (ARRAY(SELECT ctid FROM job_key_moves WHERE queue = p_queue ORDER BY id LIMIT 10000))
        RETURNING m.key, m.id, m.cap, m.freed
    ),
    moved AS (
        SELECT key, (max(ARRAY[id, cap]) FILTER (WHERE cap IS NOT NULL))[2]::integer AS cap, sum(freed)::integer AS freed
        FROM gone GROUP BY key
    )
    INSERT INTO job_keys AS k (queue, key, cap, in_flight, next_at)
    SELECT p_queue, m.key, coalesce(m.cap, 0), -m.freed, coalesce((
            SELECT j.run_at FROM job_jobs j
            WHERE j.queue = p_queue AND j.key = m.key AND j.lease_id IS NULL
            ORDER BY j.run_at, j.id LIMIT 1), 'infinity')
    FROM moved m
    ON CONFLICT (queue, key) DO UPDATE SET
        cap = CASE WHEN excluded.cap > 0 THEN excluded.cap ELSE k.cap END,
        in_flight = k.in_flight + excluded.in_flight,
        next_at = CASE WHEN k.next_at <= v_now AND excluded.next_at <= v_now THEN k.next_at ELSE excluded.next_at END;
END
$$;
