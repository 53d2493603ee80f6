//! Reports every fault of a body or a query in one answer.
//!
//! Parsing a body stops at its first fault, and so does a handler that checks one. That fault is the error's message and
//! `details.path`. The body is then compared with its JSON Schema from the API description, and all other faults are
//! listed in `details.faults`.
//!
//! Guarantees: at most [`FAULTS_MOST`] faults; a fault says what is expected, and repeats nothing of the body except names
//! of fields. Only refused bodies are compared.
//!
//! Query parameters are compared in the same way, each with the type in its schema.
//!
//! Not here: parsing (`input`), and faults that only a handler can see. Errors of bodies that hold a secret have no path,
//! so nothing is added to them.

use super::openapi::schema;
use crate::error::{Code, Error, Result};
use crate::ids::{self, Timestamp};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Faults that one answer lists at most.
pub const FAULTS_MOST: usize = 20;
/// Characters of a field's name that are repeated.
const NAME_MOST: usize = 100;

/// The pattern of a text that is not blank.
pub(super) const NOT_BLANK: &str = r"\S";

/// Keywords that constrain a body; the others are for readers. A test holds that bodies use no more.
pub const KEYWORDS: [&str; 17] = [
    "$ref",
    "additionalProperties",
    "anyOf",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "propertyNames",
    "required",
];

/// The schema of a route's body.
#[derive(Debug)]
pub(super) struct BodySchema {
    root: Value,
    definitions: Map<String, Value>,
}

impl BodySchema {
    /// None: the route takes no body.
    pub(super) fn of(body: impl Fn(&mut SchemaGenerator) -> Option<Schema>) -> Option<Self> {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let root = body(&mut generator)?.to_value();
        let mut definitions = generator.take_definitions(true);
        schema::finish(&mut definitions);
        Some(Self { root, definitions })
    }

    fn walk(&self) -> Walk<'_> {
        Walk {
            definitions: &self.definitions,
            path: vec!["$".to_owned()],
            faults: Vec::new(),
        }
    }

    /// The error, with everything else that is wrong with this body.
    pub(super) fn complete(&self, error: Error, body: &[u8]) -> Error {
        let Some(mut faults) = faults_of(&error) else {
            return error;
        };
        if let Ok(value) = serde_json::from_slice(body) {
            let mut walk = self.walk();
            walk.value(&self.root, &value);
            for fault in walk.faults {
                if !faults.iter().any(|known| is_same(known, &fault)) {
                    faults.push(fault);
                }
            }
        }
        faults.truncate(FAULTS_MOST);
        listing(error, faults)
    }
}

/// The faults of which an error tells: none, if it is not about a place in the body.
fn faults_of(error: &Error) -> Option<Vec<Value>> {
    if let Some(Value::Array(faults)) = error.details().get("faults") {
        return Some(faults.clone());
    }
    let path = error.details().get("path")?.as_str()?;
    let about = (error.code() == Code::InvalidBody).then(|| error.message())?;
    let prefix = format!("The body's {path}: ");
    let message = about.strip_prefix(&prefix).unwrap_or(about);
    Some(vec![json!({"path": path, "message": message})])
}

/// The error of a query, with everything else that is wrong with its parameters.
pub(super) fn complete_query<'q>(
    error: Error,
    parameters: impl Fn(&mut SchemaGenerator) -> Schema,
    given: impl Iterator<Item = (Cow<'q, str>, Cow<'q, str>)>,
) -> Error {
    let Some(first) = error.details().get("parameter").cloned() else {
        return error;
    };
    let Some(schema) = BodySchema::of(|generator| Some(parameters(generator))) else {
        return error;
    };
    let mut value = Map::new();
    for (name, text) in given {
        let types = types(&schema.root["properties"][&*name]);
        match text.parse::<i64>() {
            _ if types.contains(&"array") => {
                let several = value.entry(name).or_insert_with(|| json!([]));
                several.as_array_mut().map(|all| all.push(json!(text)))
            }
            Ok(number) if types.contains(&"integer") => {
                value.insert(name.into(), json!(number)).map(drop)
            }
            _ => value.insert(name.into(), json!(text)).map(drop),
        };
    }
    let mut walk = schema.walk();
    walk.object(&schema.root, &value);
    let prefix = format!("Query parameter {}: ", first.as_str().unwrap_or_default());
    let message = error.message().strip_prefix(&prefix);
    let mut faults = vec![json!({"parameter": first, "message": message})];
    for fault in walk.faults {
        let path = fault["path"].as_str().unwrap_or_default();
        let name = path.trim_start_matches("$.").split('[').next();
        let parameter = json!(name);
        if faults.iter().all(|known| known["parameter"] != parameter) {
            faults.push(json!({"parameter": parameter, "message": fault["message"]}));
        }
    }
    faults.truncate(FAULTS_MOST);
    listing(error, faults)
}

