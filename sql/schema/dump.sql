-- The schema of a fresh database, written by a test. Change the baseline, a migration or a function instead, and then run:
-- UPDATE_GENERATED=1 cargo test --test it schema::

create table agent_runtime_function_sets (
  digest bytea not null,
  version text not null,
  applied_at timestamp with time zone not null default now(),
  constraint agent_runtime_function_sets_pkey PRIMARY KEY (digest)
);

create table agent_runtime_functions (
  name text not null,
  definition text not null,
  constraint agent_runtime_functions_pkey PRIMARY KEY (name)
);

create table agent_runtime_migrations (
  name text not null,
  digest bytea not null,
  applied_at timestamp with time zone not null default now(),
  constraint agent_runtime_migrations_pkey PRIMARY KEY (name)
);

create table agent_runtime_requirements (
  only_row boolean not null default true,
  oldest_binary text not null,
  constraint agent_runtime_requirements_pkey PRIMARY KEY (only_row),
  constraint agent_runtime_requirements_only_row_check CHECK (only_row)
);

create table agent_version_tools (
  tenant_id uuid not null,
  agent_id uuid not null,
  version text not null,
  "position" integer not null,
  tool_id uuid not null,
  constraint agent_version_tools_pkey PRIMARY KEY (tenant_id, agent_id, version, "position"),
  constraint agent_version_tools_tenant_id_agent_id_version_tool_id_key UNIQUE (tenant_id, agent_id, version, tool_id),
  constraint agent_version_tools_tenant_id_agent_id_version_fkey FOREIGN KEY (tenant_id, agent_id, version) REFERENCES agent_versions(tenant_id, agent_id, version),
  constraint agent_version_tools_tenant_id_tool_id_fkey FOREIGN KEY (tenant_id, tool_id) REFERENCES tools(tenant_id, tool_id)
);
CREATE INDEX agent_version_tools_tool ON agent_version_tools USING btree (tenant_id, tool_id);

create table agent_versions (
  tenant_id uuid not null,
  agent_id uuid not null,
  version text not null,
  "position" bigint not null,
  instructions text not null,
  model_provider_id uuid not null,
  model text not null,
  parameters json not null,
  limits json not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  output_schema json,
  overrides text[] not null default '{}'::text[],
  guardrails json not null default '[]'::json,
  streaming text not null default 'held'::text,
  constraint agent_versions_pkey PRIMARY KEY (tenant_id, agent_id, version),
  constraint agent_versions_tenant_id_agent_id_position_key UNIQUE (tenant_id, agent_id, "position"),
  constraint agent_versions_instructions_check CHECK (length(instructions) <= 200000),
  constraint agent_versions_overrides_check CHECK (overrides <@ ARRAY['model'::text, 'parameters'::text, 'limits'::text]),
  constraint agent_versions_position_check CHECK ("position" > 0),
  constraint agent_versions_streaming_check CHECK (streaming = ANY (ARRAY['held'::text, 'unchecked'::text])),
  constraint agent_versions_version_check CHECK (length(version) >= 5 AND length(version) <= 100),
  constraint agent_versions_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES agents(tenant_id, agent_id),
  constraint agent_versions_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint agent_versions_tenant_id_model_provider_id_model_fkey FOREIGN KEY (tenant_id, model_provider_id, model) REFERENCES models(tenant_id, model_provider_id, name)
);
CREATE INDEX agent_versions_model ON agent_versions USING btree (tenant_id, model_provider_id, model);

create table agents (
  tenant_id uuid not null,
  agent_id uuid not null,
  project_id uuid not null,
  name text not null,
  description text not null,
  latest_version text,
  live_version text,
  last_position bigint not null default 0,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  archived_at timestamp with time zone,
  constraint agents_pkey PRIMARY KEY (tenant_id, agent_id),
  constraint agents_tenant_id_project_id_agent_id_key UNIQUE (tenant_id, project_id, agent_id),
  constraint agents_tenant_id_project_id_name_key UNIQUE (tenant_id, project_id, name),
  constraint agents_description_check CHECK (length(description) <= 4000),
  constraint agents_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint agents_tenant_id_agent_id_latest_version_fkey FOREIGN KEY (tenant_id, agent_id, latest_version) REFERENCES agent_versions(tenant_id, agent_id, version),
  constraint agents_tenant_id_agent_id_live_version_fkey FOREIGN KEY (tenant_id, agent_id, live_version) REFERENCES agent_versions(tenant_id, agent_id, version),
  constraint agents_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint agents_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id)
);

create table approval_log (
  tenant_id uuid not null,
  approval_id uuid not null,
  "position" bigint not null default nextval('approval_log_position'::regclass),
  kind text not null,
  user_id uuid,
  token_id uuid,
  at timestamp with time zone not null,
  constraint approval_log_pkey PRIMARY KEY (tenant_id, approval_id, "position")
) partition by RANGE (approval_id);
CREATE INDEX approval_log_by_position ON ONLY public.approval_log USING btree ("position");
CREATE INDEX approval_log_by_tenant ON ONLY public.approval_log USING btree (tenant_id, "position");

create sequence approval_log_position;

create table approval_subjects (
  tenant_id uuid not null,
  approval_id uuid not null,
  run_id uuid not null,
  context json,
  tool text,
  arguments json,
  edited_arguments json,
  answer json,
  form json,
  earlier_call json,
  constraint approval_subjects_pkey PRIMARY KEY (tenant_id, approval_id)
) partition by RANGE (approval_id);

create table approvals (
  tenant_id uuid not null,
  approval_id uuid not null,
  project_id uuid not null,
  run_id uuid not null,
  root_run_id uuid not null,
  step integer not null,
  path text not null,
  source text not null,
  required_role text not null,
  title text not null,
  status text not null,
  requested_by uuid not null,
  assigned_to uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  escalate_at timestamp with time zone,
  escalate_role text,
  escalated_from uuid,
  escalated_to uuid,
  subject_digest bytea not null,
  closed_at timestamp with time zone,
  decided_by uuid,
  comment text,
  tool_id uuid,
  escalate_assignee text,
  constraint approvals_pkey PRIMARY KEY (tenant_id, approval_id),
  constraint approvals_check CHECK ((status = 'waiting'::text) = (closed_at IS NULL)),
  constraint approvals_check1 CHECK ((status = 'escalated'::text) = (escalated_to IS NOT NULL)),
  constraint approvals_check2 CHECK ((escalate_at IS NULL) = (escalate_role IS NULL)),
  constraint approvals_comment_check CHECK (char_length(comment) <= 4000),
  constraint approvals_escalate_role_check CHECK (escalate_role ~ '^[a-z0-9][a-z0-9-]{0,39}$'::text),
  constraint approvals_required_role_check CHECK (required_role ~ '^[a-z0-9][a-z0-9-]{0,39}$'::text),
  constraint approvals_status_check CHECK (status = ANY (ARRAY['waiting'::text, 'approved'::text, 'rejected'::text, 'escalated'::text, 'expired'::text, 'voided'::text])),
  constraint approvals_subject_digest_check CHECK (octet_length(subject_digest) = 32),
  constraint approvals_title_check CHECK (char_length(title) >= 1 AND char_length(title) <= 200)
);
CREATE INDEX approvals_project ON approvals USING btree (tenant_id, project_id, approval_id);
CREATE INDEX approvals_run ON approvals USING btree (tenant_id, run_id);
CREATE INDEX approvals_status ON approvals USING btree (tenant_id, status, approval_id);
CREATE INDEX approvals_waiting ON approvals USING btree (tenant_id, required_role, approval_id) WHERE (status = 'waiting'::text);

create table audit_anchors (
  slot integer not null,
  outcome text not null,
  through_position bigint not null,
  digest bytea not null,
  rows_purged bigint not null,
  purged_at timestamp with time zone not null,
  public_key bytea,
  signature bytea,
  constraint audit_anchors_pkey PRIMARY KEY (slot, outcome),
  constraint audit_anchors_check CHECK ((public_key IS NULL) = (signature IS NULL)),
  constraint audit_anchors_digest_check CHECK (length(digest) = 32),
  constraint audit_anchors_outcome_check CHECK (outcome = ANY (ARRAY['allowed'::text, 'denied'::text])),
  constraint audit_anchors_public_key_check CHECK (length(public_key) = 32),
  constraint audit_anchors_signature_check CHECK (length(signature) = 64)
);

create table audit_batches (
  slot integer not null,
  outcome text not null,
  first_position bigint not null,
  last_position bigint not null,
  row_count integer not null,
  decided_at timestamp with time zone not null,
  digest bytea not null,
  previous_digest bytea not null,
  constraint audit_batches_pkey PRIMARY KEY (slot, outcome, first_position, decided_at),
  constraint audit_batches_digest_check CHECK (length(digest) = 32),
  constraint audit_batches_previous_digest_check CHECK (length(previous_digest) = 32)
) partition by LIST (outcome);

create table audit_batches_allowed partition of audit_batches FOR VALUES IN ('allowed') partition by RANGE (decided_at);

create table audit_batches_denied partition of audit_batches FOR VALUES IN ('denied') partition by RANGE (decided_at);

create table audit_decisions (
  tenant_id uuid not null,
  slot integer not null,
  "position" bigint not null,
  decided_at timestamp with time zone not null,
  outcome text not null,
  id uuid not null,
  actor_subject text not null,
  action text not null,
  resource text not null,
  reason text not null,
  stage text not null,
  failing_part text,
  check_user text,
  check_relation text,
  check_object text,
  store_id text,
  model_id text,
  duration_us bigint not null,
  request_id uuid,
  trace_id text,
  key_id uuid,
  route text,
  run_id uuid,
  client_address text,
  credential_kind text
) partition by LIST (outcome);
CREATE INDEX audit_decisions_actor ON ONLY public.audit_decisions USING btree (tenant_id, actor_subject, slot, decided_at, "position");
CREATE INDEX audit_decisions_request ON ONLY public.audit_decisions USING btree (tenant_id, request_id, slot, decided_at, "position") WHERE (request_id IS NOT NULL);
CREATE INDEX audit_decisions_resource ON ONLY public.audit_decisions USING btree (tenant_id, resource, slot, decided_at, "position");
CREATE INDEX audit_decisions_run ON ONLY public.audit_decisions USING btree (tenant_id, run_id, slot, decided_at, "position") WHERE (run_id IS NOT NULL);
CREATE INDEX audit_decisions_slot ON ONLY public.audit_decisions USING btree (tenant_id, slot, decided_at, "position");
CREATE INDEX audit_decisions_time ON ONLY public.audit_decisions USING brin (decided_at) WITH (autosummarize='on');

