-- Sums of usage read the calls alone: a call has the project, the agent and the time of its run. Older calls have none, and are
-- joined to their runs. The index has these alone, and costs nothing for new ones.
alter table run_model_calls
  add column project_id uuid,
  add column agent_id uuid,
  add column run_created_at timestamptz;
create index run_model_calls_without_project on run_model_calls (tenant_id, run_id) where project_id is null;
