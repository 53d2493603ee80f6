//! Integration tests: the server in process behind its real door, a real Postgres, real clients.
//! A file a noun, as in `src/api`; `harness` is what they stand on.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the environment, make threads of their own, and fail by panicking"
)]

mod harness;

mod access;
mod agent_output;
mod agent_tools;
mod agents;
mod approval_streams;
mod approvals;
mod archives;
mod audit;
mod authz_loss;
mod authz_store;
mod authz_sync;
mod backups;
mod cancel;
mod change_streams;
mod clients;
mod console_login;
mod context_window;
mod conversations;
mod cors;
mod database_faults;
mod database_rights;
mod description;
mod differential;
mod doctor;
mod enrolments;
mod erasure;
mod failover;
mod fairness;
mod fga;
mod flow_runs;
mod flow_starts;
mod flow_versions;
mod foreign_pages;
mod forward_proxy;
mod grants;
mod idempotency;
mod identifiers;
mod identities;
mod inputs;
mod kms;
mod log_records;
mod migrations;
mod model_providers;
mod monitoring;
mod oidc;
mod orgs;
mod outages;
mod pages;
mod parking;
mod project_access;
mod project_memberships;
mod projects;
mod provider_faults;
mod provider_sign_in;
mod public_tokens;
mod restarts;
mod retries;
mod reviewers;
mod routes;
mod run_ends;
mod run_filters;
mod run_hold;
mod run_labels;
mod run_state;
mod run_steps;
mod run_trees;
mod runs;
mod runtime;
mod schema;
mod secrets;
mod server;
mod service_accounts;
mod sessions;
mod sign_in;
mod specification;
mod sql;
mod store;
mod stream_faults;
mod streams;
mod sweep;
mod team_grants;
mod team_memberships;
mod teams;
mod tenants;
mod tokens;
mod tool_approvals;
mod tool_calls;
mod tool_secrets;
mod tools;
mod traces;
mod usage;
mod users;
mod waiting;
mod webhook_deliveries;
mod webhook_endpoints;
mod webhook_receiver;
mod webhooks;
