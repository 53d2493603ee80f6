-- How a provider's server is asked: time limits, calls at once, headers, and what it does not take.
alter table model_providers add column options json not null default '{}';

-- The runs that make or wait for one of the calls that a model provider takes at once, in the order in which they asked.
create table model_call_slots (
  tenant_id uuid not null,
  model_provider_id uuid not null,
  run_id uuid not null,
  -- Of the run's holder: another one's slot is not given back by it.
  lease_epoch bigint not null,
  asked_at timestamptz not null,
  -- It may make its call.
  granted_at timestamptz,
  primary key (tenant_id, run_id),
  foreign key (tenant_id, model_provider_id) references model_providers on delete cascade
);

create index model_call_slots_order on model_call_slots (tenant_id, model_provider_id, asked_at, run_id);
