-- For how many milliseconds an attempt at the endpoint may still be in flight; 0: none is.
select job_key_standing(p_queue => 'webhooks', p_key => $1::uuid::text) as left_ms
