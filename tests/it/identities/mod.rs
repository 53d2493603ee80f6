//! Identity providers and whom they sign in: the registry, who a subject is, what groups give, and what ends with what.

mod arrivals;
mod groups;
mod operator;
mod property;
mod providers;
mod settings;
mod signing_in;

use crate::harness::{App, made};
use agent_runtime::api::arrivals::{Arrival, Arrived, Problem, arrive};
use agent_runtime::authn::bearer;
use agent_runtime::oidc::Claims;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

const PROVIDERS: &str = "/v1/identity-providers";

/// The body that registers a provider which speaks for these domains.
fn body(name: &str, domains: &[&str]) -> Value {
    json!({
        "name": name,
        "issuer": format!("https://{}.example", name.to_lowercase()),
        "clientId": "agent-runtime",
        "emailDomains": domains,
    })
}

/// Registers a provider with these fields beside.
fn provider(app: &App, name: &str, domains: &[&str], beside: &Value) -> Uuid {
    let mut body = body(name, domains);
    for (field, value) in beside.as_object().unwrap() {
        body[field] = value.clone();
    }
    let made = app.post(PROVIDERS, &body).expect(201);
    made::id(&made).parse().unwrap()
}

/// What a provider says of a subject whose email it vouches for.
fn claims(subject: &str, email: &str) -> Claims {
    Claims {
        subject: subject.to_owned(),
        email: Some(email.to_owned()),
        email_vouched: true,
        name: Some("Somebody".to_owned()),
        groups: None,
        groups_left_out: false,
    }
}

fn with_groups(subject: &str, email: &str, groups: &[&str]) -> Claims {
    Claims {
        groups: Some(groups.iter().map(|group| (*group).to_owned()).collect()),
        ..claims(subject, email)
    }
}

fn come(app: &App, provider: Uuid, claims: &Claims) -> Result<Arrived, Problem> {
    try_to_come(app, provider, claims).unwrap()
}

fn try_to_come(
    app: &App,
    provider: Uuid,
    claims: &Claims,
) -> agent_runtime::error::Result<Result<Arrived, Problem>> {
    let arrival = Arrival {
        tenant_id: app.seeds.tenant_id,
        identity_provider_id: provider,
        new_user_id: app.clock.new_id(),
        new_identity_id: app.clock.new_id(),
        now: app.clock.now(),
    };
    let store = &app.server().shared().store;
    store.transact(|tx| arrive(tx, &arrival, claims))
}

/// A session of this person as the provider opens it, by its value.
fn session(app: &App, provider: Uuid, user_id: Uuid) -> String {
    let value = bearer::mint_session().unwrap();
    let digest = Sha256::digest(value.expose()).to_vec();
    let now = app.clock.now();
    let insert = "insert into sessions (tenant_id, session_id, user_id, digest, method, role, capabilities, client_address,
        created_at, active_at, expires_at, identity_provider_id)
        values ($1, $2, $3, $4, 'provider', 'admin', '{access:write,env:write,keys:write,secrets:write}', '127.0.0.1',
        $5, $5, $6, $7)";
    let (tenant_id, session_id) = (app.seeds.tenant_id, app.clock.new_id());
    let end = now + std::time::Duration::from_secs(24 * 3600);
    app.database
        .client()
        .execute(
            insert,
            &[
                &tenant_id,
                &session_id,
                &user_id,
                &digest,
                &now,
                &end,
                &provider,
            ],
        )
        .unwrap();
    value.expose().to_owned()
}

/// The person's memberships: team, role, and whether a group gave it.
fn memberships(app: &App, user_id: Uuid) -> Vec<(String, String, bool)> {
    let select = "select team_id::text, role, source_provider_id is not null from team_memberships
        where user_id = $1 order by team_id";
    let rows = app.database.client().query(select, &[&user_id]).unwrap();
    rows.iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}
