-- Sessions keep the idle time that they were opened with, and few that ended stay.

-- Null: an older program opened it, and the server's setting alone counts.
alter table sessions add column idle_seconds integer;
-- Of a person's ended sessions the newest stay, and each for a time after its end.
create index sessions_ended on sessions (tenant_id, user_id, ended_at, session_id) where ended_at is not null;
create index sessions_over on sessions (least(ended_at, expires_at));
drop index sessions_expired;
