-- Tools that are agents and flows of their project.

alter table agents add unique (tenant_id, project_id, agent_id);
-- The index of the constraint has the same columns.
drop index agents_project;

alter table tools
  drop constraint tools_target_check,
  -- What a call of the tool runs. `url` is empty then, and `timeout_ms` and `idempotent` mean nothing.
  add column agent_id uuid,
  -- Null: the live version, else the latest, when a run that calls the tool is taken up.
  add column agent_version text,
  -- `namespace.name`.
  add column flow_id text,
  -- As `agent_version`. It is there: no version is ever deleted.
  add column flow_version text,
  add constraint tools_target_check check (target in ('http', 'agent', 'flow')),
  add constraint tools_url_of_target_check check ((target = 'http') = (url <> '')),
  add constraint tools_agent_check check ((target = 'agent') = (agent_id is not null) and (agent_version is null or target = 'agent')),
  add constraint tools_flow_check check ((target = 'flow') = (flow_id is not null) and (flow_version is null or target = 'flow')),
  -- With the project: a tool calls what is of its own.
  add foreign key (tenant_id, project_id, agent_id) references agents (tenant_id, project_id, agent_id),
  add foreign key (tenant_id, agent_id, agent_version) references agent_versions,
  add foreign key (tenant_id, project_id, flow_id) references flows (tenant_id, project_id, flow_id);
