-- Parking waits for this share, and this waits for parking.
select waiting_for, job_id from runs where tenant_id = $1 and run_id = $2 for share
