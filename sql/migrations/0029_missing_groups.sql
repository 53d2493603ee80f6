-- When a provider last named no groups of somebody who signed in, to the minute: the claim was absent, or it was left out. Null:
-- not since the provider was last changed.
alter table identity_providers
  add column groups_absent_at timestamptz,
  add column groups_left_out_at timestamptz;
