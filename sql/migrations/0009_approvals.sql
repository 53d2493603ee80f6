-- Approvals: what a run asks a person, and what became of it.

create table approvals (
  tenant_id uuid not null,
  -- A UUIDv7, and the id of the event that tells webhooks of it.
  approval_id uuid not null,
  project_id uuid not null,
  run_id uuid not null,
  root_run_id uuid not null,
  -- The step of the run that waits for it, and where that stands in the run's program.
  step integer not null,
  path text not null,
  source text not null,
  required_role text not null check (required_role ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
  -- A literal of a definition, never computed from a run: events carry it.
  title text not null check (char_length(title) between 1 and 200),
  status text not null check (status in ('waiting', 'approved', 'rejected', 'escalated', 'expired', 'voided')),
  -- Who started the run at the top of the tree.
  requested_by uuid not null,
  assigned_to uuid,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- When it is given to another role, and to which; both or neither.
  escalate_at timestamptz,
  escalate_role text check (escalate_role ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
  escalated_from uuid,
  escalated_to uuid,
  -- SHA-256 of what it is about: binds a decision to what was read.
  subject_digest bytea not null check (octet_length(subject_digest) = 32),
  closed_at timestamptz,
  -- Of one that a person closed.
  decided_by uuid,
  comment text check (char_length(comment) <= 4000),
  primary key (tenant_id, approval_id),
  check ((status = 'waiting') = (closed_at is null)),
  check ((status = 'escalated') = (escalated_to is not null)),
  check ((escalate_at is null) = (escalate_role is null))
);
create index approvals_run on approvals (tenant_id, run_id);
-- The lists that reviewers read: what waits costs the same however much is closed.
create index approvals_waiting on approvals (tenant_id, required_role, approval_id) where status = 'waiting';

-- What an approval is about, and what its reviewer gave. Erased with what its run was given and said.
create table approval_subjects (
  tenant_id uuid not null,
  approval_id uuid not null,
  run_id uuid not null,
  context json,
  tool text,
  arguments json,
  -- What the reviewer put in place of the arguments.
  edited_arguments json,
  answer json,
  primary key (tenant_id, approval_id)
) partition by range (approval_id);

-- Who did what to an approval, and when.
create sequence approval_log_position;
create table approval_log (
  tenant_id uuid not null,
  approval_id uuid not null,
  position bigint not null default nextval('approval_log_position'),
  -- `opened`, `assigned`, or as the approval was closed.
  kind text not null,
  -- Null where time or the run's end did it.
  user_id uuid,
  token_id uuid,
  at timestamptz not null,
  primary key (tenant_id, approval_id, position)
) partition by range (approval_id);
