//! The API description (OpenAPI 3.1.0), generated from the route table alone (section 9, rule 2).
//!
//! Every route with an operation name is described; one without a name is no call of a client, and is left out. Generators
//! of clients and linters read the document without a complaint (`tests/description`).
//!
//! Types describe themselves, with attributes. Here is what concerns a whole operation (`operation`), its errors
//! (`errors`), the nouns (`tags`), and the one pass that gives schemas the form that tools read (`schema`).

mod errors;
mod operation;
pub(super) mod schema;
mod tags;

use super::route::{IDEMPOTENCY_KEY, Operation, Route, Table};
use crate::webhooks::event::Envelope;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The document of the mounted routes.
///
/// # Panics
/// Two types share a schema name, a noun has no text, or a parameter of a path has no meaning: found by the tests of the
/// document.
pub(crate) fn document(table: &Table) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let described = || {
        let routes = table.routes().iter();
        routes.filter(|route| route.operation.name().is_some())
    };
    let mut paths: Map<String, Value> = Map::new();
    for route in described() {
        let operation = operation::describe(route, &mut generator);
        let path = paths
            .entry(route.path)
            .or_insert_with(|| Value::Object(Map::new()));
        path[route.method.text().to_ascii_lowercase()] = operation;
    }
    let webhook = webhook(&mut generator);
    let responses = errors::responses(described(), &mut generator);
    let mut schemas = generator.take_definitions(true);
    check_names(&schemas);
    schema::finish(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": info(table, described()),
        "servers": [{"url": "/"}],
        "tags": tags::of(table.nouns(), described()),
        "paths": paths,
        "webhooks": {"event": {"post": webhook}},
        "components": {
            "schemas": schemas,
            "responses": responses,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A bearer token (svc_bt_).",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": crate::authn::session::COOKIE,
                    "description": "The session of a browser, from the server's own pages alone. Where the server's address has a port, the name ends with it, as in -8443.",
                },
                "publicRunToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A public run token (svc_pt_): the progress of the runs that it names.",
                },
            },
        },
    })
}

fn check_names(schemas: &Map<String, Value>) {
    for name in schemas.keys() {
        let base = name.trim_end_matches(|last: char| last.is_ascii_digit());
        assert!(
            base.len() == name.len() || !schemas.contains_key(base),
            "two types have the schema name {base}: rename one"
        );
    }
}

/// The mounted routes that no operation describes, each with the reason.
fn left_out(table: &Table) -> String {
    let routes = table
        .routes()
        .iter()
        .filter_map(|route| match route.operation {
            Operation::Named(_) => None,
            Operation::Unnamed(why) => {
                Some(format!("- `{} {}`: {why}", route.method.text(), route.path))
            }
        });
    routes.collect::<Vec<_>>().join("\n")
}

fn info<'a>(table: &Table, routes: impl Iterator<Item = &'a Route>) -> Value {
    let repeatable: Vec<String> = routes
        .filter(|route| {
            route
                .headers
                .iter()
                .any(|header| header.name == IDEMPOTENCY_KEY)
        })
        .map(|route| format!("`{}`", route.operation))
        .collect();
    json!({
        "title": "agent-runtime",
        "version": env!("CARGO_PKG_VERSION"),
        "description": format!(
            "Runs agents durably and streams what they do.\n\nEvery route answers errors in one form; go by the code. \
             Lists page by cursor. These operations take the header `{IDEMPOTENCY_KEY}`, so that a request may be \
             sent again: {}. Ids in examples stand for ids of your own.\n\nAt `/docs` a call that one tries is sent, \
             and changes what it says. It goes out as whoever is signed in to this server in the same browser, or under \
             the token that is given by \"Authorize\".\n\nThese routes are mounted, too, and not described:\n\n{}\n\nSo are the \
             probes `/healthz`, `/readyz` and `/metrics`, which the connection's own thread answers.",
            repeatable.join(", "),
            left_out(table)
        ),
        "contact": {"name": "The operator of this server"},
        "license": {"name": "LicenseRef-agent-runtime", "identifier": "LicenseRef-agent-runtime"},
    })
}

/// The document as it is served. It is put together on a thread of its own: that takes megabytes for a moment, which the
/// allocator keeps for the thread that took them. This one's are left to the threads that are started after it.
///
/// # Panics
/// As [`document`].
pub(super) fn text(table: &Table) -> String {
    let make = || document(table).to_string();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("api-description".to_owned());
        match thread.spawn_scoped(scope, make) {
            Ok(made) => made
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => make(),
        }
    })
}

/// What a receiver of webhooks is sent (section 6.2).
fn webhook(generator: &mut SchemaGenerator) -> Value {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"}});
    json!({
        "operationId": "receiveWebhookEvent",
        "tags": ["webhook-endpoints"],
        "summary": "An event, as it is posted to a webhook endpoint",
        "description": "Delivery is at least once, and in no set order: webhook-id tells an event that came before. Verify the signature before anything else.",
        "security": [],
        "parameters": [
            header("webhook-id", "The event's id; the same however often it is sent."),
            header("webhook-timestamp", "When this attempt was made, in Unix seconds."),
            header("webhook-signature", "Standard Webhooks 1.0: v1, and the base64 of HMAC-SHA256 over id.timestamp.body; several, separated by a space, while a secret rotates."),
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": generator.subschema_for::<Envelope<'static>>()}},
        },
        "responses": {
            "2XX": {"description": "Taken."},
            "default": {"description": "Not taken: the event is sent again later."},
        },
    })
}
