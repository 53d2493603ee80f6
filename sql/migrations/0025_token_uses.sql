-- When a token was last used, to the minute; written once an hour at most. Null before its first use.
alter table tokens add column last_used_at timestamptz;
