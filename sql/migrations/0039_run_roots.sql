-- Lists of runs without child runs. Child runs are in none of the first two, and cost nothing there.
create index runs_roots on runs (tenant_id, run_id) where parent_run_id is null;
create index runs_project_roots on runs (tenant_id, project_id, run_id) where parent_run_id is null;
-- Lists of runs that were cancelled, alone or of a flow. A run that is not cancelled is not in it, and costs nothing at its end.
create index runs_cancelled on runs (tenant_id, project_id, run_id) where cancel_requested_at is not null;
