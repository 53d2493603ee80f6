-- Completes jobs: deletes those that are still under the lease they were claimed by, and frees their keys. Mostly all
-- are under one lease. A job may come twice, under a lease that it lost and the one that it has.
--
-- The plan is kept and may have been made while the table was empty, so the statement names the rows by their ids:
-- whatever plan it has reads no others.
CREATE FUNCTION job_complete(p_ids bigint[], p_leases bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_lease bigint := CASE WHEN p_leases[1] = ALL (p_leases) THEN p_leases[1] END;
BEGIN
    RETURN QUERY
    WITH gone AS (
        DELETE FROM job_jobs j
        WHERE j.id = ANY (p_ids)
            AND (j.lease_id = v_lease OR v_lease IS NULL
                AND (j.id, j.lease_id) IN (SELECT u.id, u.lease_id FROM unnest(p_ids, p_leases) u (id, lease_id)))
        RETURNING j.id, j.queue, j.key
    ),
    moved AS (
        INSERT INTO job_key_moves (queue, key, freed)
        SELECT queue, key, count(*) FROM gone WHERE key IS NOT NULL GROUP BY queue, key
    )
    SELECT id FROM gone;
END
$$;
