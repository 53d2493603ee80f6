-- What a run may set in place of the version's own: `model`, `parameters`, `limits`. A version of before this lets it set nothing.
alter table agent_versions
  add column overrides text[] not null default '{}'
    constraint agent_versions_overrides_check check (overrides <@ array['model', 'parameters', 'limits']);