/// The first fault, with the others in `details.faults`.
fn listing(error: Error, faults: Vec<Value>) -> Error {
    let error = match faults.len() {
        0 | 1 => error,
        2 => error.adding("There is one more fault: details.faults lists both."),
        several => error.adding(&format!(
            "There are {} more faults: details.faults lists all.",
            several - 1
        )),
    };
    error.detail("faults", faults)
}

/// Takes what two checks of one body say, so that the faults of both are told. An error that is not about the body is
/// answered alone.
///
/// # Errors
/// Theirs: the first one, with the other beside it.
pub fn both<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(second)) => Err(match (faults_of(&first), faults_of(&second)) {
            (Some(faults), Some(more)) => first.detail("faults", [faults, more].concat()),
            (None, _) => first,
            (_, None) => second,
        }),
    }
}

/// Two descriptions of one fault: at a place there is one, but several fields of an object may be missing.
fn is_same(known: &Value, found: &Value) -> bool {
    let missing = |fault: &Value| {
        let text = fault["message"].as_str().unwrap_or_default();
        text.starts_with("missing field").then(|| text.to_owned())
    };
    known["path"] == found["path"] && missing(known) == missing(found)
}

/// Goes over a body along its schema.
struct Walk<'s> {
    definitions: &'s Map<String, Value>,
    /// The steps to the place, which joined are its JSON path.
    path: Vec<String>,
    faults: Vec<Value>,
}

