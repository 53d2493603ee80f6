-- What kind of credential a decision was made for. No row is read or written: rows of programs before this one do not say.
alter table audit_decisions add column credential_kind text;
