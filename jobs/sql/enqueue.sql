WITH added AS (
    INSERT INTO job_jobs (queue, name, payload, priority, run_at, max_attempts, key, key_cap)
    SELECT queue, name, payload::json, priority, clock_timestamp() + delay_ms * interval '1 millisecond',
           max_attempts, key, key_cap
    FROM unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::bigint[], $6::integer[], $7::text[], $8::integer[])
         WITH ORDINALITY AS i (queue, name, payload, priority, delay_ms, max_attempts, key, key_cap, place)
    ORDER BY place
    RETURNING id, queue, key, key_cap, run_at
),
moved AS (
    INSERT INTO job_key_moves (queue, key, cap, at)
    SELECT queue, key, (array_agg(key_cap ORDER BY id DESC))[1], min(run_at) FROM added WHERE key IS NOT NULL GROUP BY queue, key
)
SELECT id FROM added ORDER BY id
