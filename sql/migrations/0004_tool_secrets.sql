-- How a tool can tell who calls it.

alter table tools
  -- Headers whose values are secrets: [{"name", "secret", "prefix"}], without the values.
  add column secret_headers json not null default '[]',
  -- The name of the secret that signs each call.
  add column signing_secret text check (length(signing_secret) <= 128);
