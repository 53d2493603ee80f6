-- A claim sees to the keys of its queue in one statement: what happened to them, what they may take, the jobs. It writes
-- each key's row once, where it was twice, and a row whose key is worth a look as before, or as little as before, stays on
-- its page. Claims that look at keys do so one after the other, so that none waits for a row of another or has to lock any.
-- And it may be told which jobs its process is through with, though their ends are still being written: a place that such a
-- job takes is as good as free.

-- Claims and rescues that are under way write rows of keys, so they end first. A claim of the version before that has only
-- just begun does not find the function that it calls, and is made again; one that is in that function already goes on in it
-- without the lock, and what it writes keeps others from writing over it.
LOCK TABLE job_keys IN EXCLUSIVE MODE;
DROP FUNCTION job_merge_moves(text, timestamptz);
DROP FUNCTION job_pick_keyed(text, integer, integer, timestamptz);

-- Brings what happened to keys into their rows, the oldest first, and locks due jobs of ready keys, the key that waits
-- longest first, each at most up to its cap, the places shared evenly. Of the places, at most p_serial are for serial keys,
-- whose cap is 1. A job of p_vacated that is still under its lease is counted in its key's row, and takes no place, unless its
-- key is serial: the next one of that begins when the one before has ended. No more than the cap are left out so: ends that
-- cannot be written hold claims up after all.
--
-- Whoever changes rows of a queue's keys holds the queue's lock until its transaction ends, and looks at them in a statement
-- that begins after it has it. So a statement sees what the one before has done, the jobs too, and nothing changes under it.
CREATE FUNCTION job_pick_keyed(
    p_queue text, p_limit integer, p_serial integer, p_vacated bigint[], p_vacated_leases bigint[],
    OUT ids bigint[], OUT places tid[], OUT caps integer[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_held CONSTANT boolean := pg_advisory_xact_lock('job_keys'::regclass::oid::integer, hashtext(p_queue)) IS NULL;
    v_now CONSTANT timestamptz := clock_timestamp();
    -- Moves that a statement takes.
    c_moves CONSTANT integer := 1000;
    v_moves integer;
    v_left integer := p_limit;
    v_serial integer := p_serial;
    v_looked integer;
    v_serial_looked integer;
    v_serial_got integer;
    v_known integer;
    v_written integer;
    v_ids bigint[];
    v_places tid[];
    v_caps integer[];
BEGIN
    -- What was picked is locked by this very transaction, which passes over what others have locked alone.
    ids := '{}';
    -- A key may have nothing due after all; then the next ones are looked at. Whatever there is, it ends before somebody loses
    -- patience: what was written stands, and the next claim goes on from there.
    FOR v_round IN 1..20 LOOP
        WITH gone AS (
            DELETE FROM job_key_moves m WHERE m.ctid = ANY (ARRAY(
                SELECT ctid FROM job_key_moves WHERE queue = p_queue ORDER BY id LIMIT c_moves))
            RETURNING m.key, m.id, m.cap, m.freed, m.at
        ),
        moved AS MATERIALIZED (
            SELECT key, (max(ARRAY[id, cap]) FILTER (WHERE cap IS NOT NULL))[2]::integer AS cap, sum(freed)::integer AS freed,
                sum(over)::integer AS over, min(at) AS at
            FROM (
                SELECT key, id, cap, freed, 0 AS over, at FROM gone
                UNION ALL
                SELECT o.key, NULL, NULL, 0, 1, NULL
                FROM unnest(p_vacated, p_vacated_leases) u (id, lease_id), LATERAL (
                    SELECT j.key FROM job_jobs j
                    WHERE j.id = u.id AND j.lease_id = u.lease_id AND j.queue = p_queue AND j.key_cap > 1 OFFSET 0
                ) o
                -- Where moves are left, what says that it takes a place may be among them.
                WHERE (SELECT count(*) FROM gone) < c_moves
            ) m
            GROUP BY key
        ),
        -- As rows should be by now. A cap of 0: not said yet.
        known AS (
            SELECT k.place, m.key, coalesce(m.cap, k.cap, 0) AS cap, coalesce(k.in_flight, 0) - m.freed AS in_flight, m.over,
                k.next_at AS stood_at,
                coalesce(least(k.next_at, m.at, CASE WHEN m.cap > k.cap THEN v_now END), 'infinity') AS next_at,
                k.in_flight AS stood_in_flight, k.cap AS stood_cap,
                -- A place that is as good as free makes no key worth a look to others.
                coalesce(least(k.next_at, m.at, CASE WHEN m.cap > k.cap OR m.over > 0 AND v_round = 1 THEN v_now END), 'infinity')
                    AS due_at
            FROM moved m LEFT JOIN LATERAL (
                SELECT ctid AS place, cap, in_flight, next_at FROM job_keys WHERE queue = p_queue AND key = m.key OFFSET 0
            ) k ON true
            UNION ALL
            SELECT * FROM (
                SELECT ctid, key, cap, in_flight, 0, next_at AS stood_at, next_at, in_flight AS stood_in_flight,
                    cap AS stood_cap, next_at AS due_at FROM job_keys
                WHERE queue = p_queue AND next_at <= v_now AND cap > 1 AND key NOT IN (SELECT key FROM moved)
                ORDER BY next_at LIMIT v_left
            ) wide
            UNION ALL
            SELECT * FROM (
                SELECT ctid, key, cap, in_flight, 0, next_at AS stood_at, next_at, in_flight AS stood_in_flight,
                    cap AS stood_cap, next_at AS due_at FROM job_keys
                WHERE queue = p_queue AND next_at <= v_now AND cap <= 1 AND key NOT IN (SELECT key FROM moved)
                ORDER BY next_at LIMIT least(v_left, v_serial)
            ) serial
        ),
        ranked AS (
            SELECT *, row_number() OVER in_turn AS rank, count(*) FILTER (WHERE cap <= 1) OVER in_turn AS serial_rank
            FROM known WINDOW in_turn AS (ORDER BY due_at ROWS UNBOUNDED PRECEDING)
        ),
        chosen AS (
            SELECT *, due_at <= v_now AND (cap > 1 OR serial_rank <= v_serial)
                AND rank - greatest(0, serial_rank - v_serial) <= v_left AS is_looked
            FROM ranked
        ),
        shared AS (
            SELECT *, count(*) FILTER (WHERE is_looked) OVER () AS looked,
                cap - greatest(0, in_flight - CASE WHEN cap > 1 THEN least(over, cap) ELSE 0 END) AS free
            FROM chosen
        ),
        picked AS MATERIALIZED (
            SELECT k.place, k.stood_in_flight, k.stood_cap, k.stood_at, k.key, k.cap, k.is_looked,
                k.in_flight + cardinality(j.ids) AS in_flight, j.ids, j.places, CASE
                WHEN NOT k.is_looked THEN k.next_at
                WHEN cardinality(j.ids) >= k.free THEN 'infinity'
                -- Nothing more is due, or it is locked: look again when the first that is left is due.
                WHEN cardinality(j.ids) < k.take THEN coalesce((
                    SELECT greatest(o.run_at, clock_timestamp() + interval '1 microsecond') FROM job_jobs o
                    WHERE o.queue = p_queue AND o.key = k.key AND o.lease_id IS NULL AND o.id <> ALL (job_pick_keyed.ids || j.ids)
                    ORDER BY o.run_at, o.id LIMIT 1), 'infinity')
                -- All got their share, so none has to wait for its turn.
                WHEN k.stood_at <= v_now AND k.looked < v_left THEN k.stood_at
                ELSE clock_timestamp() + interval '1 microsecond'
            END AS next_at
            FROM (
                SELECT *, CASE WHEN is_looked THEN greatest(0, least(free, v_left / looked)) ELSE 0 END AS take
                FROM shared
            ) k, LATERAL (
                SELECT coalesce(array_agg(t.id), '{}') AS ids, array_agg(t.place) AS places FROM (
                    SELECT j.id, j.ctid AS place FROM job_jobs j
                    WHERE j.queue = p_queue AND j.key = k.key AND j.run_at <= v_now AND j.lease_id IS NULL
                        AND j.id <> ALL (job_pick_keyed.ids)
                    ORDER BY j.run_at, j.id LIMIT k.take FOR UPDATE SKIP LOCKED) t
            ) j
        ),
        written AS (
            UPDATE job_keys k SET cap = p.cap, in_flight = p.in_flight, next_at = p.next_at
            FROM picked p
            -- As it was read. A place alone is not looked at again, before 2025's releases, where somebody else changed the row.
            WHERE k.ctid = p.place AND k.in_flight = p.stood_in_flight AND k.cap = p.stood_cap AND k.next_at = p.stood_at
            RETURNING 1
        ),
        made AS (
            INSERT INTO job_keys (queue, key, cap, in_flight, next_at)
            SELECT p_queue, key, cap, in_flight, next_at FROM picked WHERE place IS NULL
        )
        SELECT g.*, c.*, (SELECT count(*) FROM written), (SELECT count(*) FROM gone)
        INTO v_ids, v_places, v_caps, v_known, v_looked, v_serial_looked, v_serial_got, v_written, v_moves
        FROM (
            SELECT array_agg(i.id), array_agg(i.place), array_agg(p.cap) FROM picked p, unnest(p.ids, p.places) i (id, place)
        ) g, (
            SELECT count(place), count(*) FILTER (WHERE is_looked), count(*) FILTER (WHERE is_looked AND cap <= 1),
                coalesce(sum(cardinality(ids)) FILTER (WHERE cap <= 1), 0)
            FROM picked
        ) c;
        IF v_written <> v_known THEN
            RAISE EXCEPTION 'rows of keys of queue % were changed by somebody who does not hold its lock', p_queue
                USING ERRCODE = 'serialization_failure';
        END IF;
        ids := ids || v_ids;
        places := places || v_places;
        caps := caps || v_caps;
        EXIT WHEN coalesce(cardinality(v_ids), 0) = v_left OR v_moves < c_moves AND v_looked < v_left
            AND (v_serial_looked < v_serial OR v_serial_got = v_serial);
        v_left := v_left - coalesce(cardinality(v_ids), 0);
        v_serial := v_serial - v_serial_got;
    END LOOP;
    ids := nullif(ids, '{}');
END $$;

-- As job_claim in 0009, with the jobs that the caller is through with and their leases.
CREATE FUNCTION job_claim(
    p_queue text, p_worker text, p_lease bigint, p_limit integer, p_serial integer, p_lease_ms bigint, p_keyed_first boolean,
    p_vacated bigint[], p_vacated_leases bigint[]
)
RETURNS TABLE (id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text, key_cap integer)
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_lease bigint := p_lease;
    v_ready boolean;
    v_left integer := p_limit;
    v_keyed bigint[];
    v_keyed_places tid[];
    v_caps integer[];
    v_plain bigint[];
    v_places tid[];
BEGIN
    IF v_lease IS NOT NULL THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    SELECT p_vacated <> '{}' OR EXISTS (SELECT FROM job_key_moves WHERE queue = p_queue)
           OR EXISTS (SELECT FROM job_keys WHERE queue = p_queue AND next_at <= v_now AND cap > 1)
           OR EXISTS (SELECT FROM job_keys WHERE queue = p_queue AND next_at <= v_now AND cap <= 1)
    INTO v_ready;
    IF v_ready AND p_keyed_first THEN
        SELECT p.ids, p.places, p.caps INTO v_keyed, v_keyed_places, v_caps
        FROM job_pick_keyed(p_queue, v_left, p_serial, p_vacated, p_vacated_leases) p;
        v_left := p_limit - coalesce(cardinality(v_keyed), 0);
    END IF;
    IF v_left > 0 THEN
        SELECT array_agg(t.id), array_agg(t.place) INTO v_plain, v_places
        FROM (SELECT due.id, due.place FROM unnest('{0,1,2,3}'::smallint[]) p (priority),
                  LATERAL (SELECT j.id, j.ctid AS place FROM job_jobs j
                      WHERE j.queue = p_queue AND j.priority = p.priority AND j.key IS NULL
                        AND j.run_at <= v_now AND j.lease_id IS NULL
                      ORDER BY j.run_at, j.id LIMIT p_limit FOR UPDATE SKIP LOCKED) due
              LIMIT v_left) t;
        v_left := v_left - coalesce(cardinality(v_plain), 0);
    END IF;
    IF v_ready AND NOT p_keyed_first AND v_left > 0 THEN
        SELECT p.ids, p.places, p.caps INTO v_keyed, v_keyed_places, v_caps
        FROM job_pick_keyed(p_queue, v_left, p_serial, p_vacated, p_vacated_leases) p;
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
            WHERE j.ctid = ANY (v_places)
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text, NULL::integer;
    END IF;
    IF v_keyed IS NOT NULL THEN
        RETURN QUERY UPDATE job_jobs j SET lease_id = v_lease, attempt = j.attempt + 1, unique_held = NULL
            FROM unnest(v_keyed_places, v_caps) k (place, cap) WHERE j.ctid = k.place
            RETURNING j.id, j.lease_id, j.attempt, j.max_attempts, j.name, j.key, j.payload::text, k.cap;
    END IF;
END $$;

-- For processes of the version before, while they are being replaced.
CREATE OR REPLACE FUNCTION job_claim(
    p_queue text, p_worker text, p_lease bigint, p_limit integer, p_serial integer, p_lease_ms bigint, p_keyed_first boolean
)
RETURNS TABLE (id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text, key_cap integer)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT c.* FROM job_claim(p_queue, p_worker, p_lease, p_limit, p_serial, p_lease_ms, p_keyed_first, '{}', '{}') c;
END $$;

-- As in 0004, except that rows of keys are dropped where no claim is under way, which would take them for what they were.
CREATE OR REPLACE FUNCTION job_rescue(p_limit integer) RETURNS TABLE (id bigint, became text)
LANGUAGE plpgsql SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_lease record;
    v_ids bigint[];
BEGIN
    FOR v_lease IN
        SELECT l.id, l.job_ids, l.worker FROM job_leases l WHERE l.expires_at <= clock_timestamp()
        ORDER BY l.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    LOOP
        SELECT array_agg(h.id) INTO v_ids FROM (
            SELECT j.id FROM job_jobs j WHERE j.id = ANY (v_lease.job_ids) AND j.lease_id = v_lease.id
            FOR UPDATE SKIP LOCKED) h;
        IF v_ids IS NOT NULL THEN
            RETURN QUERY SELECT s.id, s.became FROM job_settle(
                v_ids, array_fill(v_lease.id, ARRAY[cardinality(v_ids)]),
                array_fill('expired'::text, ARRAY[cardinality(v_ids)]),
                array_fill(0::bigint, ARRAY[cardinality(v_ids)]),
                array_fill('the lease of worker ' || v_lease.worker || ' ran out', ARRAY[cardinality(v_ids)])) s;
        END IF;
        IF NOT EXISTS (SELECT FROM job_jobs j WHERE j.id = ANY (v_lease.job_ids) AND j.lease_id = v_lease.id) THEN
            DELETE FROM job_leases l WHERE l.id = v_lease.id;
        END IF;
    END LOOP;
    -- Whether it is still so is asked again once the queue's lock is held: the row is locked after.
    DELETE FROM job_keys k USING (
        SELECT queue, key FROM job_keys WHERE in_flight = 0 AND next_at = 'infinity'
            AND pg_try_advisory_xact_lock('job_keys'::regclass::oid::integer, hashtext(queue))
        LIMIT 1000 FOR UPDATE SKIP LOCKED
    ) t WHERE k.queue = t.queue AND k.key = t.key;
END $$;
