select job_keep_lease(p_id => $1, p_lease => $2, p_ms => $3) as kept