create table audit_decisions_allowed partition of audit_decisions FOR VALUES IN ('allowed') partition by RANGE (decided_at);

create table audit_decisions_denied partition of audit_decisions FOR VALUES IN ('denied') partition by RANGE (decided_at);

create table audit_writers (
  slot integer not null,
  epoch bigint not null,
  "position" bigint not null,
  decided_at timestamp with time zone not null,
  allowed_digest bytea not null,
  denied_digest bytea not null,
  leased_until timestamp with time zone,
  constraint audit_writers_pkey PRIMARY KEY (slot),
  constraint audit_writers_allowed_digest_check CHECK (length(allowed_digest) = 32),
  constraint audit_writers_denied_digest_check CHECK (length(denied_digest) = 32),
  constraint audit_writers_slot_check CHECK (slot > 0)
) with (fillfactor=50);

create table authz_objects (
  tenant_id uuid not null,
  object text not null,
  desired bigint not null default 1,
  applied bigint not null default 0,
  constraint authz_objects_pkey PRIMARY KEY (tenant_id, object),
  constraint authz_objects_object_check CHECK (length(object) <= 200),
  constraint authz_objects_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
) with (fillfactor=70);
CREATE INDEX authz_objects_unapplied ON authz_objects USING btree (tenant_id, object) WHERE (applied < desired);

create table authz_stores (
  tenant_id uuid not null,
  store_id text not null,
  model_id text not null,
  model_version integer not null,
  model_digest bytea not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint authz_stores_pkey PRIMARY KEY (tenant_id),
  constraint authz_stores_model_digest_check CHECK (octet_length(model_digest) = 32),
  constraint authz_stores_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);

create type children_change as (
  taken_slots integer[],
  takes_all boolean,
  spawns boolean
);

create table conversation_messages (
  tenant_id uuid not null,
  conversation_id uuid not null,
  "position" bigint not null,
  role text not null,
  content text not null,
  run_id uuid not null,
  created_at timestamp with time zone not null,
  refused boolean not null default false,
  constraint conversation_messages_pkey PRIMARY KEY (tenant_id, conversation_id, "position"),
  constraint conversation_messages_position_check CHECK ("position" > 0),
  constraint conversation_messages_role_check CHECK (role = ANY (ARRAY['user'::text, 'assistant'::text])),
  constraint conversation_messages_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations(tenant_id, conversation_id)
);

create table conversations (
  tenant_id uuid not null,
  conversation_id uuid not null,
  project_id uuid not null,
  agent_id uuid not null,
  version text,
  title text not null,
  active_run_id uuid,
  last_position bigint not null default 0,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  erasure_requested_at timestamp with time zone,
  erased_at timestamp with time zone,
  constraint conversations_pkey PRIMARY KEY (tenant_id, conversation_id),
  constraint conversations_no_run_after_erasure CHECK (erasure_requested_at IS NULL OR active_run_id IS NULL) NOT VALID,
  constraint conversations_title_check CHECK (length(title) <= 200),
  constraint conversations_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES agents(tenant_id, agent_id),
  constraint conversations_tenant_id_agent_id_version_fkey FOREIGN KEY (tenant_id, agent_id, version) REFERENCES agent_versions(tenant_id, agent_id, version),
  constraint conversations_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint conversations_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id)
);
CREATE INDEX conversations_agent ON conversations USING btree (tenant_id, agent_id, conversation_id);
CREATE INDEX conversations_project ON conversations USING btree (tenant_id, project_id, conversation_id);

create table enrolments (
  tenant_id uuid not null,
  enrolment_id uuid not null,
  user_id uuid not null,
  digest bytea not null,
  created_by uuid,
  created_with uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  key_role text not null,
  key_capabilities text[] not null,
  key_project_id uuid,
  key_expires_at timestamp with time zone,
  constraint enrolments_pkey PRIMARY KEY (tenant_id, enrolment_id),
  constraint enrolments_check CHECK (key_expires_at >= expires_at),
  constraint enrolments_check1 CHECK ((created_by IS NULL) = (created_with IS NULL)),
  constraint enrolments_digest_check CHECK (octet_length(digest) = 32),
  constraint enrolments_key_capabilities_check CHECK (key_capabilities <@ '{access:write,env:write,keys:write,secrets:write}'::text[]),
  constraint enrolments_key_role_check CHECK (key_role = ANY (ARRAY['admin'::text, 'member'::text])),
  constraint enrolments_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint enrolments_tenant_id_key_project_id_fkey FOREIGN KEY (tenant_id, key_project_id) REFERENCES projects(tenant_id, project_id),
  constraint enrolments_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);
CREATE UNIQUE INDEX enrolments_digest ON enrolments USING btree (digest);
CREATE UNIQUE INDEX enrolments_open ON enrolments USING btree (tenant_id, user_id) WHERE (ended_at IS NULL);

create table environment_variables (
  tenant_id uuid not null,
  environment text not null,
  name text not null,
  value text not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_by uuid not null,
  updated_at timestamp with time zone not null,
  constraint environment_variables_pkey PRIMARY KEY (tenant_id, environment, name),
  constraint environment_variables_environment_check CHECK (environment ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'::text),
  constraint environment_variables_name_check CHECK (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'::text AND name !~* '^svc_'::text),
  constraint environment_variables_value_check CHECK (octet_length(value) <= 32768),
  constraint environment_variables_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint environment_variables_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id),
  constraint environment_variables_tenant_id_updated_by_fkey FOREIGN KEY (tenant_id, updated_by) REFERENCES users(tenant_id, user_id)
);
CREATE UNIQUE INDEX environment_variables_case ON environment_variables USING btree (tenant_id, environment, lower((name COLLATE "C")));

create type flow_progress as (
  format smallint,
  frames json,
  data json,
  context json,
  tasks integer,
  slots integer
);

create table flow_states (
  tenant_id uuid not null,
  run_id uuid not null,
  format smallint,
  frames json,
  data json,
  context json,
  tasks integer,
  slots integer,
  error json,
  constraint flow_states_pkey PRIMARY KEY (tenant_id, run_id),
  constraint flow_states_state_is_whole CHECK (num_nonnulls(format, frames, data, context, tasks, slots) = ANY (ARRAY[0, 6])) NOT VALID
) partition by RANGE (run_id);

create table flow_version_uses (
  tenant_id uuid not null,
  id uuid not null,
  version text not null,
  "position" integer not null,
  kind text not null,
  name text not null,
  tool_id uuid,
  agent_id uuid,
  used_id uuid,
  used_version text,
  constraint flow_version_uses_pkey PRIMARY KEY (tenant_id, id, version, "position"),
  constraint flow_version_uses_check CHECK (num_nonnulls(tool_id, agent_id, used_id) = 1),
  constraint flow_version_uses_kind_check CHECK (kind = ANY (ARRAY['tool'::text, 'agent'::text, 'flow'::text])),
  constraint flow_version_uses_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES agents(tenant_id, agent_id),
  constraint flow_version_uses_tenant_id_id_version_fkey FOREIGN KEY (tenant_id, id, version) REFERENCES flow_versions(tenant_id, id, version),
  constraint flow_version_uses_tenant_id_tool_id_fkey FOREIGN KEY (tenant_id, tool_id) REFERENCES tools(tenant_id, tool_id),
  constraint flow_version_uses_tenant_id_used_id_fkey FOREIGN KEY (tenant_id, used_id) REFERENCES flows(tenant_id, id)
);
CREATE INDEX flow_version_uses_tool ON flow_version_uses USING btree (tenant_id, tool_id) WHERE (tool_id IS NOT NULL);

create table flow_versions (
  tenant_id uuid not null,
  id uuid not null,
  version text not null,
  "position" bigint not null,
  definition json not null,
  digest bytea not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  constraint flow_versions_pkey PRIMARY KEY (tenant_id, id, version),
  constraint flow_versions_tenant_id_id_position_key UNIQUE (tenant_id, id, "position"),
  constraint flow_versions_digest_check CHECK (length(digest) = 32),
  constraint flow_versions_position_check CHECK ("position" > 0),
  constraint flow_versions_version_check CHECK (length(version) >= 5 AND length(version) <= 100),
  constraint flow_versions_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint flow_versions_tenant_id_id_fkey FOREIGN KEY (tenant_id, id) REFERENCES flows(tenant_id, id)
);

create table flows (
  tenant_id uuid not null,
  id uuid not null,
  project_id uuid not null,
  flow_id text not null,
  title text not null,
  description text not null,
  latest_version text,
  live_version text,
  last_position bigint not null default 0,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  archived_at timestamp with time zone,
  constraint flows_pkey PRIMARY KEY (tenant_id, id),
  constraint flows_tenant_id_project_id_flow_id_key UNIQUE (tenant_id, project_id, flow_id),
  constraint flows_description_check CHECK (length(description) <= 16384),
  constraint flows_flow_id_check CHECK (length(flow_id) >= 3 AND length(flow_id) <= 127),
  constraint flows_title_check CHECK (length(title) <= 200),
  constraint flows_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint flows_tenant_id_id_latest_version_fkey FOREIGN KEY (tenant_id, id, latest_version) REFERENCES flow_versions(tenant_id, id, version),
  constraint flows_tenant_id_id_live_version_fkey FOREIGN KEY (tenant_id, id, live_version) REFERENCES flow_versions(tenant_id, id, version),
  constraint flows_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id)
);
CREATE INDEX flows_flow ON flows USING btree (tenant_id, flow_id, id);
CREATE INDEX flows_project ON flows USING btree (tenant_id, project_id, id);

