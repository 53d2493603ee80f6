//! A handler's input: a JSON body, query parameters, or nothing.
//!
//! Every refusal names the path of the fault and what was expected. The types refuse unknown fields
//! (`deny_unknown_fields`). NUL characters are refused here, because PostgreSQL cannot store them.

use super::context::Cx;
use super::faults::{NOT_BLANK, complete_query};
use crate::error::{Code, Error, Result};
use crate::json::repeated_key;
use crate::text;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Characters of a fault's description, which quotes what was sent.
const REPEATED_MOST: usize = 150;

/// What a handler takes.
pub trait Input: Sized {
    /// It reads the body.
    const TAKES_BODY: bool = false;
    /// The codes that reading can answer.
    fn codes() -> Vec<Code> {
        Vec::new()
    }
    /// The body's schema.
    fn body(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    /// The query parameters' schema.
    fn query(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    /// Reads it.
    ///
    /// # Errors
    /// `invalid-body`, `invalid-request`, `unsupported-media-type`.
    fn read(cx: &Cx<'_>) -> Result<Self>;
}

/// A type's place among the schemas.
pub(super) trait Described: JsonSchema {
    fn described(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Self>()
    }
}
impl<T: JsonSchema> Described for T {}

/// Nothing. Query parameters are refused.
#[derive(Debug)]
pub struct Nothing;

impl Input for Nothing {
    fn read(cx: &Cx<'_>) -> Result<Self> {
        refuse_query(cx).map(|()| Self)
    }
}

fn refuse_query(cx: &Cx<'_>) -> Result<()> {
    if cx.query_text().is_empty() {
        return Ok(());
    }
    Err(Error::new(
        Code::InvalidRequest,
        "This route takes no query parameters. Leave them out.",
    ))
}

/// A JSON body.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> Input for Body<T> {
    const TAKES_BODY: bool = true;
    fn codes() -> Vec<Code> {
        body_codes()
    }
    fn body(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(T::described(generator))
    }
    fn read(cx: &Cx<'_>) -> Result<Self> {
        refuse_query(cx)?;
        read_body(cx).map(Self)
    }
}

/// A JSON body that holds a secret: nothing of it is repeated, whatever is wrong with it.
#[derive(Debug)]
pub struct SecretBody<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> Input for SecretBody<T> {
    const TAKES_BODY: bool = true;
    fn codes() -> Vec<Code> {
        body_codes()
    }
    fn body(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(T::described(generator))
    }
    fn read(cx: &Cx<'_>) -> Result<Self> {
        refuse_query(cx)?;
        check_media_type(cx)?;
        let body = cx.body()?;
        let is_read = is_no_array(body) && repeated_key(body).is_none();
        let read = is_read.then(|| serde_json::from_slice(body).ok());
        read.flatten().map(Self).ok_or_else(|| {
            Error::new(
                Code::InvalidBody,
                "The body is not JSON of this route's shape. Nothing of it is repeated here, \
                 because it may hold a secret.",
            )
        })
    }
}

/// Query parameters.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> Input for Query<T> {
    fn codes() -> Vec<Code> {
        vec![Code::InvalidCursor]
    }
    fn query(generator: &mut SchemaGenerator) -> Option<Schema> {
        // The properties become parameters, so the type itself is no schema of its own.
        Some(T::json_schema(generator))
    }
    fn read(cx: &Cx<'_>) -> Result<Self> {
        let text = cx.query_text();
        if text.contains("%00") {
            return Err(Error::new(
                Code::InvalidRequest,
                "The query holds a NUL character, which cannot be stored. Leave it out.",
            ));
        }
        let given = || url::form_urlencoded::parse(text.as_bytes());
        // Left empty it would count as left out, and a filter would let everything pass.
        if let Some((name, _)) = given().find(|(_, value)| value.is_empty()) {
            let name = shortened(name.into_owned());
            let error = Error::new(
                Code::InvalidRequest,
                format!("Query parameter {name}: it has no value. Give one or leave it out."),
            );
            let error = error.detail("parameter", name);
            return Err(complete_query(error, T::json_schema, given()));
        }
        let parameters = serde_html_form::Deserializer::new(given());
        serde_path_to_error::deserialize(parameters)
            .map(Self)
            .map_err(|error| {
                let name = shortened(error.path().to_string());
                let expected = shortened(error.inner().to_string());
                let error = Error::new(
                    Code::InvalidRequest,
                    format!("Query parameter {name}: {expected}."),
                );
                complete_query(error.detail("parameter", name), T::json_schema, given())
            })
    }
}

/// The codes that reading a body can answer.
pub(super) fn body_codes() -> Vec<Code> {
    vec![Code::InvalidBody, Code::UnsupportedMediaType]
}

fn nul(place: &str) -> Error {
    Error::new(
        Code::InvalidBody,
        format!("A text holds a NUL character at {place}, which cannot be stored. Leave it out."),
    )
    .detail("path", place)
}

/// Reads the JSON body.
///
/// # Errors
/// `unsupported-media-type`; `invalid-body` with the JSON path of the fault and what was expected.
pub(super) fn read_body<T: DeserializeOwned>(cx: &Cx<'_>) -> Result<T> {
    check_media_type(cx)?;
    read_text(cx.body()?)
}

fn check_media_type(cx: &Cx<'_>) -> Result<()> {
    let media_type = cx.header("content-type").unwrap_or_default();
    let essence = text::media_type_essence(media_type);
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Error::new(
            Code::UnsupportedMediaType,
            "This route takes a JSON body. Send Content-Type: application/json.",
        ));
    }
    Ok(())
}

