-- Completes one job without a key in a handler's own transaction. False: it is not under this lease any more, was
-- cancelled, or has a key; then `job_end` says what becomes of it.
CREATE FUNCTION job_done(p_id bigint, p_lease bigint) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    DELETE FROM job_jobs j WHERE j.id = p_id AND j.lease_id = p_lease AND NOT j.cancelled AND j.key IS NULL;
    RETURN FOUND;
END
$$;