create type held_run as (
  tenant_id uuid,
  run_id uuid,
  epoch bigint,
  events_before bigint,
  root_run_id uuid,
  attempts_before integer
);

create table idempotency_keys (
  tenant_id uuid not null,
  principal text not null,
  route text not null,
  key text not null,
  body_digest bytea not null,
  object_id uuid not null,
  created_at timestamp with time zone not null,
  constraint idempotency_keys_pkey PRIMARY KEY (tenant_id, principal, route, key),
  constraint idempotency_keys_body_digest_check CHECK (octet_length(body_digest) = 32),
  constraint idempotency_keys_key_check CHECK (length(key) >= 1 AND length(key) <= 255),
  constraint idempotency_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys USING btree (created_at);

create table identities (
  tenant_id uuid not null,
  identity_id uuid not null,
  identity_provider_id uuid not null,
  subject text not null,
  user_id uuid not null,
  email_then text not null,
  bound_at timestamp with time zone not null,
  last_used_at timestamp with time zone not null,
  groups_fault text,
  constraint identities_pkey PRIMARY KEY (tenant_id, identity_id),
  constraint identities_tenant_id_identity_provider_id_subject_key UNIQUE (tenant_id, identity_provider_id, subject),
  constraint identities_tenant_id_identity_provider_id_user_id_key UNIQUE (tenant_id, identity_provider_id, user_id),
  constraint identities_email_then_check CHECK (length(email_then) >= 3 AND length(email_then) <= 320),
  constraint identities_groups_fault_check CHECK (groups_fault = ANY (ARRAY['groups-absent'::text, 'groups-left-out'::text])),
  constraint identities_subject_check CHECK (length(subject) >= 1 AND length(subject) <= 255),
  constraint identities_tenant_id_identity_provider_id_fkey FOREIGN KEY (tenant_id, identity_provider_id) REFERENCES identity_providers(tenant_id, identity_provider_id) ON DELETE CASCADE,
  constraint identities_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);
CREATE INDEX identities_user ON identities USING btree (tenant_id, user_id, identity_id);

create table identity_provider_domains (
  tenant_id uuid not null,
  managed_by text not null,
  domain text not null,
  identity_provider_id uuid not null,
  constraint identity_provider_domains_pkey PRIMARY KEY (tenant_id, managed_by, domain),
  constraint identity_provider_domains_domain_check CHECK (domain = lower(domain) AND length(domain) >= 1 AND length(domain) <= 253),
  constraint identity_provider_domains_tenant_id_identity_provider_id_fkey FOREIGN KEY (tenant_id, identity_provider_id) REFERENCES identity_providers(tenant_id, identity_provider_id) ON DELETE CASCADE
);
CREATE INDEX identity_provider_domains_provider ON identity_provider_domains USING btree (tenant_id, identity_provider_id);

create table identity_provider_groups (
  tenant_id uuid not null,
  identity_provider_id uuid not null,
  group_name text not null,
  team_id uuid not null,
  role text not null,
  constraint identity_provider_groups_pkey PRIMARY KEY (tenant_id, identity_provider_id, group_name, team_id),
  constraint identity_provider_groups_group_name_check CHECK (length(group_name) >= 1 AND length(group_name) <= 256),
  constraint identity_provider_groups_role_check CHECK (role = ANY (ARRAY['admin'::text, 'member'::text])),
  constraint identity_provider_groups_tenant_id_identity_provider_id_fkey FOREIGN KEY (tenant_id, identity_provider_id) REFERENCES identity_providers(tenant_id, identity_provider_id) ON DELETE CASCADE,
  constraint identity_provider_groups_tenant_id_team_id_fkey FOREIGN KEY (tenant_id, team_id) REFERENCES teams(tenant_id, team_id) ON DELETE CASCADE
);
CREATE INDEX identity_provider_groups_team ON identity_provider_groups USING btree (tenant_id, team_id);

create table identity_providers (
  tenant_id uuid not null,
  identity_provider_id uuid not null,
  managed_by text not null,
  name text not null,
  issuer text not null,
  client_id text not null,
  secret_environment text,
  secret_name text,
  scopes text[] not null,
  email_trust text not null,
  creates_people boolean not null,
  groups_claim text,
  retired_at timestamp with time zone,
  created_by uuid,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  groups_absent_at timestamp with time zone,
  groups_left_out_at timestamp with time zone,
  constraint identity_providers_pkey PRIMARY KEY (tenant_id, identity_provider_id),
  constraint identity_providers_tenant_id_managed_by_issuer_client_id_key UNIQUE (tenant_id, managed_by, issuer, client_id),
  constraint identity_providers_tenant_id_managed_by_name_key UNIQUE (tenant_id, managed_by, name),
  constraint identity_providers_check CHECK ((secret_environment IS NULL) = (secret_name IS NULL)),
  constraint identity_providers_check1 CHECK ((managed_by = 'operator'::text) = (created_by IS NULL)),
  constraint identity_providers_check2 CHECK (managed_by = 'tenant'::text OR secret_name IS NULL),
  constraint identity_providers_client_id_check CHECK (length(client_id) >= 1 AND length(client_id) <= 500),
  constraint identity_providers_email_trust_check CHECK (email_trust = ANY (ARRAY['claim'::text, 'provider'::text])),
  constraint identity_providers_groups_claim_check CHECK (length(groups_claim) >= 1 AND length(groups_claim) <= 200),
  constraint identity_providers_issuer_check CHECK (length(issuer) >= 1 AND length(issuer) <= 2048),
  constraint identity_providers_managed_by_check CHECK (managed_by = ANY (ARRAY['tenant'::text, 'operator'::text])),
  constraint identity_providers_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint identity_providers_scopes_check CHECK (cardinality(scopes) <= 20),
  constraint identity_providers_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint identity_providers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);
CREATE UNIQUE INDEX identity_providers_id ON identity_providers USING btree (identity_provider_id);

create table job_dead (
  id bigint not null,
  died_at timestamp with time zone not null default clock_timestamp(),
  enqueued_at timestamp with time zone not null,
  attempt integer not null,
  max_attempts integer not null,
  key_cap integer,
  priority smallint not null,
  queue text not null,
  name text not null,
  key text,
  fairness_key text,
  unique_key text,
  reason text not null,
  payload json not null,
  constraint job_dead_pkey PRIMARY KEY (id)
);
CREATE INDEX job_dead_by_queue ON job_dead USING btree (queue, id);
CREATE INDEX job_dead_by_time ON job_dead USING btree (died_at);

create table job_jobs (
  id bigint not null,
  lease_id bigint,
  run_at timestamp with time zone not null,
  enqueued_at timestamp with time zone not null default clock_timestamp(),
  attempt integer not null default 0,
  max_attempts integer not null,
  key_cap integer,
  priority smallint not null,
  cancelled boolean not null default false,
  queue text not null,
  name text not null,
  key text,
  fairness_key text,
  unique_key text,
  unique_held text,
  last_error text,
  payload json not null,
  constraint job_jobs_pkey PRIMARY KEY (id)
) with (fillfactor=45, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05);
CREATE INDEX job_jobs_by_unique_key ON job_jobs USING btree (queue, unique_key) WHERE (unique_key IS NOT NULL);
CREATE INDEX job_jobs_fair ON job_jobs USING btree (queue, fairness_key, run_at, id) WHERE (fairness_key IS NOT NULL);
CREATE INDEX job_jobs_keyed ON job_jobs USING btree (queue, key, run_at, id) WHERE (key IS NOT NULL);
CREATE INDEX job_jobs_plain ON job_jobs USING btree (queue, priority, run_at, id) WHERE (key IS NULL);
CREATE UNIQUE INDEX job_jobs_unique_held ON job_jobs USING btree (queue, unique_held) WHERE (unique_held IS NOT NULL);

create sequence job_jobs_id_seq;

create table job_key_moves (
  queue text not null,
  id bigint not null,
  key text not null,
  cap integer,
  freed integer not null default 0,
  constraint job_key_moves_pkey PRIMARY KEY (queue, id)
) with (autovacuum_vacuum_scale_factor=0.05);

create sequence job_key_moves_id_seq;

create table job_keys (
  queue text not null,
  key text not null,
  cap integer not null,
  in_flight integer not null,
  next_at timestamp with time zone not null,
  constraint job_keys_pkey PRIMARY KEY (queue, key)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.1);
CREATE INDEX job_keys_ready_serial ON job_keys USING btree (queue, next_at) WHERE (cap <= 1);
CREATE INDEX job_keys_ready_wide ON job_keys USING btree (queue, next_at) WHERE (cap > 1);

create sequence job_lease_ids;

create table job_leases (
  id bigint not null,
  expires_at timestamp with time zone not null,
  worker text not null,
  job_ids bigint[] not null,
  constraint job_leases_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.1);

create type model_call as (
  step integer,
  attempt integer,
  model_provider_id uuid,
  model text,
  outcome text,
  failure text,
  started_at timestamp with time zone,
  prompt_tokens bigint,
  completion_tokens bigint,
  cache_read_tokens bigint,
  cache_write_tokens bigint,
  reasoning_tokens bigint,
  prompt_price numeric,
  completion_price numeric,
  cache_read_price numeric,
  cache_write_price numeric,
  reasoning_price numeric
);

create table model_call_slots (
  tenant_id uuid not null,
  model_provider_id uuid not null,
  run_id uuid not null,
  lease_epoch bigint not null,
  asked_at timestamp with time zone not null,
  granted_at timestamp with time zone,
  constraint model_call_slots_pkey PRIMARY KEY (tenant_id, run_id),
  constraint model_call_slots_tenant_id_model_provider_id_fkey FOREIGN KEY (tenant_id, model_provider_id) REFERENCES model_providers(tenant_id, model_provider_id) ON DELETE CASCADE
);
CREATE INDEX model_call_slots_order ON model_call_slots USING btree (tenant_id, model_provider_id, asked_at, run_id);

create table model_providers (
  tenant_id uuid not null,
  model_provider_id uuid not null,
  name text not null,
  base_url text not null,
  api_key_name text,
  api_key_environment text,
  api_key_secret text,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  options json not null default '{}'::json,
  constraint model_providers_pkey PRIMARY KEY (tenant_id, model_provider_id),
  constraint model_providers_tenant_id_name_key UNIQUE (tenant_id, name),
  constraint model_providers_base_url_check CHECK (length(base_url) <= 2048),
  constraint model_providers_check CHECK ((api_key_environment IS NULL) = (api_key_secret IS NULL)),
  constraint model_providers_check1 CHECK (api_key_name IS NULL OR api_key_secret IS NULL),
  constraint model_providers_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint model_providers_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint model_providers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);

create table models (
  tenant_id uuid not null,
  model_provider_id uuid not null,
  name text not null,
  prompt_price numeric(20,10),
  completion_price numeric(20,10),
  cache_read_price numeric(20,10),
  cache_write_price numeric(20,10),
  reasoning_price numeric(20,10),
  context_window integer,
  constraint models_pkey PRIMARY KEY (tenant_id, model_provider_id, name),
  constraint models_cache_read_price_check CHECK (cache_read_price >= 0::numeric),
  constraint models_cache_write_price_check CHECK (cache_write_price >= 0::numeric),
  constraint models_completion_price_check CHECK (completion_price >= 0::numeric),
  constraint models_context_window_check CHECK (context_window >= 256 AND context_window <= 100000000),
  constraint models_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint models_prompt_price_check CHECK (prompt_price >= 0::numeric),
  constraint models_reasoning_price_check CHECK (reasoning_price >= 0::numeric),
  constraint models_tenant_id_model_provider_id_fkey FOREIGN KEY (tenant_id, model_provider_id) REFERENCES model_providers(tenant_id, model_provider_id)
);

create table org_admins (
  tenant_id uuid not null,
  org_id uuid not null,
  user_id uuid not null,
  joined_at timestamp with time zone not null,
  constraint org_admins_pkey PRIMARY KEY (tenant_id, org_id, user_id),
  constraint org_admins_tenant_id_org_id_fkey FOREIGN KEY (tenant_id, org_id) REFERENCES orgs(tenant_id, org_id),
  constraint org_admins_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);
CREATE INDEX org_admins_user ON org_admins USING btree (tenant_id, user_id);

create table orgs (
  tenant_id uuid not null,
  org_id uuid not null,
  name text not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint orgs_pkey PRIMARY KEY (tenant_id, org_id),
  constraint orgs_tenant_id_name_key UNIQUE (tenant_id, name),
  constraint orgs_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint orgs_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint orgs_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);

create table policies (
  tenant_id uuid not null,
  project_id uuid,
  version integer not null,
  guardrails json not null,
  streaming text not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  constraint policies_streaming_check CHECK (streaming = ANY (ARRAY['held'::text, 'unchecked'::text])),
  constraint policies_version_check CHECK (version > 0),
  constraint policies_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint policies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id),
  constraint policies_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id)
);
CREATE UNIQUE INDEX policies_of_project ON policies USING btree (tenant_id, project_id, version) WHERE (project_id IS NOT NULL);
CREATE UNIQUE INDEX policies_of_tenant ON policies USING btree (tenant_id, version) WHERE (project_id IS NULL);