/// Serde takes an array for a struct, its items for the fields in their order. No route does.
fn is_no_array(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() != Some(&b'[')
}

/// Reads a body's text.
///
/// # Errors
/// As [`read_body`].
pub(super) fn read_text<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    if !is_no_array(bytes) {
        return Err(
            Error::new(Code::InvalidBody, "The body's $: expected an object.")
                .detail("path", "$")
                .detail("expected", "an object"),
        );
    }
    // An escaped NUL is the only way in for one; the walk is paid for by those alone who send it.
    if bytes.windows(6).any(|window| window == b"\\u0000") {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| syntax(&error))?;
        if let Some(path) = find_nul(&value, "$") {
            return Err(nul(&path));
        }
    }
    if let Some(path) = repeated_key(bytes).map(shortened) {
        let expected = "each key once in its object";
        return Err(Error::new(
            Code::InvalidBody,
            format!("The body's {path}: expected {expected}, and this one stands twice."),
        )
        .detail("path", path)
        .detail("expected", expected));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = shortened(format!("$.{}", error.path()).replace("$..", "$"));
        let inner = error.into_inner();
        // A number where an enum's text belongs counts as syntax, too.
        let is_json = || serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        if inner.is_eof() || (inner.is_syntax() && !is_json()) {
            return syntax(&inner);
        }
        let expected = shortened(without_position(&inner.to_string()));
        Error::new(Code::InvalidBody, format!("The body's {path}: {expected}."))
            .detail("path", path)
            .detail("expected", expected)
    })?;
    reader.end().map_err(|error| syntax(&error))?;
    Ok(value)
}

fn syntax(error: &serde_json::Error) -> Error {
    Error::new(Code::InvalidBody, format!("The body is not JSON: {error}."))
        .detail("line", error.line())
        .detail("column", error.column())
}

/// An error repeats what was sent, but not all of it.
fn shortened(text: String) -> String {
    if text.chars().count() <= REPEATED_MOST {
        return text;
    }
    let mut start: String = text.chars().take(REPEATED_MOST).collect();
    start.push('…');
    start
}

/// serde_json appends the position to its own sentence; the path says it better.
fn without_position(text: &str) -> String {
    text.rsplit_once(" at line ")
        .map_or(text, |(sentence, _)| sentence)
        .to_owned()
}

fn find_nul(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(|| path.to_owned()),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| find_nul(item, &format!("{path}[{index}]"))),
        Value::Object(fields) => fields.iter().find_map(|(key, item)| {
            if key.contains('\0') {
                return Some(format!("a key of {path}"));
            }
            find_nul(item, &format!("{path}.{key}"))
        }),
        _ => None,
    }
}

/// A text of `MIN` to `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text<const MIN: usize, const MAX: usize>(String);

/// A name of something: 1 to 200 characters.
pub type Name = Text<1, 200>;

impl<const MIN: usize, const MAX: usize> Text<MIN, MAX> {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for Text<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let length = text.chars().count();
        let blank = MIN > 0 && text.trim().is_empty();
        if length < MIN || length > MAX || blank {
            return Err(serde::de::Error::custom(format!(
                "expected a text of {MIN} to {MAX} characters that is not blank, got {length}"
            )));
        }
        Ok(Self(text))
    }
}

impl<const MIN: usize, const MAX: usize> JsonSchema for Text<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Text{MIN}To{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema =
            schemars::json_schema!({"type": "string", "minLength": MIN, "maxLength": MAX});
        if MIN > 0 {
            // It is not blank.
            schema.insert("pattern".to_owned(), NOT_BLANK.into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only its parsing is tested")]
        name: Name,
        #[serde(default)]
        #[expect(dead_code, reason = "only its parsing is tested")]
        tags: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Order {
        #[expect(dead_code, reason = "only its parsing is tested")]
        order: crate::store::page::Order,
    }

    fn check(body: &str, message: &str) {
        let error = read_text::<Sample>(body.as_bytes()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidBody);
        assert!(error.message().contains(message), "{error}");
    }

    #[test]
    fn faults_name_their_place() {
        assert!(read_text::<Sample>(br#"{"name":"a"}"#).is_ok());
        check(r#"{"name":"#, "is not JSON");
        check(r#"{"name":"a"} x"#, "is not JSON");
        check(r#"{"name":""}"#, "$.name: expected a text of 1 to 200");
        check(r#"{"name":"a","tags":["x",3]}"#, "$.tags[1]: invalid type");
        check(r#"{"name":"a","nam":1}"#, "unknown field `nam`");
        check(
            r#"{"name":"a","tags":["\u0000"]}"#,
            "NUL character at $.tags[0]",
        );
        check(r#"{"name":"a","\u0000":1}"#, "NUL character at a key of $");
        check(
            r#"{"name":"a","name":"a"}"#,
            "$.name: expected each key once",
        );
        check(
            r#"{"name":"a","tags":[{"b":1,"b":2}]}"#,
            "$.tags[0].b: expected each key once",
        );
        check("[]", "$: expected an object");
        check(r#" ["a"]"#, "$: expected an object");
        let error = read_text::<Order>(br#"{"order":1}"#).unwrap_err();
        assert!(error.message().contains("$.order: "), "{error}");
        assert!(read_text::<Sample>(br#"{"name":"\\u0000"}"#).is_ok());
    }
}
