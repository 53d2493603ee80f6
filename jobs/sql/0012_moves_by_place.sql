-- As in 0006: brings what happened to keys into their rows, the oldest first.
--
-- What is locked is deleted by its place in the table, in a statement of its own. As one statement it joined the two, and a
-- plan that was made and kept while there were few moves locked all of them anew for each of them. With the two thousand
-- that a claim takes at most that is ten seconds and more, so that a claim after many enqueues came to no end.
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
