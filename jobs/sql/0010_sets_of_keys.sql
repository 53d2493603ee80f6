-- A claim sees to all its keys at once, in two statements, where it took two or three for each of them.

-- As in 0005: locks due jobs of ready keys, the key that waits longest first, each at most up to its cap, the places shared
-- evenly. Of the places, at most p_serial are for serial keys, whose cap is 1.
--
-- The jobs are looked at in a statement after the one that locks their keys, so that it sees what was committed until
-- then: a job whose move another claim has merged would otherwise be taken for none, and its key be put off.
CREATE OR REPLACE FUNCTION job_pick_keyed(p_queue text, p_limit integer, p_serial integer, p_now timestamptz) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_places tid[];
    v_keys text[];
    v_caps integer[];
    v_busy integer[];
    v_ids bigint[] := '{}';
    v_got bigint[];
    v_left integer := p_limit;
    v_serial integer := p_serial;
    v_serial_got integer;
    v_share integer;
BEGIN
    -- A key may have nothing due after all; then the next ones are looked at. Ends because each key that was looked at
    -- gets a next_at later than p_now.
    WHILE v_left > 0 LOOP
        SELECT array_agg(k.place), array_agg(k.key), array_agg(k.cap), array_agg(k.in_flight)
        INTO v_places, v_keys, v_caps, v_busy
        FROM (SELECT * FROM (
                  SELECT * FROM (SELECT ctid AS place, key, cap, in_flight, next_at FROM job_keys
                      WHERE queue = p_queue AND next_at <= p_now AND cap > 1
                      ORDER BY next_at LIMIT v_left FOR UPDATE SKIP LOCKED) wide
                  UNION ALL
                  SELECT * FROM (SELECT ctid AS place, key, cap, in_flight, next_at FROM job_keys
                      WHERE queue = p_queue AND next_at <= p_now AND cap <= 1
                      ORDER BY next_at LIMIT least(v_left, v_serial) FOR UPDATE SKIP LOCKED) serial
              ) both_kinds ORDER BY next_at LIMIT v_left) k;
        EXIT WHEN v_keys IS NULL;
        v_share := greatest(1, v_left / cardinality(v_keys));
        WITH picked AS MATERIALIZED (
            SELECT k.place, k.key, k.cap, k.in_flight + cardinality(j.ids) AS busy, cardinality(j.ids) < k.take AS is_short, j.ids
            FROM (SELECT *, greatest(0, least(cap - in_flight, v_share)) AS take
                  FROM unnest(v_places, v_keys, v_caps, v_busy) u (place, key, cap, in_flight)) k,
                LATERAL (SELECT coalesce(array_agg(t.id), '{}') AS ids
                    FROM (SELECT j.id FROM job_jobs j
                          WHERE j.queue = p_queue AND j.key = k.key AND j.run_at <= p_now AND j.lease_id IS NULL
                          ORDER BY j.run_at, j.id LIMIT k.take FOR UPDATE SKIP LOCKED) t) j
        ),
        seen AS (
            UPDATE job_keys k SET in_flight = p.busy, next_at = CASE
                WHEN p.busy >= p.cap THEN 'infinity'
                -- Nothing more is due, or it is locked: look again when the first that is left is due.
                WHEN p.is_short THEN coalesce((
                    SELECT greatest(j.run_at, clock_timestamp() + interval '1 microsecond') FROM job_jobs j
                    WHERE j.queue = p_queue AND j.key = p.key AND j.lease_id IS NULL AND j.id <> ALL (p.ids)
                    ORDER BY j.run_at, j.id LIMIT 1), 'infinity')
                ELSE clock_timestamp() + interval '1 microsecond' END
            FROM picked p WHERE k.ctid = p.place
        )
        SELECT coalesce(array_agg(i.id), '{}'), count(*) FILTER (WHERE p.cap <= 1) INTO v_got, v_serial_got
        FROM picked p, unnest(p.ids) i (id);
        v_ids := v_ids || v_got;
        v_left := v_left - cardinality(v_got);
        v_serial := v_serial - v_serial_got;
    END LOOP;
    RETURN v_ids;
END $$;
