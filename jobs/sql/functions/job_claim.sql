-- Claims up to p_limit due jobs as one leased batch; of them, at most p_serial of serial keys, whose cap is 1. Never waits
-- for a job that another transaction has locked. With p_keyed_first the keyed jobs are looked at first: callers
-- alternate, so that neither kind starves the other. Jobs without a key are taken by priority: priority is an equality,
-- so that each probe reads the head of one range and a million later jobs of another priority are never passed over. With
-- fairness keys in p_full, those that may have no more jobs, the jobs of the others are taken instead, those of
-- keys behind p_after first (`job_pick_fair`). An earlier program names no p_after.
--
-- A caller that brings a lease id drawn before does not wait until the claim is on disk. If PostgreSQL crashes before it
-- is, the claim was never made: its jobs wait again, and the lease, which does not exist, fences off whatever the first
-- handlers still do. That holds because the id is on disk already and is never drawn again; nextval in a transaction
-- that is not flushed promises no such thing. A transaction that a handler commits later brings the claim to disk with
-- it, since the log is written in order. Such a claim has to be a transaction of its own. A claim without an id draws
-- one here and is flushed.
CREATE FUNCTION job_claim(
    p_queue text, p_worker text, p_lease bigint, p_limit integer, p_serial integer, p_lease_ms bigint, p_keyed_first boolean,
    p_full text[], p_after text DEFAULT ''
)
RETURNS TABLE (
    id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text, key_cap integer,
    fairness_key text
)
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now CONSTANT timestamptz := clock_timestamp();
    v_lease bigint := p_lease;
    v_has_keys boolean;
    v_left integer := p_limit;
    v_keyed bigint[];
    v_keyed_ctids tid[];
    v_caps integer[];
    v_plain bigint[];
    v_plain_ctids tid[];
BEGIN
    IF v_lease IS NOT NULL THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    v_has_keys := EXISTS (SELECT FROM job_key_moves WHERE queue = p_queue)
        OR EXISTS (SELECT FROM job_keys WHERE queue = p_queue AND next_at <= v_now AND cap > 1 AND in_flight < cap)
        OR EXISTS (SELECT FROM job_keys WHERE queue = p_queue AND next_at <= v_now AND cap <= 1 AND in_flight < cap);
    IF v_has_keys AND p_keyed_first THEN
        SELECT p.ids, p.ctids, p.caps INTO v_keyed, v_keyed_ctids, v_caps
        FROM job_pick_keyed(p_queue => p_queue, p_limit => v_left, p_serial => p_serial) p;
        v_left := p_limit - coalesce(cardinality(v_keyed), 0);
    END IF;
    IF cardinality(p_full) > 0 AND v_left > 0 THEN
        SELECT p.ids, p.ctids INTO v_plain, v_plain_ctids
        FROM job_pick_fair(p_queue => p_queue, p_limit => v_left, p_full => p_full, p_after => p_after) p;
        v_left := v_left - coalesce(cardinality(v_plain), 0);
    ELSIF v_left > 0 THEN
        SELECT array_agg(t.id), array_agg(t.ctid) INTO v_plain, v_plain_ctids
        FROM (SELECT due.* FROM unnest('{0,1,2,3}'::smallint[]) p (priority),
                  LATERAL (SELECT j.id, j.ctid FROM job_jobs j
                      WHERE j.queue = p_queue AND j.priority = p.priority AND j.key IS NULL
                        AND j.run_at <= v_now AND j.lease_id IS NULL
                      ORDER BY j.run_at, j.id LIMIT p_limit FOR UPDATE SKIP LOCKED) due
              LIMIT v_left) t;
        v_left := v_left - coalesce(cardinality(v_plain), 0);
    END IF;
    IF v_has_keys AND NOT p_keyed_first AND v_left > 0 THEN
        SELECT p.ids, p.ctids, p.caps INTO v_keyed, v_keyed_ctids, v_caps
        FROM job_pick_keyed(p_queue => p_queue, p_limit => v_left, p_serial => p_serial) p;
    END IF;
    IF v_plain IS NULL AND v_keyed IS NULL THEN
        RETURN;
    END IF;
    IF v_lease IS NULL THEN
        v_lease := nextval('job_lease_ids');
    END IF;
    INSERT INTO job_leases (id, expires_at, worker, job_ids)
    VALUES (v_lease, clock_timestamp() + p_lease_ms * interval '1 millisecond', p_worker, v_plain || v_keyed);
    IF v_plain IS NOT NULL THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            WHERE j.ctid = ANY (v_plain_ctids)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text, NULL::integer,
                j.fairness_key;
    END IF;
    IF v_keyed IS NOT NULL THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            FROM unnest(v_keyed_ctids, v_caps) k (place, cap) WHERE j.ctid = k.place
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text, k.cap, j.fairness_key;
    END IF;
END $$;
