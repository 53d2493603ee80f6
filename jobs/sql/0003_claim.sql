-- Brings the moves of one queue's keys into `job_keys`, in order of key (two claims merge at once without deadlock).
CREATE FUNCTION job_merge_moves(p_queue text, p_now timestamptz) RETURNS void
LANGUAGE sql AS $$
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
        next_at = CASE WHEN excluded.cap > k.cap THEN least(k.next_at, p_now) ELSE least(k.next_at, excluded.next_at) END
$$;

-- Locks due jobs of ready keys: the key that waits longest first, each at most up to its cap, the places shared evenly.
CREATE FUNCTION job_pick_keyed(p_queue text, p_limit integer, p_now timestamptz) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[];
    v_caps integer[];
    v_busy integer[];
    v_ids bigint[] := '{}';
    v_got bigint[];
    v_left integer := p_limit;
    v_share integer;
    v_take integer;
    v_next timestamptz;
BEGIN
    -- A key may have nothing due after all; then the next ones are looked at. Ends because each key that was looked at
    -- gets a next_at later than p_now.
    WHILE v_left > 0 LOOP
        SELECT array_agg(k.key), array_agg(k.cap), array_agg(k.in_flight) INTO v_keys, v_caps, v_busy
        FROM (SELECT key, cap, in_flight FROM job_keys
              WHERE queue = p_queue AND next_at <= p_now ORDER BY next_at LIMIT v_left FOR UPDATE SKIP LOCKED) k;
        EXIT WHEN v_keys IS NULL;
        v_share := greatest(1, v_left / cardinality(v_keys));
        FOR i IN 1 .. cardinality(v_keys) LOOP
            v_take := least(v_caps[i] - v_busy[i], v_share, v_left);
            EXIT WHEN v_left = 0;
            v_got := '{}';
            IF v_take > 0 THEN
                SELECT coalesce(array_agg(t.id), '{}') INTO v_got
                FROM (SELECT j.id FROM job_jobs j
                      WHERE j.queue = p_queue AND j.key = v_keys[i] AND j.run_at <= p_now AND j.lease_id IS NULL
                      ORDER BY j.run_at, j.id LIMIT v_take FOR UPDATE SKIP LOCKED) t;
                v_ids := v_ids || v_got;
                v_left := v_left - cardinality(v_got);
            END IF;
            IF v_busy[i] + cardinality(v_got) >= v_caps[i] THEN
                v_next := 'infinity';
            ELSE
                v_next := clock_timestamp() + interval '1 microsecond';
                IF cardinality(v_got) < v_take THEN
                    -- Nothing more is due, or it is locked: look again when the first that is left is due.
                    SELECT greatest(j.run_at, v_next) INTO v_next FROM job_jobs j
                    WHERE j.queue = p_queue AND j.key = v_keys[i] AND j.lease_id IS NULL AND j.id <> ALL (v_got)
                    ORDER BY j.run_at, j.id LIMIT 1;
                    v_next := coalesce(v_next, 'infinity');
                END IF;
            END IF;
            UPDATE job_keys SET in_flight = in_flight + cardinality(v_got), next_at = v_next
            WHERE queue = p_queue AND key = v_keys[i];
        END LOOP;
    END LOOP;
    RETURN v_ids;
END $$;

-- Locks due jobs without a key, most urgent priority first. Priority is an equality, so that each probe reads the head
-- of one range and a million later jobs of another priority are never passed over.
CREATE FUNCTION job_pick_plain(p_queue text, p_limit integer, p_now timestamptz, OUT ids bigint[], OUT places tid[])
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[];
    v_places tid[];
BEGIN
    ids := '{}';
    places := '{}';
    FOR v_priority IN 0 .. 3 LOOP
        EXIT WHEN cardinality(ids) >= p_limit;
        SELECT array_agg(t.id), array_agg(t.ctid) INTO v_ids, v_places
        FROM (SELECT j.id, j.ctid FROM job_jobs j
              WHERE j.queue = p_queue AND j.priority = v_priority::smallint AND j.key IS NULL
                AND j.run_at <= p_now AND j.lease_id IS NULL
              ORDER BY j.run_at, j.id LIMIT p_limit - cardinality(ids) FOR UPDATE SKIP LOCKED) t;
        ids := ids || coalesce(v_ids, '{}');
        places := places || coalesce(v_places, '{}');
    END LOOP;
END $$;

-- Claims up to p_limit jobs as one leased batch. Never waits for a job or a key that another has locked. With
-- p_keyed_first the keyed jobs are looked at first: callers alternate, so neither kind starves the other.
CREATE FUNCTION job_claim(p_queue text, p_worker text, p_limit integer, p_lease_ms bigint, p_keyed_first boolean)
RETURNS TABLE (id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text)
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_lease bigint;
    v_keyed bigint[] := '{}';
    v_plain bigint[] := '{}';
    v_places tid[];
BEGIN
    IF EXISTS (SELECT FROM job_key_moves WHERE queue = p_queue) THEN
        PERFORM job_merge_moves(p_queue, v_now);
    END IF;
    IF p_keyed_first THEN
        v_keyed := job_pick_keyed(p_queue, p_limit, v_now);
    END IF;
    IF cardinality(v_keyed) < p_limit THEN
        SELECT p.ids, p.places INTO v_plain, v_places FROM job_pick_plain(p_queue, p_limit - cardinality(v_keyed), v_now) p;
    END IF;
    IF NOT p_keyed_first AND cardinality(v_plain) < p_limit THEN
        v_keyed := job_pick_keyed(p_queue, p_limit - cardinality(v_plain), v_now);
    END IF;
    IF cardinality(v_keyed) + cardinality(v_plain) = 0 THEN
        RETURN;
    END IF;
    v_lease := nextval('job_lease_ids');
    INSERT INTO job_leases (id, expires_at, worker, job_ids)
    VALUES (v_lease, clock_timestamp() + p_lease_ms * interval '1 millisecond', p_worker, v_plain || v_keyed);
    IF cardinality(v_plain) > 0 THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            WHERE j.ctid = ANY (v_places)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text;
    END IF;
    IF cardinality(v_keyed) > 0 THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            WHERE j.id = ANY (v_keyed)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text;
    END IF;
END $$;