create table project_direct_roles (
  tenant_id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  role text not null,
  constraint project_direct_roles_pkey PRIMARY KEY (tenant_id, project_id, user_id),
  constraint project_direct_roles_role_check CHECK (role = ANY (ARRAY['owner'::text, 'admin'::text, 'editor'::text, 'viewer'::text])),
  constraint project_direct_roles_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id),
  constraint project_direct_roles_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);
CREATE INDEX project_direct_roles_user_project ON project_direct_roles USING btree (tenant_id, user_id, project_id);

create table project_memberships (
  tenant_id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  role text not null,
  joined_at timestamp with time zone not null,
  constraint project_memberships_pkey PRIMARY KEY (tenant_id, project_id, user_id),
  constraint project_memberships_role_check CHECK (role = ANY (ARRAY['owner'::text, 'admin'::text, 'editor'::text, 'viewer'::text, 'member'::text])),
  constraint project_memberships_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id),
  constraint project_memberships_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);
CREATE INDEX project_memberships_user_project ON project_memberships USING btree (tenant_id, user_id, project_id);

create view project_ways as
 SELECT m.tenant_id,
    m.project_id,
    m.user_id,
    'direct'::text AS via,
        CASE m.role
            WHEN 'member'::text THEN 'viewer'::text
            ELSE m.role
        END AS role,
    m.joined_at,
    NULL::uuid AS team_id
   FROM project_memberships m
     JOIN users u ON u.tenant_id = m.tenant_id AND u.user_id = m.user_id AND u.deactivated_at IS NULL
UNION ALL
 SELECT d.tenant_id,
    d.project_id,
    d.user_id,
    'direct'::text AS via,
    d.role,
    NULL::timestamp with time zone AS joined_at,
    NULL::uuid AS team_id
   FROM project_direct_roles d
     JOIN users u ON u.tenant_id = d.tenant_id AND u.user_id = d.user_id AND u.deactivated_at IS NULL
  WHERE NOT (EXISTS ( SELECT
           FROM project_memberships m
          WHERE m.tenant_id = d.tenant_id AND m.project_id = d.project_id AND m.user_id = d.user_id))
UNION ALL
 SELECT p.tenant_id,
    p.project_id,
    a.user_id,
    'org-admin'::text AS via,
    'admin'::text AS role,
    NULL::timestamp with time zone AS joined_at,
    NULL::uuid AS team_id
   FROM projects p
     JOIN org_admins a ON a.tenant_id = p.tenant_id AND a.org_id = p.org_id
     JOIN users u ON u.tenant_id = a.tenant_id AND u.user_id = a.user_id AND u.deactivated_at IS NULL
UNION ALL
 SELECT g.tenant_id,
    g.project_id,
    t.user_id,
    'team'::text AS via,
    g.role,
    NULL::timestamp with time zone AS joined_at,
    g.team_id
   FROM team_grants g
     JOIN team_memberships t ON t.tenant_id = g.tenant_id AND t.team_id = g.team_id
     JOIN users u ON u.tenant_id = t.tenant_id AND u.user_id = t.user_id AND u.deactivated_at IS NULL;

create table projects (
  tenant_id uuid not null,
  project_id uuid not null,
  org_id uuid,
  name text not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  archived_at timestamp with time zone,
  constraint projects_pkey PRIMARY KEY (tenant_id, project_id),
  constraint projects_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint projects_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint projects_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id),
  constraint projects_tenant_id_org_id_fkey FOREIGN KEY (tenant_id, org_id) REFERENCES orgs(tenant_id, org_id)
);
CREATE INDEX projects_org ON projects USING btree (tenant_id, org_id, project_id) WHERE (org_id IS NOT NULL);

create table reviewers (
  tenant_id uuid not null,
  user_id uuid not null,
  role text not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  constraint reviewers_pkey PRIMARY KEY (tenant_id, user_id, role),
  constraint reviewers_role_check CHECK (role ~ '^[a-z0-9][a-z0-9-]{0,39}$'::text),
  constraint reviewers_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint reviewers_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);

create table run_checks (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  ordinal integer not null,
  point text not null,
  call integer,
  name text not null,
  evaluator text not null,
  origin text not null,
  policy_version integer,
  verdict text not null,
  code text,
  reason text,
  on_error text,
  duration_us bigint not null,
  digest bytea not null,
  created_at timestamp with time zone not null,
  constraint run_checks_pkey PRIMARY KEY (tenant_id, run_id, step, attempt, ordinal),
  constraint run_checks_on_error_check CHECK (on_error = ANY (ARRAY['block'::text, 'allow-unsafely'::text])),
  constraint run_checks_origin_check CHECK (origin = ANY (ARRAY['tenant'::text, 'project'::text, 'agent'::text])),
  constraint run_checks_point_check CHECK (point = ANY (ARRAY['input'::text, 'tool.arguments'::text, 'tool.result'::text, 'output'::text])),
  constraint run_checks_verdict_check CHECK (verdict = ANY (ARRAY['allow'::text, 'block'::text, 'redact'::text, 'approve'::text, 'failed'::text]))
) partition by RANGE (run_id);

create table run_children (
  tenant_id uuid not null,
  parent_run_id uuid not null,
  slot integer not null,
  child_run_id uuid not null,
  path text not null,
  state text not null,
  seen boolean not null default false,
  calls bigint not null default 0,
  cost_usd numeric(30,15) not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cache_read_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  constraint run_children_pkey PRIMARY KEY (tenant_id, parent_run_id, slot)
) partition by RANGE (parent_run_id);
CREATE INDEX run_children_failed ON ONLY public.run_children USING btree (tenant_id, parent_run_id, slot) WHERE (state = ANY (ARRAY['failed'::text, 'cancelled'::text]));
CREATE INDEX run_children_unseen ON ONLY public.run_children USING btree (tenant_id, parent_run_id, slot) WHERE (NOT seen);

create sequence run_delta_position;

create unlogged table run_deltas (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  text_offset integer not null,
  text text not null,
  "position" bigint not null default nextval('run_delta_position'::regclass),
  constraint run_deltas_pkey PRIMARY KEY (tenant_id, run_id, step, attempt, text_offset)
);
CREATE INDEX run_deltas_position ON run_deltas USING btree ("position");

