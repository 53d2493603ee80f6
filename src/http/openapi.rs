//! The API description (OpenAPI 3.1.0), generated from the route table alone (section 9, rule 2).

use super::access::Rule;
use super::route::{Route, Table};
use crate::webhooks::event::Envelope;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The error body (section 7).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
struct ErrorBody {
    error: ErrorContent,
}

/// What went wrong.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ErrorContent {
    /// A code that programs can rely on.
    code: String,
    /// A sentence that says what is wrong and what to do.
    message: String,
    /// Code-specific details.
    details: Map<String, Value>,
    /// `req-<uuid>`: the log has the cause under it.
    #[schemars(regex(pattern = "^req-[0-9a-f-]{36}$"))]
    request_id: String,
}

/// The document of the mounted routes.
///
/// # Panics
/// Two types share a schema name: found by every start and every test.
pub(crate) fn document(table: &Table) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let error = generator.subschema_for::<ErrorBody>();
    let mut paths: Map<String, Value> = Map::new();
    for route in table.routes() {
        let operation = operation(route, &mut generator, &error);
        let path = paths
            .entry(route.path)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(methods) = path {
            methods.insert(route.method.text().to_lowercase(), operation);
        }
    }
    let webhook = webhook(&mut generator);
    let schemas = generator.take_definitions(true);
    for name in schemas.keys() {
        let base = name.trim_end_matches(|last: char| last.is_ascii_digit());
        assert!(
            base.len() == name.len() || !schemas.contains_key(base),
            "two types have the schema name {base}: rename one"
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "agent-runtime",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs agents durably and streams what they do. Every route answers errors in one form; lists page by cursor.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "webhooks": {"event": {"post": webhook}},
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A bearer token (svc_bt_).",
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
        "parameters": [
            header("webhook-id", "The event's id; the same however often it is sent."),
            header("webhook-timestamp", "When this attempt was made, in Unix seconds."),
            header("webhook-signature", "Standard Webhooks 1.0: v1, and the base64 of HMAC-SHA256 over id.timestamp.body; several, separated by a space, while a secret rotates."),
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": generator.subschema_for::<Envelope<'static>>()}},
        },
        "responses": {"2XX": {"description": "Taken. Any other status, or none in time, and the event is sent again later."}},
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator, error: &schemars::Schema) -> Value {
    let mut operation = Map::new();
    if let Some(name) = route.operation.name() {
        operation.insert("operationId".into(), name.into());
    }
    operation.insert("tags".into(), json!([tag(route)]));
    operation.insert("summary".into(), route.summary.into());
    operation.insert(
        "description".into(),
        format!("Access: {}.", route.rule).into(),
    );
    operation.insert("parameters".into(), parameters(route, generator));
    if let Some(body) = (route.shape.body)(generator) {
        operation.insert(
            "requestBody".into(),
            json!({"required": true, "content": {"application/json": {"schema": body}}}),
        );
    }
    operation.insert("responses".into(), responses(route, generator, error));
    operation.insert(
        "security".into(),
        match route.rule {
            Rule::Open(_) => json!([]),
            Rule::RunReader => json!([{"bearer": []}, {"publicRunToken": []}]),
            _ => json!([{"bearer": []}]),
        },
    );
    Value::Object(operation)
}

fn responses(route: &Route, generator: &mut SchemaGenerator, error: &schemars::Schema) -> Value {
    let mut responses = Map::new();
    let mut success = json!({"description": "Success"});
    if let Some(content_type) = route.shape.content_type {
        let media = match (route.shape.answer)(generator) {
            Some(schema) => json!({"schema": schema}),
            None => json!({}),
        };
        success["content"] = json!({content_type: media});
    }
    for status in [Some(route.shape.status), route.shape.other_status] {
        responses.extend(status.map(|status| (status.to_string(), success.clone())));
    }
    let mut by_status: std::collections::BTreeMap<u16, Vec<&str>> = Default::default();
    for code in &route.codes {
        by_status
            .entry(code.status())
            .or_default()
            .push(code.text());
    }
    for (status, codes) in by_status {
        responses.insert(
            status.to_string(),
            json!({
                "description": codes.join(", "),
                "content": {"application/json": {"schema": error}},
            }),
        );
    }
    Value::Object(responses)
}

fn parameters(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters = Vec::new();
    for part in route.path.split('/') {
        if let Some(name) = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'))
        {
            parameters.push(json!({
                "name": name, "in": "path", "required": true,
                "schema": {"type": "string"},
            }));
        }
    }
    if let Some(query) = (route.shape.query)(generator) {
        let required = query.get("required").and_then(Value::as_array).cloned();
        let properties = query.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let needed = required
                .as_ref()
                .is_some_and(|names| names.iter().any(|required| required == name));
            parameters.push(json!({
                "name": name, "in": "query", "required": needed, "schema": schema,
            }));
        }
    }
    for (name, description) in &route.headers {
        parameters.push(json!({
            "name": name, "in": "header", "required": false,
            "description": description, "schema": {"type": "string"},
        }));
    }
    Value::Array(parameters)
}

/// The noun after the version: `tokens`, `runs`. What is not under the version describes the
/// service itself.
fn tag(route: &Route) -> &'static str {
    let rest = route.path.strip_prefix("/v1/");
    rest.and_then(|rest| rest.split('/').next())
        .unwrap_or("service")
}