impl Walk<'_> {
    fn fault(&mut self, message: impl std::fmt::Display) {
        let path = self.path.concat();
        let message = format!("{message}.");
        self.faults.push(json!({"path": path, "message": message}));
    }

    /// Whether the first field that the form requires is there.
    fn begins(&self, form: &Value, value: &Value) -> bool {
        let named = form["$ref"].as_str().map(last_part);
        let form = named
            .and_then(|name| self.definitions.get(name))
            .unwrap_or(form);
        let field = form["required"][0].as_str();
        field.is_some_and(|field| value.get(field).is_some())
    }

    fn is_full(&self) -> bool {
        // One more: the first fault may be among them.
        self.faults.len() > FAULTS_MOST
    }

    fn value(&mut self, schema: &Value, value: &Value) {
        let definitions = self.definitions;
        let named = schema["$ref"].as_str();
        if let Some(schema) = named.and_then(|path| definitions.get(last_part(path))) {
            return self.value(schema, value);
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            // An object or null, or objects: the form whose first field is there is meant, else the first one.
            let mut forms = branches.iter().filter(|branch| branch["type"] != "null");
            let first = forms.clone().next();
            let wanted = forms.find(|form| self.begins(form, value)).or(first);
            return match wanted {
                Some(wanted) if !value.is_null() => self.value(wanted, value),
                _ => (),
            };
        }
        let types = types(schema);
        if !types.is_empty() && !types.iter().any(|name| is_of(name, value)) {
            return self.fault(format_args!("expected {}", spoken(&types)));
        }
        if let Some(known) = schema["enum"].as_array()
            && !known.contains(value)
        {
            let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
            return self.fault(format_args!("expected one of {}", known.join(", ")));
        }
        match value {
            Value::String(text) => self.text(schema, text),
            Value::Number(_) => self.number(schema, value),
            Value::Array(items) => self.array(schema, items),
            Value::Object(fields) => self.object(schema, fields),
            _ => (),
        }
    }

    fn text(&mut self, schema: &Value, text: &str) {
        match schema["format"].as_str() {
            Some("uuid") if ids::parse(text).is_none() => {
                return self.fault(
                    "expected an id: 32 hexadecimal digits in five groups with hyphens between",
                );
            }
            Some("date-time") if Timestamp::deserialize(json!(text)).is_err() => {
                return self.fault("expected a time such as 2026-01-31T08:00:00Z");
            }
            Some("uri") if !is_url(text) => {
                return self.fault("expected a URL such as https://api.example.com/v1");
            }
            _ => (),
        }
        let length = text.chars().count() as u64;
        let (least, most) = bounds(schema, "minLength", "maxLength");
        if length < least || length > most {
            return self.fault(format_args!(
                "expected a text of {}",
                range(least, most, "characters")
            ));
        }
        let pattern = schema["pattern"].as_str().unwrap_or_default();
        if pattern.is_empty() || jsonschema::is_valid(&json!({"pattern": pattern}), &json!(text)) {
            return;
        }
        match pattern {
            NOT_BLANK => self.fault("expected a text that is not blank"),
            pattern => self.fault(format_args!("expected a text that matches {pattern}")),
        }
    }

    fn number(&mut self, schema: &Value, value: &Value) {
        let number = value.as_f64().unwrap_or(f64::NAN);
        let bound = |name: &str| schema[name].as_f64();
        let is_below = bound("minimum").is_some_and(|least| number < least);
        let is_above = bound("maximum").is_some_and(|most| number > most);
        if !is_below && !is_above {
            return;
        }
        let shown = |name: &str| schema.get(name).map(Value::to_string);
        match (shown("minimum"), shown("maximum")) {
            (Some(least), Some(most)) => self.fault(format_args!("expected {least} to {most}")),
            (Some(least), None) => self.fault(format_args!("expected {least} or more")),
            (_, most) => self.fault(format_args!(
                "expected {} or less",
                most.unwrap_or_default()
            )),
        }
    }

    fn array(&mut self, schema: &Value, items: &[Value]) {
        let (least, most) = bounds(schema, "minItems", "maxItems");
        let count = items.len() as u64;
        if count < least || count > most {
            return self.fault(format_args!("expected {}", range(least, most, "items")));
        }
        for (index, item) in items.iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.path.push(format!("[{index}]"));
            self.value(&schema["items"], item);
            self.path.pop();
        }
    }

    fn object(&mut self, schema: &Value, fields: &Map<String, Value>) {
        let required = schema["required"].as_array();
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                self.fault(format_args!("missing field `{name}`"));
            }
        }
        let most = schema["maxProperties"].as_u64().unwrap_or(u64::MAX);
        if fields.len() as u64 > most {
            self.fault(format_args!("expected at most {most} fields"));
        }
        let nothing = Map::new();
        let known = schema["properties"].as_object().unwrap_or(&nothing);
        for (name, value) in fields {
            if self.is_full() {
                return;
            }
            let short: String = name.chars().take(NAME_MOST).collect();
            self.path.push(format!(".{short}"));
            match (known.get(name), &schema["additionalProperties"]) {
                (Some(schema), _) => self.value(schema, value),
                (None, Value::Bool(false)) => {
                    let known: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
                    let known = known.join(", ");
                    self.fault(format_args!("unknown field `{short}`, expected {known}"));
                }
                (None, others) => {
                    self.text(&schema["propertyNames"], name);
                    self.value(others, value);
                }
            }
            self.path.pop();
        }
    }
}

/// Whether it has the form of what the service calls. Whether it may be called is another matter.
fn is_url(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
}

