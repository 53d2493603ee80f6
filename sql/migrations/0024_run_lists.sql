-- Lists of runs by a flow of the tenant's own, and of dry runs. Turns of agents are in neither, and cost nothing.
create index runs_flow on runs (tenant_id, project_id, flow_id, run_id) where flow_id <> 'agent.turn';
create index runs_dry on runs (tenant_id, project_id, run_id) where dry_run;
