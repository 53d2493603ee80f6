-- A claim has a limit of its own for serial keys, those whose cap is 1, so that many of them that are slow leave places
-- for the others. Each kind has an index of its own, so that neither is passed over in search of the other.
CREATE INDEX job_keys_ready_wide ON job_keys (queue, next_at) WHERE cap > 1;
CREATE INDEX job_keys_ready_serial ON job_keys (queue, next_at) WHERE cap <= 1;
DROP INDEX job_keys_ready;

-- Locks due jobs of ready keys: the key that waits longest first, each at most up to its cap, the places shared evenly.
-- Of the places, at most p_serial are for serial keys, whose cap is 1.
CREATE FUNCTION job_pick_keyed(p_queue text, p_limit integer, p_serial integer, p_now timestamptz) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[];
    v_caps integer[];
    v_busy integer[];
    v_ids bigint[] := '{}';
    v_got bigint[];
    v_left integer := p_limit;
    v_serial integer := p_serial;
    v_share integer;
    v_take integer;
    v_next timestamptz;
BEGIN
    -- A key may have nothing due after all; then the next ones are looked at. Ends because each key that was looked at
    -- gets a next_at later than p_now.
    WHILE v_left > 0 LOOP
        SELECT array_agg(k.key), array_agg(k.cap), array_agg(k.in_flight) INTO v_keys, v_caps, v_busy
        FROM (SELECT * FROM (
                  SELECT * FROM (SELECT key, cap, in_flight, next_at FROM job_keys
                      WHERE queue = p_queue AND next_at <= p_now AND cap > 1
                      ORDER BY next_at LIMIT v_left FOR UPDATE SKIP LOCKED) wide
                  UNION ALL
                  SELECT * FROM (SELECT key, cap, in_flight, next_at FROM job_keys
                      WHERE queue = p_queue AND next_at <= p_now AND cap <= 1
                      ORDER BY next_at LIMIT least(v_left, v_serial) FOR UPDATE SKIP LOCKED) serial
              ) both_kinds ORDER BY next_at LIMIT v_left) k;
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
                IF v_caps[i] <= 1 THEN
                    v_serial := v_serial - cardinality(v_got);
                END IF;
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

-- Claims up to p_limit jobs as one leased batch. Never waits for a job or a key that another has locked. With
-- p_keyed_first the keyed jobs are looked at first: callers alternate, so neither kind starves the other. Says of each
-- keyed job the cap that its key has.
CREATE FUNCTION job_claim(p_queue text, p_worker text, p_limit integer, p_serial integer, p_lease_ms bigint, p_keyed_first boolean)
RETURNS TABLE (id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text, key_cap integer)
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
    v_lease := nextval('job_lease_ids');
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
CREATE OR REPLACE FUNCTION job_claim(p_queue text, p_worker text, p_limit integer, p_lease_ms bigint, p_keyed_first boolean)
RETURNS TABLE (id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT c.id, c.lease_id, c.attempt, c.max_attempts, c.name, c.key, c.payload
        FROM job_claim(p_queue, p_worker, p_limit, p_limit, p_lease_ms, p_keyed_first) c;
END $$;
DROP FUNCTION job_pick_keyed(text, integer, timestamptz);
