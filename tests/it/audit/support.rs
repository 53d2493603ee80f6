//! Decisions of the tests' own, and a writer without a server.

use crate::harness::{Database, PATIENCE, log};
use agent_runtime::audit::verify::{self, Report};
use agent_runtime::audit::{self, Audit, Decision, Options, Outcome, Running, Stage};
use agent_runtime::ids::Clock;
use agent_runtime::secret::Secret;
use agent_runtime::store;
use ed25519_dalek::VerifyingKey;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A decision with nothing left out that every decision has.
pub(super) fn decision(tenant_id: Uuid, resource: &str) -> Decision {
    Decision {
        tenant_id,
        actor_subject: "user:00000000-0000-0000-0000-000000000001".to_owned(),
        action: "read".to_owned(),
        resource: resource.to_owned(),
        outcome: Outcome::Allowed,
        reason: "allowed by the model".to_owned(),
        stage: Stage::Model,
        failing_part: None,
        check: None,
        duration: Duration::from_micros(1500),
        request_id: None,
        trace_id: None,
        key_id: None,
        credential_kind: None,
        route: None,
        run_id: None,
        client_address: None,
    }
}

pub(super) fn denied(tenant_id: Uuid, resource: &str) -> Decision {
    Decision {
        outcome: Outcome::Denied,
        reason: "permission denied".to_owned(),
        ..decision(tenant_id, resource)
    }
}

pub(super) fn store_options(url: &str) -> store::Options {
    store::Options {
        url: Secret::new(url),
        pool_size: 2,
        checkout_timeout: Duration::from_millis(500),
        outage: Default::default(),
        statement_timeout: Duration::from_secs(3),
    }
}

/// A writer on this database. Its decisions wait for as long as a busy machine may need.
pub(super) fn writer(
    url: &str,
    clock: &Clock,
    change: impl FnOnce(&mut Options),
) -> (Audit, Running) {
    let mut options = Options {
        patience: PATIENCE,
        ..Options::default()
    };
    change(&mut options);
    audit::start(&options, &store_options(url), clock, &log()).unwrap()
}

pub(super) fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// How many decisions the database holds.
pub(super) fn count(database: &Database) -> i64 {
    let row = database
        .client()
        .query_one("select count(*) from audit_decisions", &[]);
    row.unwrap().get(0)
}

/// Verifies what the database holds.
pub(super) fn verify(database: &Database, keys: &[VerifyingKey]) -> Report {
    verify_at(&database.url(), keys)
}

pub(super) fn verify_at(url: &str, keys: &[VerifyingKey]) -> Report {
    let manager = store::connect::Manager::new(&store_options(url)).unwrap();
    verify::verify(&manager, keys, |_| {}).unwrap()
}
