-- Lists of runs that failed, alone or of a flow. A run that does not fail is not in it, and costs nothing at its end.
create index runs_failed on runs (tenant_id, project_id, run_id) where failure_message is not null;
