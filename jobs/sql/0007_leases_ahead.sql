-- A claim may bring its lease's id, drawn before. Then nobody waits until the claim is on disk, and a handler begins as
-- much sooner. If Postgres crashes before it is, the claim was never made: its jobs wait again, and the lease, which is
-- not there, fences off whatever the first handlers still do. That holds because the id is on disk already and is never
-- drawn again, which nextval here could not promise of a transaction that is not flushed. A transaction that a handler
-- commits after its claim brings the claim to disk with it, since the log is written in order.
--
-- Such a claim has to be a transaction of its own. One without an id draws it here and is flushed, as before.
CREATE FUNCTION job_claim(
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
    v_keyed bigint[] := '{}';
    v_plain bigint[] := '{}';
    v_places tid[];
BEGIN
    IF v_lease IS NOT NULL THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF EXISTS (SELECT FROM job_key_moves WHERE queue = p_queue) THEN
        PERFORM job_merge_moves(p_queue, v_now);
    END IF;
    IF p_keyed_first THEN
        v_keyed := job_pick_keyed(p_queue, p_limit, p_serial, v_now);
    END IF;
    IF cardinality(v_keyed) < p_limit THEN
        SELECT p.ids, p.places INTO v_plain, v_places FROM job_pick_plain(p_queue, p_limit - cardinality(v_keyed), v_now) p;
    END IF;
    IF NOT p_keyed_first AND cardinality(v_plain) < p_limit THEN
        v_keyed := job_pick_keyed(p_queue, p_limit - cardinality(v_plain), p_serial, v_now);
    END IF;
    IF cardinality(v_keyed) + cardinality(v_plain) = 0 THEN
        RETURN;
    END IF;
    IF v_lease IS NULL THEN
        v_lease := nextval('job_lease_ids');
    END IF;
    INSERT INTO job_leases (id, expires_at, worker, job_ids)
    VALUES (v_lease, clock_timestamp() + p_lease_ms * interval '1 millisecond', p_worker, v_plain || v_keyed);
    IF cardinality(v_plain) > 0 THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            WHERE j.ctid = ANY (v_places)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text, NULL::integer;
    END IF;
    IF cardinality(v_keyed) > 0 THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            WHERE j.id = ANY (v_keyed)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text,
                (SELECT k.cap FROM job_keys k WHERE k.queue = j.queue AND k.key = j.key);
    END IF;
END $$;

-- For processes of the version before, while they are being replaced.
CREATE OR REPLACE FUNCTION job_claim(p_queue text, p_worker text, p_limit integer, p_serial integer, p_lease_ms bigint, p_keyed_first boolean)
RETURNS TABLE (id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text, key_cap integer)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT c.* FROM job_claim(p_queue, p_worker, NULL, p_limit, p_serial, p_lease_ms, p_keyed_first) c;
END $$;