create type run_end as (
  failure text,
  output json,
  message text,
  flow_error json,
  job_id bigint,
  lease_id bigint,
  parent_run_id uuid,
  parent_slot integer,
  is_announced boolean
);

create sequence run_event_position;

create table run_events (
  tenant_id uuid not null,
  run_id uuid not null,
  seq bigint not null,
  "position" bigint not null default nextval('run_event_position'::regclass),
  kind text not null,
  data json not null,
  created_at timestamp with time zone not null,
  constraint run_events_pkey PRIMARY KEY (tenant_id, run_id, seq)
) partition by RANGE (run_id);
CREATE INDEX run_events_position ON ONLY public.run_events USING btree ("position");

create table run_hold (
  is_held boolean not null default true,
  since timestamp with time zone not null,
  constraint run_hold_pkey PRIMARY KEY (is_held),
  constraint run_hold_is_held_check CHECK (is_held)
);

create table run_labels (
  tenant_id uuid not null,
  project_id uuid not null,
  key text not null,
  value text not null,
  run_id uuid not null,
  constraint run_labels_pkey PRIMARY KEY (tenant_id, key, value, project_id, run_id)
);

create table run_model_calls (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  model_provider_id uuid not null,
  model text not null,
  outcome text not null,
  failure text,
  prompt_tokens bigint,
  completion_tokens bigint,
  cache_read_tokens bigint,
  cache_write_tokens bigint,
  reasoning_tokens bigint,
  prompt_price numeric(20,10),
  completion_price numeric(20,10),
  cache_read_price numeric(20,10),
  cache_write_price numeric(20,10),
  reasoning_price numeric(20,10),
  cost_usd numeric(30,15),
  started_at timestamp with time zone not null,
  completed_at timestamp with time zone not null,
  project_id uuid,
  agent_id uuid,
  run_created_at timestamp with time zone,
  constraint run_model_calls_pkey PRIMARY KEY (tenant_id, run_id, step, attempt)
) partition by RANGE (run_id);
CREATE INDEX run_model_calls_without_project ON ONLY public.run_model_calls USING btree (tenant_id, run_id) WHERE (project_id IS NULL);

create table run_payloads (
  tenant_id uuid not null,
  run_id uuid not null,
  input json not null,
  output json,
  webhook_event_id uuid,
  options json,
  constraint run_payloads_pkey PRIMARY KEY (tenant_id, run_id)
) partition by RANGE (run_id);

create unlogged table run_reasoning (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  text_offset integer not null,
  text text not null,
  "position" bigint not null default nextval('run_delta_position'::regclass),
  constraint run_reasoning_pkey PRIMARY KEY (tenant_id, run_id, step, attempt, text_offset)
);
CREATE INDEX run_reasoning_position ON run_reasoning USING btree ("position");

create table run_retries (
  tenant_id uuid not null,
  run_id uuid not null,
  retried_by uuid not null,
  constraint run_retries_pkey PRIMARY KEY (tenant_id, run_id)
);

create view run_rows as
 SELECT tenant_id,
    run_id,
    project_id,
    flow_id,
    flow_version,
    status,
    origin,
    parent_run_id,
    parent_slot,
    root_run_id,
    dry_run,
    agent_id,
    agent_version,
    conversation_id,
    via,
    failure_message,
    cancel_requested_at,
    created_by,
    created_at,
    started_at,
    completed_at,
    waiting_for,
    wake_at,
    parked_at,
    parked_ms,
    lease_epoch,
    last_seq,
    calls,
    cost_usd::double precision AS cost_usd,
    prompt_tokens,
    completion_tokens,
    cache_read_tokens,
    cache_write_tokens,
    reasoning_tokens,
    payload_erased_at,
    labels,
    retry_of,
    failure_summary
   FROM runs;

create table run_steps (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  kind text not null,
  name text not null,
  status text not null,
  attempt integer not null,
  failures integer not null default 0,
  request json not null,
  result json,
  started_at timestamp with time zone not null,
  completed_at timestamp with time zone,
  path text not null default ''::text,
  format smallint not null default 1,
  constraint run_steps_pkey PRIMARY KEY (tenant_id, run_id, step)
) partition by RANGE (run_id);

create type run_wait as (
  waits_for text,
  wakes_at timestamp with time zone,
  approval_id uuid
);

create table runs (
  tenant_id uuid not null,
  run_id uuid not null,
  project_id uuid not null,
  flow_id text not null,
  flow_version text not null,
  status text not null,
  origin text not null,
  parent_run_id uuid,
  parent_step integer,
  parent_slot integer,
  root_run_id uuid not null,
  branch text,
  dry_run boolean not null,
  agent_id uuid,
  agent_version text,
  conversation_id uuid,
  via text,
  failure_message text,
  cancel_requested_at timestamp with time zone,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  started_at timestamp with time zone,
  completed_at timestamp with time zone,
  waiting_for text,
  wake_at timestamp with time zone,
  parked_at timestamp with time zone,
  parked_ms bigint not null default 0,
  job_id bigint,
  lease_epoch bigint not null default 0,
  last_seq bigint not null default 0,
  calls bigint not null default 0,
  cost_usd numeric(30,15) not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cache_read_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  payload_erased_at timestamp with time zone,
  labels json,
  retry_of uuid,
  attempts_before_progress integer not null default 0,
  failure_summary text,
  request_id uuid,
  constraint runs_pkey PRIMARY KEY (tenant_id, run_id)
) with (fillfactor=70);
CREATE INDEX runs_agent ON runs USING btree (tenant_id, agent_id, run_id);
CREATE INDEX runs_cancelled ON runs USING btree (tenant_id, project_id, run_id) WHERE (cancel_requested_at IS NOT NULL);
CREATE INDEX runs_conversation ON runs USING btree (tenant_id, conversation_id, run_id);
CREATE INDEX runs_dry ON runs USING btree (tenant_id, project_id, run_id) WHERE dry_run;
CREATE INDEX runs_failed ON runs USING btree (tenant_id, project_id, run_id) WHERE (failure_message IS NOT NULL);
CREATE INDEX runs_flow ON runs USING btree (tenant_id, project_id, flow_id, run_id) WHERE (flow_id <> 'agent.turn'::text);
CREATE INDEX runs_project ON runs USING btree (tenant_id, project_id, run_id);
CREATE INDEX runs_project_roots ON runs USING btree (tenant_id, project_id, run_id) WHERE (parent_run_id IS NULL);
CREATE INDEX runs_roots ON runs USING btree (tenant_id, run_id) WHERE (parent_run_id IS NULL);
CREATE INDEX runs_tree ON runs USING btree (tenant_id, root_run_id, run_id) WHERE (parent_run_id IS NOT NULL);

create table secret_uses (
  tenant_id uuid not null,
  secret_use_id uuid not null,
  name text not null,
  project_id uuid,
  target text not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  constraint secret_uses_pkey PRIMARY KEY (tenant_id, secret_use_id),
  constraint secret_uses_name_check CHECK (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'::text AND name !~* '^svc_'::text),
  constraint secret_uses_target_check CHECK (length(target) >= 1 AND length(target) <= 2100),
  constraint secret_uses_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint secret_uses_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id),
  constraint secret_uses_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id)
);
CREATE UNIQUE INDEX secret_uses_of_project ON secret_uses USING btree (tenant_id, name, target, project_id) WHERE (project_id IS NOT NULL);
CREATE UNIQUE INDEX secret_uses_of_tenant ON secret_uses USING btree (tenant_id, name, target) WHERE (project_id IS NULL);

create table secret_versions (
  tenant_id uuid not null,
  environment text not null,
  name text not null,
  version integer not null,
  format smallint not null,
  nonce bytea not null,
  ciphertext bytea not null,
  wrapping_key text not null,
  wrapped_data_key bytea not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  wrapped_at timestamp with time zone not null,
  constraint secret_versions_pkey PRIMARY KEY (tenant_id, environment, name, version),
  constraint secret_versions_ciphertext_check CHECK (octet_length(ciphertext) >= 17 AND octet_length(ciphertext) <= 65552),
  constraint secret_versions_format_check CHECK (format = 1),
  constraint secret_versions_nonce_check CHECK (octet_length(nonce) = 12),
  constraint secret_versions_version_check CHECK (version > 0),
  constraint secret_versions_wrapped_data_key_check CHECK (octet_length(wrapped_data_key) >= 32 AND octet_length(wrapped_data_key) <= 4096),
  constraint secret_versions_wrapping_key_check CHECK (length(wrapping_key) >= 1 AND length(wrapping_key) <= 1000),
  constraint secret_versions_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint secret_versions_tenant_id_environment_name_fkey FOREIGN KEY (tenant_id, environment, name) REFERENCES secrets(tenant_id, environment, name) ON DELETE CASCADE
);

