//! Keeping the authorization server in step with Postgres.