fn last_part(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or_default()
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

fn spoken(types: &[&str]) -> String {
    let one = |name: &&str| match *name {
        "null" => "null".to_owned(),
        "string" => "a text".to_owned(),
        "integer" => "a whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        name if name.starts_with(['a', 'o']) => format!("an {name}"),
        name => format!("a {name}"),
    };
    types.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn bounds(schema: &Value, least: &str, most: &str) -> (u64, u64) {
    let bound = |name: &str| schema[name].as_u64();
    (bound(least).unwrap_or(0), bound(most).unwrap_or(u64::MAX))
}

fn range(least: u64, most: u64, what: &str) -> String {
    match most {
        u64::MAX => format!("{least} {what} or more"),
        most => format!("{least} to {most} {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::input::{Name, read_text};
    use crate::ids::Id;
    use schemars::JsonSchema;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Blue,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its parsing is tested")]
        #[schemars(range(min = 1, max = 9))]
        count: u8,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only its parsing is tested")]
    struct Sample {
        name: Name,
        owner_id: Id,
        until: Option<Timestamp>,
        colour: Option<Colour>,
        inner: Option<Inner>,
        #[serde(default)]
        #[schemars(length(max = 3))]
        tags: Vec<String>,
    }

    fn faults(body: &str) -> (String, Vec<(String, String)>) {
        let error = read_text::<Sample>(body.as_bytes()).unwrap_err();
        let schema = BodySchema::of(|generator| Some(generator.subschema_for::<Sample>())).unwrap();
        let error = schema.complete(error, body.as_bytes());
        let listed = error.details()["faults"].as_array().unwrap();
        let text = |fault: &Value, name: &str| fault[name].as_str().unwrap().to_owned();
        let listed = listed
            .iter()
            .map(|fault| (text(fault, "path"), text(fault, "message")));
        (error.message().to_owned(), listed.collect())
    }

    #[test]
    fn every_fault_is_told_and_the_first_one_is_the_error_s() {
        let (message, listed) = faults(
            r#"{"nam": 1, "ownerId": "x", "until": "soon", "colour": "green", "inner": {"count": 12},
                "tags": ["a", 2]}"#,
        );
        assert!(message.starts_with("The body's $.nam: unknown field `nam`"));
        assert!(message.ends_with("There are 6 more faults: details.faults lists all."));
        let listed: Vec<(&str, &str)> = listed
            .iter()
            .map(|(path, message)| (path.as_str(), message.get(..20).unwrap_or(message)))
            .collect();
        assert_eq!(
            listed,
            [
                ("$.nam", "unknown field `nam`,"),
                ("$", "missing field `name`"),
                ("$.ownerId", "expected an id: 32 h"),
                ("$.until", "expected a time such"),
                ("$.colour", "expected one of red,"),
                ("$.inner.count", "expected 1 to 9."),
                ("$.tags[1]", "expected a text."),
            ]
        );
    }

    #[test]
    fn fields_of_any_name_have_bounds_too() {
        let root = json!({"type": "object", "maxProperties": 2, "propertyNames": {"pattern": "^[a-z]+$"},
            "additionalProperties": {"type": "string"}});
        let schema = BodySchema {
            root,
            definitions: Map::new(),
        };
        let mut walk = schema.walk();
        walk.value(&schema.root, &json!({"a": "b", "B": "c", "d": 1}));
        let paths: Vec<&str> = walk
            .faults
            .iter()
            .filter_map(|fault| fault["path"].as_str())
            .collect();
        assert_eq!(paths, ["$", "$.B", "$.d"]);
    }

    #[test]
    fn one_fault_is_told_once() {
        for body in [
            "[]",
            "{}",
            r#"{"name": " ", "ownerId": "01993c5e-7c1f-7d2a-9c55-0242ac120002"}"#,
            r#"{"name": "a", "ownerId": "01993c5e-7c1f-7d2a-9c55-0242ac120002", "inner": 3}"#,
        ] {
            let (message, listed) = faults(body);
            let expected = if body == "{}" { 2 } else { 1 };
            assert_eq!(listed.len(), expected, "{body}: {listed:?}");
            assert_eq!(
                message.contains("details.faults"),
                expected > 1,
                "{message}"
            );
        }
    }

    #[test]
    fn faults_have_a_bound() {
        let many: Map<String, Value> = (0..1000).map(|n| (n.to_string(), json!(n))).collect();
        let (_, listed) = faults(&Value::Object(many).to_string());
        assert_eq!(listed.len(), FAULTS_MOST);
    }

    #[test]
    fn checks_of_one_body_are_told_together_and_another_refusal_alone() {
        let bad = |path: &str| {
            Err::<(), Error>(Error::new(Code::InvalidBody, "Bad.").detail("path", path))
        };
        assert_eq!(both(Ok(1), Ok(2)).unwrap(), (1, 2));
        let three = both(both(bad("$.a"), Ok(())), both(bad("$.b"), bad("$.c")));
        let error = three.unwrap_err();
        assert_eq!(error.details()["path"], "$.a");
        assert_eq!(error.details()["faults"].as_array().unwrap().len(), 3);
        assert_eq!(error.details()["faults"][2]["path"], "$.c");
        let denied = || Err::<(), Error>(Error::new(Code::HostAccessDenied, "Not there."));
        for refusal in [both(bad("$.a"), denied()), both(denied(), bad("$.a"))] {
            let error = refusal.unwrap_err();
            assert_eq!(error.code(), Code::HostAccessDenied);
            assert!(error.details().is_empty());
        }
    }
}
