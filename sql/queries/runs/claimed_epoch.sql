-- Under which epoch a run is held. The lock waits for a claim whose commit is still under way.
select lease_epoch from runs where tenant_id = $1 and run_id = $2 for share
