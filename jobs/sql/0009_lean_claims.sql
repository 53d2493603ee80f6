-- A claim costs what it does. Beside an idle queue most of what a start waits for is this function, whose parts are cold
-- by then, so that each statement less counts:
--
-- - keys are looked at only where a move or a key that is worth a look says so;
-- - jobs without a key are found by one statement for all priorities, not by four and a function of their own.

-- As in 0007: claims up to p_limit jobs as one leased batch. Never waits for a job that another has locked. With
-- p_keyed_first the keyed jobs are looked at first: callers alternate, so neither kind starves the other. Jobs without a
-- key are taken most urgent priority first: priority is an equality, so that each probe reads the head of one range and
-- a million later jobs of another priority are never passed over.
CREATE OR REPLACE FUNCTION job_claim(
    p_queue text, p_worker text, p_lease bigint, p_limit integer, p_serial integer, p_lease_ms bigint, p_keyed_first boolean
)
RETURNS TABLE (id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text, key_cap integer)
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_lease bigint := p_lease;
    v_moved boolean;
    v_ready boolean;
    v_keyed bigint[] := '{}';
    v_plain bigint[];
    v_places tid[];
BEGIN
    IF v_lease IS NOT NULL THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    SELECT EXISTS (SELECT FROM job_key_moves WHERE queue = p_queue),
           EXISTS (SELECT FROM job_keys WHERE queue = p_queue AND next_at <= v_now AND cap > 1)
           OR EXISTS (SELECT FROM job_keys WHERE queue = p_queue AND next_at <= v_now AND cap <= 1)
    INTO v_moved, v_ready;
    IF v_moved THEN
        PERFORM job_merge_moves(p_queue, v_now);
        v_ready := true;
    END IF;
    IF v_ready AND p_keyed_first THEN
        v_keyed := job_pick_keyed(p_queue, p_limit, p_serial, v_now);
    END IF;
    IF cardinality(v_keyed) < p_limit THEN
        SELECT array_agg(t.id), array_agg(t.place) INTO v_plain, v_places
        FROM (SELECT due.id, due.place FROM unnest('{0,1,2,3}'::smallint[]) p (priority),
                  LATERAL (SELECT j.id, j.ctid AS place FROM job_jobs j
                      WHERE j.queue = p_queue AND j.priority = p.priority AND j.key IS NULL
                        AND j.run_at <= v_now AND j.lease_id IS NULL
                      ORDER BY j.run_at, j.id LIMIT p_limit FOR UPDATE SKIP LOCKED) due
              LIMIT p_limit - cardinality(v_keyed)) t;
    END IF;
    IF v_ready AND NOT p_keyed_first AND coalesce(cardinality(v_plain), 0) < p_limit THEN
        v_keyed := job_pick_keyed(p_queue, p_limit - coalesce(cardinality(v_plain), 0), p_serial, v_now);
    END IF;
    IF v_plain IS NULL AND v_keyed = '{}' THEN
        RETURN;
    END IF;
    IF v_lease IS NULL THEN
        v_lease := nextval('job_lease_ids');
    END IF;
    INSERT INTO job_leases (id, expires_at, worker, job_ids)
    VALUES (v_lease, clock_timestamp() + p_lease_ms * interval '1 millisecond', p_worker, v_plain || v_keyed);
    IF v_plain IS NOT NULL THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            WHERE j.ctid = ANY (v_places)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text, NULL::integer;
    END IF;
    IF v_keyed <> '{}' THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            WHERE j.id = ANY (v_keyed)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text,
                (SELECT k.cap FROM job_keys k WHERE k.queue = j.queue AND k.key = j.key);
    END IF;
END $$;
DROP FUNCTION job_pick_plain(text, integer, timestamptz);
