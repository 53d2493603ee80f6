//! The only code that runs SQL.
//!
//! One file a noun; one statement a file under `sql/queries/NOUN/VERB.sql`, embedded here, prepared
//! once a connection, and prepared by a test against a migrated database. Every statement on a
//! tenant's table names the tenant (`tenant-from-credential`). What every noun uses is in `db`: the pool, transactions,
//! statements, pages, migrations.
//!
//! Not here: who may do what (`authz`); functions take a proof of it where the caller is a person.

pub mod agent_versions;
pub mod agents;
pub mod approvals;
pub mod audit;
pub mod authz;
pub mod backups;
pub mod changes;
pub mod conversations;
mod db;
pub mod deactivation;
pub mod deltas;
pub mod enrolments;
pub mod environments;
pub mod events;
pub mod flow_parts;
pub mod flow_states;
pub mod flow_versions;
pub mod flows;
pub mod grants;
pub mod health;
pub mod identities;
pub mod identity_providers;
pub mod model_calls;
pub mod model_providers;
pub mod open_sessions;
pub mod operator_providers;
pub mod orgs;
pub mod policies;
pub mod principals;
pub mod project_access;
pub mod project_memberships;
pub mod projects;
pub mod provision;
mod readable;
pub mod reviewers;
pub mod run_checks;
pub mod runs;
pub mod secret_uses;
pub mod secrets;
mod semantic_versions;
pub mod sessions;
pub mod sign_in_settings;
pub mod steps;
pub mod team_grants;
pub mod team_memberships;
pub mod teams;
pub mod tenants;
pub mod tokens;
pub mod tool_approvals;
pub mod tools;
pub mod turns;
pub mod usage;
pub mod users;
pub mod webhook_attempts;
pub mod webhook_deliveries;
pub mod webhook_endpoints;

use db::on_violation;
pub use db::{
    Columns, Connection, Find, Finding, FromRow, Options, Ordered, Parameter, Session, Sql, Store,
    Tx, clock, connect, group_commit, libpq, migrations, page, partitions, primary, queue_error,
    retry, sql_state, working_for,
};