create table secrets (
  tenant_id uuid not null,
  environment text not null,
  name text not null,
  version integer not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint secrets_pkey PRIMARY KEY (tenant_id, environment, name),
  constraint secrets_environment_check CHECK (environment ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'::text),
  constraint secrets_name_check CHECK (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'::text AND name !~* '^svc_'::text),
  constraint secrets_version_check CHECK (version > 0),
  constraint secrets_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint secrets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);

create table sessions (
  tenant_id uuid not null,
  session_id uuid not null,
  user_id uuid not null,
  digest bytea not null,
  method text not null,
  token_id uuid,
  role text not null,
  capabilities text[] not null,
  project_id uuid,
  keys_expire_at timestamp with time zone,
  client_address inet not null,
  user_agent text,
  created_at timestamp with time zone not null,
  active_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  identity_provider_id uuid,
  idle_seconds integer,
  constraint sessions_pkey PRIMARY KEY (tenant_id, session_id),
  constraint sessions_capabilities_check CHECK (capabilities <@ '{access:write,env:write,keys:write,secrets:write}'::text[]),
  constraint sessions_digest_check CHECK (octet_length(digest) = 32),
  constraint sessions_method_check CHECK (method = ANY (ARRAY['token'::text, 'enrolment'::text, 'development'::text, 'provider'::text])),
  constraint sessions_role_check CHECK (role = ANY (ARRAY['admin'::text, 'member'::text])),
  constraint sessions_user_agent_check CHECK (char_length(user_agent) <= 300),
  constraint sessions_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id),
  constraint sessions_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
) with (fillfactor=70);
CREATE UNIQUE INDEX sessions_digest ON sessions USING btree (digest);
CREATE INDEX sessions_ended ON sessions USING btree (tenant_id, user_id, ended_at, session_id) WHERE (ended_at IS NOT NULL);
CREATE INDEX sessions_over ON sessions USING btree (LEAST(ended_at, expires_at));
CREATE INDEX sessions_user ON sessions USING btree (tenant_id, user_id, session_id) WHERE (ended_at IS NULL);

create table sign_in_settings (
  tenant_id uuid not null,
  token_sign_in text not null,
  session_idle_minutes integer,
  session_hours integer,
  changed_by uuid not null,
  changed_at timestamp with time zone not null,
  constraint sign_in_settings_pkey PRIMARY KEY (tenant_id),
  constraint sign_in_settings_session_hours_check CHECK (session_hours >= 1 AND session_hours <= 720),
  constraint sign_in_settings_session_idle_minutes_check CHECK (session_idle_minutes >= 1 AND session_idle_minutes <= 43200),
  constraint sign_in_settings_token_sign_in_check CHECK (token_sign_in = ANY (ARRAY['on'::text, 'admins'::text, 'off'::text])),
  constraint sign_in_settings_tenant_id_changed_by_fkey FOREIGN KEY (tenant_id, changed_by) REFERENCES users(tenant_id, user_id),
  constraint sign_in_settings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);

create type step_begin as (
  step integer,
  kind text,
  name text,
  path text,
  attempt integer,
  failures integer,
  request json
);

create type step_end as (
  step integer,
  status text,
  result json,
  failures integer
);

create table team_grants (
  tenant_id uuid not null,
  project_id uuid not null,
  team_id uuid not null,
  role text not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint team_grants_pkey PRIMARY KEY (tenant_id, project_id, team_id),
  constraint team_grants_role_check CHECK (role = ANY (ARRAY['admin'::text, 'editor'::text, 'viewer'::text])),
  constraint team_grants_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint team_grants_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id),
  constraint team_grants_tenant_id_team_id_fkey FOREIGN KEY (tenant_id, team_id) REFERENCES teams(tenant_id, team_id) ON DELETE CASCADE
);
CREATE INDEX team_grants_team ON team_grants USING btree (tenant_id, team_id, project_id);

create table team_memberships (
  tenant_id uuid not null,
  team_id uuid not null,
  user_id uuid not null,
  role text not null,
  joined_at timestamp with time zone not null,
  source_provider_id uuid,
  constraint team_memberships_pkey PRIMARY KEY (tenant_id, team_id, user_id),
  constraint team_memberships_role_check CHECK (role = ANY (ARRAY['admin'::text, 'member'::text])),
  constraint team_memberships_tenant_id_team_id_fkey FOREIGN KEY (tenant_id, team_id) REFERENCES teams(tenant_id, team_id) ON DELETE CASCADE,
  constraint team_memberships_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);
CREATE INDEX team_memberships_user ON team_memberships USING btree (tenant_id, user_id);

create table teams (
  tenant_id uuid not null,
  team_id uuid not null,
  name text not null,
  slug text not null,
  description text,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint teams_pkey PRIMARY KEY (tenant_id, team_id),
  constraint teams_tenant_id_slug_key UNIQUE (tenant_id, slug),
  constraint teams_description_check CHECK (length(description) <= 4000),
  constraint teams_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint teams_slug_check CHECK (slug ~ '^[a-z0-9-]{1,100}$'::text),
  constraint teams_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint teams_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);

create table tenants (
  tenant_id uuid not null,
  name text not null,
  created_at timestamp with time zone not null,
  constraint tenants_pkey PRIMARY KEY (tenant_id),
  constraint tenants_name_check CHECK (length(name) >= 1 AND length(name) <= 200)
);

create table tokens (
  tenant_id uuid not null,
  token_id uuid not null,
  user_id uuid not null,
  name text not null,
  digest bytea not null,
  last_four text not null,
  role text not null default 'admin'::text,
  capabilities text[] not null default '{access:write,env:write,keys:write,secrets:write}'::text[],
  project_id uuid,
  seed boolean not null default false,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint tokens_pkey PRIMARY KEY (tenant_id, token_id),
  constraint tokens_capabilities_check CHECK (capabilities <@ '{access:write,env:write,keys:write,secrets:write}'::text[]),
  constraint tokens_digest_check CHECK (octet_length(digest) = 32),
  constraint tokens_name_check CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint tokens_role_check CHECK (role = ANY (ARRAY['admin'::text, 'member'::text])),
  constraint tokens_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id),
  constraint tokens_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES users(tenant_id, user_id)
);
CREATE UNIQUE INDEX tokens_digest ON tokens USING btree (digest);
CREATE INDEX tokens_seed ON tokens USING btree (tenant_id) WHERE seed;
CREATE INDEX tokens_user ON tokens USING btree (tenant_id, user_id, token_id);

create table tools (
  tenant_id uuid not null,
  tool_id uuid not null,
  project_id uuid not null,
  name text not null,
  description text not null,
  arguments_schema json not null,
  url text not null,
  timeout_ms integer not null,
  idempotent boolean not null,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  target text not null default 'http'::text,
  secret_headers json not null default '[]'::json,
  signing_secret text,
  approval json,
  agent_id uuid,
  agent_version text,
  flow_id text,
  flow_version text,
  dry_run text not null default 'simulate'::text,
  constraint tools_pkey PRIMARY KEY (tenant_id, tool_id),
  constraint tools_tenant_id_project_id_name_key UNIQUE (tenant_id, project_id, name),
  constraint tools_agent_check CHECK ((target = 'agent'::text) = (agent_id IS NOT NULL) AND (agent_version IS NULL OR target = 'agent'::text)),
  constraint tools_description_check CHECK (length(description) <= 4000),
  constraint tools_dry_run_check CHECK (dry_run = ANY (ARRAY['call'::text, 'simulate'::text])),
  constraint tools_flow_check CHECK ((target = 'flow'::text) = (flow_id IS NOT NULL) AND (flow_version IS NULL OR target = 'flow'::text)),
  constraint tools_name_check CHECK (name ~ '^[a-zA-Z0-9_-]{1,64}$'::text),
  constraint tools_signing_secret_check CHECK (length(signing_secret) <= 128),
  constraint tools_target_check CHECK (target = ANY (ARRAY['http'::text, 'agent'::text, 'flow'::text])),
  constraint tools_timeout_ms_check CHECK (timeout_ms >= 1 AND timeout_ms <= 600000),
  constraint tools_url_check CHECK (length(url) <= 2048),
  constraint tools_url_of_target_check CHECK ((target = 'http'::text) = (url <> ''::text)),
  constraint tools_tenant_id_agent_id_agent_version_fkey FOREIGN KEY (tenant_id, agent_id, agent_version) REFERENCES agent_versions(tenant_id, agent_id, version),
  constraint tools_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint tools_tenant_id_project_id_agent_id_fkey FOREIGN KEY (tenant_id, project_id, agent_id) REFERENCES agents(tenant_id, project_id, agent_id),
  constraint tools_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id),
  constraint tools_tenant_id_project_id_flow_id_fkey FOREIGN KEY (tenant_id, project_id, flow_id) REFERENCES flows(tenant_id, project_id, flow_id)
);
CREATE INDEX tools_project ON tools USING btree (tenant_id, project_id, tool_id);

create table users (
  tenant_id uuid not null,
  user_id uuid not null,
  kind text not null default 'person'::text,
  display_name text not null,
  email text,
  email_key text,
  tenant_role text not null default 'admin'::text,
  created_by uuid,
  created_at timestamp with time zone not null,
  deactivated_at timestamp with time zone,
  constraint users_pkey PRIMARY KEY (tenant_id, user_id),
  constraint users_check CHECK ((email_key IS NULL) = (email IS NULL)),
  constraint users_check1 CHECK (kind = 'person'::text OR tenant_role = 'member'::text AND email IS NULL),
  constraint users_display_name_check CHECK (length(display_name) >= 1 AND length(display_name) <= 200),
  constraint users_email_check CHECK (length(email) >= 3 AND length(email) <= 320),
  constraint users_kind_check CHECK (kind = ANY (ARRAY['person'::text, 'service-account'::text])),
  constraint users_tenant_role_check CHECK (tenant_role = ANY (ARRAY['admin'::text, 'member'::text])),
  constraint users_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint users_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)
);
CREATE INDEX users_admin ON users USING btree (tenant_id, user_id) WHERE ((tenant_role = 'admin'::text) AND (deactivated_at IS NULL));
CREATE UNIQUE INDEX users_email ON users USING btree (tenant_id, email_key);

create table webhook_attempts (
  tenant_id uuid not null,
  delivery_id uuid not null,
  attempt integer not null,
  endpoint_id uuid not null,
  begun_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  duration_ms integer,
  reason text,
  status smallint,
  message text,
  address inet,
  answer bytea,
  constraint webhook_attempts_pkey PRIMARY KEY (tenant_id, delivery_id, attempt)
) partition by RANGE (delivery_id);

create table webhook_deliveries (
  tenant_id uuid not null,
  delivery_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  type text not null,
  run_id uuid,
  resends uuid,
  resent_as uuid,
  state text not null,
  attempts integer not null default 0,
  next_attempt_at timestamp with time zone,
  last_error text,
  last_status smallint,
  job_id bigint,
  created_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint webhook_deliveries_pkey PRIMARY KEY (tenant_id, delivery_id)
) partition by RANGE (delivery_id);
CREATE INDEX webhook_deliveries_state ON ONLY public.webhook_deliveries USING btree (tenant_id, endpoint_id, state, delivery_id);
CREATE INDEX webhook_deliveries_waiting ON ONLY public.webhook_deliveries USING btree (event_id) WHERE (state = 'being-sent'::text);

