-- Brings what happened to keys into their rows, the oldest first, and locks due jobs of ready keys: the key that waits
-- longest first, each up to its cap, the limit shared evenly. Of the jobs, at most p_serial are of serial keys, whose cap
-- is 1. A job of p_vacated that is still under its lease does not count against the cap of its key, unless the key is
-- serial. No more than the cap are left out so: ends that cannot be written hold claims up after all.
--
-- Whoever changes rows of a queue's keys holds the queue's lock until its transaction ends, and reads them in a statement
-- that begins after it has it. So a statement sees what the one before has done, the jobs too, and nothing changes
-- under it.
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
