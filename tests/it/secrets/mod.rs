//! `/v1/secrets` and the backend `postgres`: what goes in never comes out, and what was moved, copied
//! or altered cannot be read.

mod altered;
mod dotenv;
mod keys;
mod routes;
mod service;

use crate::harness::{App, secrets::Keys};
use agent_runtime::secret::Secret;
use agent_runtime::secrets::{SecretRef, Secrets, Unreadable};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A server with these keys.
fn start(keys: &Keys) -> App {
    App::start_with(|options| options.secrets = keys.options())
}

fn at(environment: &str, name: &str) -> SecretRef {
    SecretRef {
        environment: environment.to_owned(),
        name: name.to_owned(),
    }
}

fn path(environment: &str, name: &str) -> String {
    format!("/v1/secrets/{environment}/{name}")
}

/// Puts a value and gives what was answered.
#[track_caller]
fn put(app: &App, environment: &str, name: &str, value: &str) -> Value {
    let answer = app.put(&path(environment, name), &json!({"value": value}));
    assert!([200, 201].contains(&answer.status), "{}", answer.text);
    answer.json()
}

fn backend(app: &App) -> &Secrets {
    &app.server().shared().secrets
}

fn resolve(app: &App, environment: &str, name: &str) -> Result<String, Unreadable> {
    let value = backend(app).resolve(app.seeds.tenant_id, &at(environment, name));
    value.map(|value| value.expose().to_owned())
}

fn signing(app: &App, name: &str) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(5);
    let values = backend(app)
        .signing(app.seeds.tenant_id, &at("prod", name), None, until)
        .unwrap();
    values
        .iter()
        .map(Secret::expose)
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn is_altered(read: Result<String, Unreadable>) -> String {
    match read {
        Err(Unreadable::Altered(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

/// The user of another tenant on the same database.
fn other_tenant(app: &App) -> (Uuid, Uuid) {
    let seeds = crate::harness::seeds(&app.clock);
    agent_runtime::server::seed(&app.server().shared().store, &app.clock, &seeds).unwrap();
    (seeds.tenant_id, seeds.user_id)
}