create table webhook_endpoint_counts (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  delivered bigint not null default 0,
  failed bigint not null default 0,
  is_failing boolean not null default false,
  is_slow boolean not null default false,
  last_delivered_at timestamp with time zone,
  last_failed_at timestamp with time zone,
  last_error text,
  last_status smallint,
  constraint webhook_endpoint_counts_pkey PRIMARY KEY (tenant_id, endpoint_id),
  constraint webhook_endpoint_counts_tenant_id_endpoint_id_fkey FOREIGN KEY (tenant_id, endpoint_id) REFERENCES webhook_endpoints(tenant_id, endpoint_id) ON DELETE CASCADE
) with (fillfactor=50);

create table webhook_endpoints (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  url text not null,
  events text[] not null,
  secret_environment text not null,
  secret_name text not null,
  previous_environment text,
  previous_name text,
  previous_until timestamp with time zone,
  has_filter boolean not null,
  flow_ids text[],
  project_id uuid,
  include_dry_runs boolean,
  created_by uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  unregistered_at timestamp with time zone,
  constraint webhook_endpoints_pkey PRIMARY KEY (tenant_id, endpoint_id),
  constraint webhook_endpoints_check CHECK ((previous_environment IS NULL) = (previous_name IS NULL)),
  constraint webhook_endpoints_check1 CHECK ((previous_environment IS NULL) = (previous_until IS NULL)),
  constraint webhook_endpoints_check2 CHECK (has_filter OR flow_ids IS NULL AND project_id IS NULL AND include_dry_runs IS NULL),
  constraint webhook_endpoints_events_check CHECK (cardinality(events) >= 1 AND cardinality(events) <= 3 AND events <@ '{run.finished,improvement-pass.finished,approval.requested}'::text[]),
  constraint webhook_endpoints_url_check CHECK (length(url) <= 2048),
  constraint webhook_endpoints_tenant_id_created_by_fkey FOREIGN KEY (tenant_id, created_by) REFERENCES users(tenant_id, user_id),
  constraint webhook_endpoints_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id),
  constraint webhook_endpoints_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES projects(tenant_id, project_id)
);
CREATE INDEX webhook_endpoints_registered ON webhook_endpoints USING btree (tenant_id, endpoint_id) WHERE (unregistered_at IS NULL);

create table webhook_events (
  tenant_id uuid not null,
  event_id uuid not null,
  type text not null,
  body text not null,
  run_id uuid,
  created_at timestamp with time zone not null,
  constraint webhook_events_pkey PRIMARY KEY (tenant_id, event_id)
) partition by RANGE (event_id);

-- function agent_tools (
--   of_tenant_id uuid,
--   of_agent_id uuid,
--   of_version text
-- ) returns json

-- function approval_assign_named (
--   of_tenant_id uuid,
--   of_approval_id uuid,
--   named_id uuid,
--   named_email_key text,
--   needs_role boolean,
--   at timestamp with time zone
-- ) returns boolean

-- function approval_decide (
--   of_tenant_id uuid,
--   of_approval_id uuid,
--   to_status text,
--   by_user_id uuid,
--   by_token_id uuid,
--   needs_role boolean,
--   said text,
--   arguments_given json,
--   answer_given json,
--   OUT became text,
--   OUT of_run_id uuid
-- ) returns record

-- function approval_escalate (
--   of_tenant_id uuid,
--   of_approval_id uuid,
--   new_approval_id uuid,
--   to_role text,
--   to_user_id uuid,
--   by_user_id uuid,
--   by_token_id uuid,
--   said text,
--   at timestamp with time zone DEFAULT clock_timestamp()
-- ) returns boolean

-- function approval_void (
--   of_tenant_id uuid,
--   of_run_id uuid
-- ) returns void

-- function attach_audit_partition (
--   parent text,
--   month date
-- ) returns void

-- function attach_audit_partitions (
--   today date
-- ) returns void

-- function attach_run_partition (
--   parent text,
--   month date
-- ) returns void

-- function attach_run_partitions (
--   today date
-- ) returns void

-- function attach_webhook_partitions (
--   today date
-- ) returns void

-- function conversation_calls (
--   of_tenant_id uuid,
--   of_conversation_id uuid,
--   but_run_id uuid,
--   most_messages bigint,
--   most_bytes bigint
-- ) returns json

-- function conversation_history (
--   of_tenant_id uuid,
--   of_conversation_id uuid,
--   most bigint,
--   most_bytes bigint
-- ) returns json

-- function conversation_prompt (
--   of_tenant_id uuid,
--   of_conversation_id uuid
-- ) returns json

-- function drop_audit_partitions (
--   outcome text,
--   month date
-- ) returns void

-- function drop_webhook_month (
--   month date
-- ) returns boolean

-- function flow_load (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   has_begun boolean,
--   tool_names text[],
--   tool_ids uuid[],
--   OUT step integer,
--   OUT kind text,
--   OUT name text,
--   OUT path text,
--   OUT format smallint,
--   OUT status text,
--   OUT attempt integer,
--   OUT failures integer,
--   OUT request json,
--   OUT result json,
--   OUT started_at timestamp with time zone,
--   OUT completed_at timestamp with time zone,
--   OUT state_format smallint,
--   OUT state_frames json,
--   OUT state_data json,
--   OUT state_context json,
--   OUT state_tasks integer,
--   OUT state_slots integer,
--   OUT parent_format smallint,
--   OUT parent_frames json,
--   OUT parent_data json,
--   OUT parent_context json,
--   OUT parent_tasks integer,
--   OUT parent_slots integer,
--   OUT named_tools json,
--   OUT branch text,
--   OUT own_run_id uuid,
--   OUT own_started_at timestamp with time zone,
--   OUT own_input json,
--   OUT levels bigint
-- ) returns record

-- function identity_providers_of (
--   tenant uuid
-- ) returns TABLE(identity_provider_id uuid, managed_by text, name text, issuer text, client_id text, secret_environment text, secret_name text, scopes text[], email_trust text, creates_people boolean, groups_claim text, created_by uuid, created_at timestamp with time zone, updated_at timestamp with time zone, domains text[], groups jsonb)

-- function job_cancel (
--   p_ids bigint[]
-- ) returns TABLE(id bigint, running boolean)

-- function job_claim (
--   p_queue text,
--   p_worker text,
--   p_lease bigint,
--   p_limit integer,
--   p_serial integer,
--   p_lease_ms bigint,
--   p_keyed_first boolean,
--   p_full text[],
--   p_after text DEFAULT ''::text
-- ) returns TABLE(id bigint, lease_id bigint, attempt integer, max_attempts integer, name text, key text, payload text, key_cap integer, fairness_key text)

-- function job_complete (
--   p_ids bigint[],
--   p_leases bigint[]
-- ) returns SETOF bigint

-- function job_done (
--   p_id bigint,
--   p_lease bigint
-- ) returns boolean

-- function job_end (
--   p_ids bigint[],
--   p_leases bigint[],
--   p_kinds text[],
--   p_delays_ms bigint[],
--   p_reasons text[]
-- ) returns TABLE(id bigint, became text)

-- function job_enqueue (
--   p_queue text[],
--   p_name text[],
--   p_payload text[],
--   p_priority smallint[],
--   p_delay_ms bigint[],
--   p_max_attempts integer[],
--   p_key text[],
--   p_key_cap integer[],
--   p_fairness_key text[] DEFAULT NULL::text[]
-- ) returns SETOF bigint

-- function job_enqueue_keyed (
--   p_queue text,
--   p_name text,
--   p_payload text,
--   p_priority smallint,
--   p_max_attempts integer,
--   p_key text,
--   p_key_cap integer
-- ) returns bigint

-- function job_enqueue_one (
--   p_queue text,
--   p_name text,
--   p_payload text,
--   p_priority smallint,
--   p_max_attempts integer,
--   p_fairness_key text DEFAULT NULL::text
-- ) returns bigint

-- function job_enqueue_unique (
--   p_queue text[],
--   p_name text[],
--   p_payload text[],
--   p_priority smallint[],
--   p_delay_ms bigint[],
--   p_max_attempts integer[],
--   p_key text[],
--   p_key_cap integer[],
--   p_unique_key text[],
--   p_fairness_key text[] DEFAULT NULL::text[]
-- ) returns TABLE(id bigint, added boolean)

-- function job_hold (
--   p_id bigint
-- ) returns boolean

-- function job_keep_lease (
--   p_id bigint,
--   p_lease bigint,
--   p_ms bigint
-- ) returns boolean

-- function job_key_standing (
--   p_queue text,
--   p_key text
-- ) returns bigint

-- function job_merge_moves (
--   p_queue text
-- ) returns void

-- function job_pick_fair (
--   p_queue text,
--   p_limit integer,
--   p_full text[],
--   p_after text,
--   OUT ids bigint[],
--   OUT ctids tid[]
-- ) returns record

-- function job_pick_keyed (
--   p_queue text,
--   p_limit integer,
--   p_serial integer,
--   OUT ids bigint[],
--   OUT ctids tid[],
--   OUT caps integer[]
-- ) returns record

-- function job_rescue (
--   p_limit integer
-- ) returns TABLE(id bigint, became text)

-- function job_revive (
--   p_ids bigint[]
-- ) returns SETOF bigint

-- function job_run_now (
--   p_id bigint
-- ) returns boolean

-- function job_standing (
--   p_id bigint,
--   OUT attempt integer,
--   OUT left_ms bigint
-- ) returns record

-- function key_owner (
--   of_tenant_id uuid,
--   of_user_id uuid,
--   of_kind text,
--   of_id uuid
-- ) returns TABLE(is_tenant_admin boolean, other_role text)

