-- Locks due jobs of the fairness keys that are not full, one key after the other: those behind p_after, then the others.
-- Answers with their ids and their places in the table. It steps from key to key, so jobs of a full key, however many
-- wait, are never read.
CREATE FUNCTION job_pick_fair(
    p_queue text, p_limit integer, p_full text[], p_after text, OUT ids bigint[], OUT ctids tid[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_now CONSTANT timestamptz := clock_timestamp();
    v_key text := p_after;
    v_has_wrapped boolean := false;
    v_ids bigint[];
    v_ctids tid[];
BEGIN
    LOOP
        SELECT j.fairness_key INTO v_key FROM job_jobs j
        WHERE j.queue = p_queue AND j.fairness_key > v_key
        ORDER BY j.fairness_key LIMIT 1;
        IF NOT FOUND THEN
            EXIT WHEN v_has_wrapped;
            v_has_wrapped := true;
            v_key := '';
            CONTINUE;
        END IF;
        EXIT WHEN v_has_wrapped AND v_key > p_after;
        CONTINUE WHEN v_key = ANY (p_full);
        SELECT array_agg(t.id), array_agg(t.ctid) INTO v_ids, v_ctids
        FROM (SELECT j.id, j.ctid FROM job_jobs j
              WHERE j.queue = p_queue AND j.fairness_key = v_key AND j.run_at <= v_now AND j.lease_id IS NULL
              ORDER BY j.run_at, j.id LIMIT p_limit - coalesce(cardinality(ids), 0)
              FOR UPDATE SKIP LOCKED) t;
        ids := ids || v_ids;
        ctids := ctids || v_ctids;
        EXIT WHEN cardinality(ids) >= p_limit;
    END LOOP;
END $$;
