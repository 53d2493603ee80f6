//! One operation: its parameters, its body and its answers.

use super::{errors, schema, tags};
use crate::http::access::Rule;
use crate::http::route::Route;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

/// A route, as the description has it.
///
/// # Panics
/// A parameter of the path has no meaning.
pub(super) fn describe(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": route.operation.name(),
        "tags": [tags::tag(route)],
        "summary": route.summary,
        "description": format!("Access: {}.", route.rule),
        "parameters": parameters(route, generator),
    });
    if let Some(body) = (route.shape.body)(generator) {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body}}});
    }
    operation["responses"] = responses(route, generator);
    operation["security"] = security(&route.rule);
    operation
}

fn security(rule: &Rule) -> Value {
    match rule {
        Rule::Session => json!([{"session": []}]),
        Rule::RunReader => json!([{"bearer": []}, {"session": []}, {"publicRunToken": []}]),
        _ if rule.reads_credential() => json!([{"bearer": []}, {"session": []}]),
        _ => json!([]),
    }
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Value {
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
        let described = match status {
            Some(304) => json!({"description": "As the tag in If-None-Match says; without a body"}),
            _ => success.clone(),
        };
        responses.extend(status.map(|status| (status.to_string(), described)));
    }
    for (status, codes) in errors::by_status(route.codes.iter().copied()) {
        let reference = format!("#/components/responses/{}", errors::name(status));
        responses.insert(
            status.to_string(),
            json!({"$ref": reference, "description": errors::listed(&codes)}),
        );
    }
    Value::Object(responses)
}

fn parameters(route: &Route, generator: &mut SchemaGenerator) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(path_parameter(name))
    });
    let mut parameters: Vec<Value> = in_path.collect();
    if let Some(query) = (route.shape.query)(generator) {
        let required = query.get("required").and_then(Value::as_array);
        let properties = query.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let needed = required.is_some_and(|names| names.iter().any(|known| known == name));
            let (description, property) = schema::parameter(property);
            parameters.push(json!({
                "name": name, "in": "query", "required": needed,
                "description": description, "schema": property,
            }));
        }
    }
    parameters.extend(route.headers.iter().map(|header| {
        json!({
            "name": header.name, "in": "header", "required": false,
            "description": header.meaning, "schema": (header.schema)(),
        })
    }));
    parameters
}

fn path_parameter(name: &str) -> Value {
    let text = || json!({"type": "string"});
    let (description, schema) = match name {
        "environment" => ("The secret's environment.".to_owned(), text()),
        "name" => ("The secret's name.".to_owned(), text()),
        "role" => ("The reviewer's role.".to_owned(), text()),
        "version" => ("The version, such as `1.2.3`.".to_owned(), text()),
        "id" => (
            "The id of the flow's row, which is not its `flowId`.".to_owned(),
            json!({"type": "string", "format": "uuid"}),
        ),
        _ => match name.strip_suffix("Id") {
            Some(noun) => (
                format!("The id of the {}.", words(noun)),
                json!({"type": "string", "format": "uuid"}),
            ),
            None => panic!("say in http/openapi/operation.rs what {{{name}}} in a path is"),
        },
    };
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema})
}

/// `modelProvider` is `model provider`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_of_a_path_is_said_in_words() {
        let parameter = path_parameter("modelProviderId");
        assert_eq!(parameter["description"], "The id of the model provider.");
        assert_eq!(parameter["schema"]["format"], "uuid");
    }

    #[test]
    fn a_route_without_a_token_asks_for_none() {
        assert_eq!(security(&Rule::Enrolling), json!([]));
        assert_eq!(security(&Rule::Open("a reason")), json!([]));
        assert_eq!(security(&Rule::SigningIn), json!([]));
        let either = json!([{"bearer": []}, {"session": []}]);
        assert_eq!(security(&Rule::Authenticated), either);
    }
}