-- function model_call_cost (
--   prompt bigint,
--   completion bigint,
--   cache_read bigint,
--   cache_write bigint,
--   reasoning bigint,
--   prompt_price numeric,
--   completion_price numeric,
--   cache_read_price numeric,
--   cache_write_price numeric,
--   reasoning_price numeric
-- ) returns numeric

-- function model_call_give_back (
--   of_tenant_id uuid,
--   of_model_provider_id uuid,
--   of_run_id uuid,
--   of_epoch bigint,
--   at_once integer,
--   at timestamp with time zone
-- ) returns void

-- function model_call_grant (
--   of_tenant_id uuid,
--   of_model_provider_id uuid,
--   at_once integer,
--   at timestamp with time zone
-- ) returns void

-- function model_call_take (
--   of_tenant_id uuid,
--   of_model_provider_id uuid,
--   of_run_id uuid,
--   of_epoch bigint,
--   at_once integer,
--   at timestamp with time zone
-- ) returns boolean

-- function open_sessions (
--   moment timestamp with time zone,
--   idle integer,
--   life integer,
--   by_token text,
--   by_console text
-- ) returns TABLE(tenant_id uuid, session_id uuid, user_id uuid, digest bytea, method text, token_id uuid, role text, capabilities text[], project_id uuid, keys_expire_at timestamp with time zone, client_address inet, user_agent text, created_at timestamp with time zone, active_at timestamp with time zone, idle_seconds integer, expires_at timestamp with time zone)

-- function policies_of (
--   of_tenant_id uuid,
--   of_project_id uuid
-- ) returns json

-- function readable_projects (
--   of_tenant_id uuid,
--   of_user_id uuid,
--   after uuid,
--   most bigint,
--   newest_first boolean
-- ) returns TABLE(project_id uuid, name text, created_by uuid, created_at timestamp with time zone, updated_at timestamp with time zone)

-- function run_begin_step (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   begun step_begin,
--   at timestamp with time zone
-- ) returns void

-- function run_cancel (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   at timestamp with time zone,
--   most integer,
--   OUT became text,
--   OUT has_more boolean,
--   OUT ended uuid[]
-- ) returns record

-- function run_cancel_batch (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   of_epoch bigint,
--   is_cancelled boolean,
--   at timestamp with time zone,
--   most integer,
--   OUT has_more boolean,
--   OUT ended uuid[]
-- ) returns record

-- function run_cancel_children (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   of_epoch bigint,
--   is_cancelled boolean,
--   at timestamp with time zone,
--   most integer,
--   asks_alone boolean DEFAULT false,
--   OUT has_more boolean,
--   OUT removed_jobs bigint[],
--   OUT due_jobs bigint[],
--   OUT ended uuid[]
-- ) returns record

-- function run_cancel_descendants (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   at timestamp with time zone,
--   most integer,
--   OUT has_more boolean,
--   OUT removed_jobs bigint[],
--   OUT due_jobs bigint[],
--   OUT ended uuid[]
-- ) returns record

-- function run_cancel_one (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   at timestamp with time zone,
--   ends boolean,
--   OUT became text,
--   OUT job bigint
-- ) returns record

-- function run_commit (
--   held held_run,
--   at timestamp with time zone,
--   to_status text,
--   kinds text[],
--   datas json[],
--   ended step_end,
--   begun step_begin,
--   call model_call,
--   has_text boolean,
--   flow flow_progress,
--   waits run_wait,
--   children children_change,
--   ending run_end,
--   checks json DEFAULT NULL::json,
--   input_text text DEFAULT NULL::text,
--   input_refused boolean DEFAULT NULL::boolean,
--   OUT outcome text,
--   OUT cost_usd double precision,
--   OUT totals json
-- ) returns record

-- function run_created (
--   of_tenant_id uuid,
--   of_project_id uuid,
--   of_agent_id uuid,
--   of_version text,
--   data json
-- ) returns json

-- function run_erase_payloads (
--   of_tenant_id uuid,
--   root_ids uuid[],
--   at timestamp with time zone
-- ) returns bigint

-- function run_events_after (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   after_seq bigint,
--   max_events bigint,
--   max_bytes bigint
-- ) returns TABLE(seq bigint, kind text, data json, created_at timestamp with time zone, more boolean)

-- function run_events_beside (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   counted bigint,
--   until bigint
-- ) returns bigint

-- function run_has_many_below (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   most integer
-- ) returns boolean

-- function run_levels (
--   of_tenant_id uuid,
--   of_run_id uuid
-- ) returns bigint

-- function run_options (
--   of_tenant_id uuid,
--   of_environment text,
--   given json
-- ) returns json

-- function run_record_end (
--   of_tenant_id uuid,
--   of_parent_run_id uuid,
--   of_slot integer,
--   of_run_id uuid
-- ) returns void

-- function run_refuse_child (
--   of_tenant_id uuid,
--   of_parent_run_id uuid,
--   of_slot integer,
--   of_run_id uuid,
--   at timestamp with time zone,
--   failure_said text,
--   failed_with json,
--   kind text,
--   data json
-- ) returns void

-- function run_starters (
--   of_tenant_id uuid,
--   of_run_id uuid
-- ) returns uuid[]

-- function run_take_children (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   slots integer[]
-- ) returns bigint

-- function run_totals (
--   of_tenant_id uuid,
--   of_run_id uuid
-- ) returns json

-- function run_update_jobs (
--   done_job bigint,
--   done_lease bigint,
--   removed_jobs bigint[],
--   due_jobs bigint[]
-- ) returns boolean

-- function run_write (
--   of_tenant_id uuid,
--   of_run_id uuid,
--   of_epoch bigint,
--   events_before bigint,
--   at timestamp with time zone,
--   to_status text,
--   kinds text[],
--   datas json[],
--   ended_step integer,
--   ended_status text,
--   ended_result json,
--   ended_failures integer,
--   begun_step integer,
--   begun_kind text,
--   begun_name text,
--   begun_path text,
--   begun_attempt integer,
--   begun_failures integer,
--   begun_request json,
--   failure_said text,
--   output_given json,
--   message_said text,
--   has_text boolean,
--   call_step integer,
--   call_attempt integer,
--   call_provider_id uuid,
--   call_model text,
--   call_outcome text,
--   call_failure text,
--   prompt bigint,
--   completion bigint,
--   cache_read bigint,
--   cache_write bigint,
--   reasoning bigint,
--   price_prompt numeric,
--   price_completion numeric,
--   price_cache_read numeric,
--   price_cache_write numeric,
--   price_reasoning numeric,
--   call_started_at timestamp with time zone,
--   waits_for text,
--   wakes_at timestamp with time zone,
--   taken_slots integer[],
--   takes_all boolean,
--   spawns boolean,
--   of_job_id bigint,
--   of_lease_id bigint,
--   is_announced boolean,
--   flow_format smallint DEFAULT NULL::smallint,
--   flow_frames json DEFAULT NULL::json,
--   flow_data json DEFAULT NULL::json,
--   flow_context json DEFAULT NULL::json,
--   flow_tasks integer DEFAULT NULL::integer,
--   flow_slots integer DEFAULT NULL::integer,
--   awaited_approval_id uuid DEFAULT NULL::uuid,
--   flow_error json DEFAULT NULL::json,
--   of_parent_run_id uuid DEFAULT NULL::uuid,
--   of_parent_slot integer DEFAULT NULL::integer,
--   of_attempts_before integer DEFAULT NULL::integer,
--   of_root_run_id uuid DEFAULT NULL::uuid
-- ) returns text

-- function tool_child (
--   of_tool tools
-- ) returns json

-- function tool_definition (
--   of_tool tools,
--   called text
-- ) returns json

-- function usage_sum (
--   of_tenant_id uuid,
--   of_project_id uuid,
--   reader_id uuid,
--   low uuid,
--   high uuid,
--   since timestamp with time zone,
--   until timestamp with time zone,
--   by_day boolean,
--   by_project boolean,
--   by_agent boolean,
--   by_model boolean,
--   of_agent_id uuid,
--   most bigint
-- ) returns TABLE(day date, project_id uuid, agent_id uuid, model_provider_id uuid, model text, calls bigint, calls_without_cost bigint, cost_usd double precision, prompt_tokens bigint, completion_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint, reasoning_tokens bigint)

-- function webhook_begin_attempts (
--   of_lease_id bigint,
--   of_tenant_ids uuid[],
--   of_endpoint_ids uuid[],
--   firsts integer[],
--   lasts integer[],
--   of_delivery_ids uuid[],
--   of_job_ids bigint[],
--   at timestamp with time zone
-- ) returns TABLE(places integer[], event_ids uuid[], attempts integer[], bodies text[], url text, secret_environment text, secret_name text, previous_environment text, previous_name text, stands integer, versions integer[], formats smallint[], nonces bytea[], ciphertexts bytea[], wrapping_keys text[], wrapped_data_keys bytea[], created_by uuid[], created_at timestamp with time zone[])

-- function webhook_emit (
--   of_tenant_id uuid,
--   of_type text,
--   of_project_id uuid,
--   of_flow_id text,
--   is_dry_run boolean,
--   of_event_id uuid,
--   of_body text,
--   of_run_id uuid,
--   at timestamp with time zone,
--   delivery_ids uuid[],
--   cap_well integer,
--   of_queue text,
--   of_job_name text,
--   of_max_attempts integer
-- ) returns integer

-- function webhook_finish_attempts (
--   of_tenant_ids uuid[],
--   of_endpoint_ids uuid[],
--   of_delivery_ids uuid[],
--   of_attempts integer[],
--   of_job_ids bigint[],
--   of_lease_ids bigint[],
--   ago_ms bigint[],
--   durations_ms integer[],
--   are_slow boolean[],
--   reasons text[],
--   statuses smallint[],
--   messages text[],
--   addresses inet[],
--   answers bytea[],
--   states text[],
--   next_job_ids bigint[],
--   waits_ms bigint[]
-- ) returns SETOF bigint
