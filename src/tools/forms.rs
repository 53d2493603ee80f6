//! Forms: what a reviewer fills in with a decision, as the JSON Schema of the answer.
//!
//! A form is an object of flat fields: text, a number, yes or no, one of several texts. So every client can draw it, and an
//! answer has bounds. A field that the form does not have fits no form.
//!
//! Not here: who is asked, and drawing a form.

use super::schema::{self, Fault};
use crate::store::approvals::FORM_BYTES;
use serde_json::{Map, Value, json};

/// The most fields.
const FIELDS_MOST: usize = 50;
/// The longest name of a field, in characters.
const NAME_MOST: usize = 64;
/// The most texts to choose from.
const CHOICES_MOST: usize = 100;

/// What every field may have.
const COMMON: [&str; 4] = ["type", "title", "description", "default"];

/// Whether the value of a keyword is what is expected.
type Read = fn(&Value) -> bool;

/// What is wrong with a form: every fault, each with its place as the end of a JSON path. Of a form without one, answers can be
/// checked.
pub fn faults(form: &Value) -> Vec<Fault> {
    let mut check = Check { faults: Vec::new() };
    if form.to_string().len() > FORM_BYTES {
        check.expect("", format!("at most {FORM_BYTES} bytes of JSON"));
        return check.faults;
    }
    check.form(form);
    if check.faults.is_empty() {
        check.faults.extend(schema::compile(&closed(form)).err());
    }
    check.faults
}

/// What of an answer does not fit a form, each with its place as the end of a JSON path; `most` at most. No answer is an empty
/// one.
///
/// # Errors
/// The form is none.
pub fn answer_faults(
    form: &Value,
    answer: Option<&Value>,
    most: usize,
) -> Result<Vec<Fault>, Fault> {
    let fits = schema::compile(&closed(form))?;
    let empty = json!({});
    let answer = answer.unwrap_or(&empty);
    Ok(schema::faults_at(&fits, answer, "the form", most))
}

/// The answer of a form that nobody changes.
pub fn defaults(form: &Value) -> Value {
    let fields = form["properties"].as_object();
    let given = fields.into_iter().flatten().filter_map(|(name, field)| {
        let default = field.get("default")?;
        Some((name.clone(), default.clone()))
    });
    Value::Object(given.collect())
}

/// The form as the schema of an answer, which has no other fields.
fn closed(form: &Value) -> Value {
    let mut form = form.clone();
    if let Some(keywords) = form.as_object_mut() {
        keywords.insert("additionalProperties".to_owned(), json!(false));
    }
    form
}

fn is_length(value: &Value) -> bool {
    value.as_u64().is_some()
}

fn is_number(value: &Value) -> bool {
    value.is_number()
}

/// Texts to choose from, each once.
fn are_choices(value: &Value) -> bool {
    let Some(choices) = value.as_array() else {
        return false;
    };
    let is_first =
        |(at, choice): (usize, &Value)| choice.is_string() && !choices[..at].contains(choice);
    (1..=CHOICES_MOST).contains(&choices.len()) && choices.iter().enumerate().all(is_first)
}

/// What a field of each type may have beside [`COMMON`], with what is expected there.
fn bounds(kind: &str) -> Option<&'static [(&'static str, Read, &'static str)]> {
    const LENGTH: &str = "a number of characters";
    Some(match kind {
        "string" => &[
            ("minLength", is_length, LENGTH),
            ("maxLength", is_length, LENGTH),
            ("enum", are_choices, "1 to 100 texts, each once"),
        ],
        "number" | "integer" => &[
            ("minimum", is_number, "a number"),
            ("maximum", is_number, "a number"),
        ],
        "boolean" => &[],
        _ => return None,
    })
}

struct Check {
    faults: Vec<Fault>,
}

impl Check {
    fn expect(&mut self, path: impl Into<String>, expected: impl Into<String>) {
        self.faults.push(Fault {
            path: path.into(),
            expected: expected.into(),
        });
    }

    fn form(&mut self, form: &Value) {
        let Some(form) = form.as_object() else {
            return self.expect("", "an object: a JSON Schema of flat fields");
        };
        if form.get("type").and_then(Value::as_str) != Some("object") {
            self.expect(".type", "\"object\"");
        }
        self.texts("", form);
        let known = ["type", "title", "description", "properties", "required"];
        for (name, value) in form {
            match name.as_str() {
                "additionalProperties" if *value == json!(false) => {}
                name if known.contains(&name) => {}
                _ => self.expect(format!(".{name}"), among("a form", &known)),
            }
        }
        let Some(fields) = form.get("properties").and_then(Value::as_object) else {
            return self.expect(".properties", "an object of fields");
        };
        if fields.is_empty() || fields.len() > FIELDS_MOST {
            return self.expect(".properties", format!("1 to {FIELDS_MOST} fields"));
        }
        for (name, field) in fields {
            self.field(name, field);
        }
        if let Some(required) = form.get("required") {
            self.required(required, fields);
        }
    }

    /// `title` and `description`.
    fn texts(&mut self, path: &str, keywords: &Map<String, Value>) {
        for name in ["title", "description"] {
            if keywords.get(name).is_some_and(|value| !value.is_string()) {
                self.expect(format!("{path}.{name}"), "a text");
            }
        }
    }

    fn required(&mut self, required: &Value, fields: &Map<String, Value>) {
        let Some(names) = required.as_array() else {
            return self.expect(".required", "a list of the names of fields");
        };
        for (at, name) in names.iter().enumerate() {
            let is_field = name.as_str().is_some_and(|name| fields.contains_key(name));
            if !is_field || names[..at].contains(name) {
                self.expect(
                    format!(".required[{at}]"),
                    "the name of a field of the form, once",
                );
            }
        }
    }

    fn field(&mut self, name: &str, field: &Value) {
        let path = format!(".properties.{name}");
        if !(1..=NAME_MOST).contains(&name.chars().count()) || name.chars().any(char::is_control) {
            let expected = format!("a name of 1 to {NAME_MOST} characters");
            return self.expect(path, expected);
        }
        let Some(keywords) = field.as_object() else {
            return self.expect(path, "an object: the field's schema");
        };
        let kind = keywords.get("type").and_then(Value::as_str);
        let Some(bounds) = kind.and_then(bounds) else {
            let expected = "\"string\", \"number\", \"integer\" or \"boolean\": fields are flat";
            return self.expect(format!("{path}.type"), expected);
        };
        let before = self.faults.len();
        self.texts(&path, keywords);
        for (name, value) in keywords {
            let bound = bounds.iter().find(|(bound, ..)| bound == name);
            match bound {
                Some((_, is_met, expected)) if !is_met(value) => {
                    self.expect(format!("{path}.{name}"), *expected);
                }
                None if !COMMON.contains(&name.as_str()) => {
                    let own = bounds.iter().map(|(bound, ..)| *bound);
                    let known: Vec<&str> = COMMON.into_iter().chain(own).collect();
                    let expected = among("a field of this type", &known);
                    self.expect(format!("{path}.{name}"), expected);
                }
                _ => {}
            }
        }
        if self.faults.len() == before {
            self.together(&path, keywords);
        }
        if self.faults.len() == before {
            self.default(&path, field);
        }
    }

    /// Something fits the bounds of a field.
    fn together(&mut self, path: &str, keywords: &Map<String, Value>) {
        for (least, most) in [("minLength", "maxLength"), ("minimum", "maximum")] {
            let bound = |name| keywords.get(name).and_then(Value::as_f64);
            if bound(least).zip(bound(most)).is_some_and(|(a, b)| a > b) {
                let expected = format!("no less than `{least}`");
                self.expect(format!("{path}.{most}"), expected);
            }
        }
    }

    /// The default of a field fits it.
    fn default(&mut self, path: &str, field: &Value) {
        let Some(default) = field.get("default") else {
            return;
        };
        match schema::compile_any(field) {
            Ok(fits) if fits.is_valid(default) => {}
            Ok(_) => self.expect(format!("{path}.default"), "a value that fits the field"),
            Err(fault) => self.expect(format!("{path}{}", fault.path), fault.expected),
        }
    }
}

fn among(what: &str, known: &[&str]) -> String {
    format!("what {what} may have: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Value {
        json!({
            "type": "object",
            "title": "The refund",
            "properties": {
                "amount": {"type": "number", "title": "Amount in EUR", "minimum": 0, "maximum": 500, "default": 10},
                "parts": {"type": "integer", "minimum": 1},
                "reason": {"type": "string", "enum": ["late", "damaged"], "description": "As the customer says."},
                "note": {"type": "string", "minLength": 2, "maxLength": 5},
                "notify": {"type": "boolean", "default": true},
            },
            "required": ["amount", "reason"],
            "additionalProperties": false,
        })
    }

    /// The faults of the form with this value at a pointer.
    fn with(pointer: &str, value: Value) -> Vec<String> {
        let mut form = form();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match form.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
            parent => parent[name] = value,
        }
        let faults = faults(&form).into_iter();
        faults.map(|fault| fault.path).collect()
    }

    #[test]
    fn a_form_of_flat_fields_is_taken() {
        assert_eq!(faults(&form()), []);
        let least = json!({"type": "object", "properties": {"a b": {"type": "boolean"}}});
        assert_eq!(faults(&least), []);
    }

    #[test]
    fn what_is_wrong_with_a_form_is_named() {
        for (pointer, value, path) in [
            ("/type", json!("array"), ".type"),
            ("/title", json!(1), ".title"),
            ("/oneOf", json!([]), ".oneOf"),
            (
                "/additionalProperties",
                json!(true),
                ".additionalProperties",
            ),
            ("/properties", json!([]), ".properties"),
            ("/properties", json!({}), ".properties"),
            ("/required", json!("amount"), ".required"),
            ("/required/1", json!("who"), ".required[1]"),
            ("/required/1", json!("amount"), ".required[1]"),
            ("/properties/x", json!(true), ".properties.x"),
            ("/properties/x", json!({}), ".properties.x.type"),
            (
                "/properties/x",
                json!({"type": "object", "properties": {}}),
                ".properties.x.type",
            ),
            (
                "/properties/x",
                json!({"type": ["string", "null"]}),
                ".properties.x.type",
            ),
        ] {
            assert_eq!(with(pointer, value.clone()), [path], "{pointer} {value}");
        }
        let fields: Map<String, Value> = (0..=FIELDS_MOST)
            .map(|n| (n.to_string(), json!({"type": "boolean"})))
            .collect();
        let many = json!({"type": "object", "properties": fields});
        assert_eq!(faults(&many)[0].path, ".properties");
        assert_eq!(faults(&json!("text"))[0].path, "");
    }

    #[test]
    fn what_is_wrong_with_a_field_is_named() {
        for (pointer, value, path) in [
            (
                "/properties/note/pattern",
                json!("a"),
                ".properties.note.pattern",
            ),
            (
                "/properties/note/title",
                json!({}),
                ".properties.note.title",
            ),
            (
                "/properties/note/maxLength",
                json!(-1),
                ".properties.note.maxLength",
            ),
            (
                "/properties/note/maxLength",
                json!(1),
                ".properties.note.maxLength",
            ),
            (
                "/properties/amount/maximum",
                json!("5"),
                ".properties.amount.maximum",
            ),
            (
                "/properties/amount/default",
                json!(501),
                ".properties.amount.default",
            ),
            (
                "/properties/amount/enum",
                json!(["a"]),
                ".properties.amount.enum",
            ),
            (
                "/properties/reason/enum",
                json!([]),
                ".properties.reason.enum",
            ),
            (
                "/properties/reason/enum",
                json!(["a", "a"]),
                ".properties.reason.enum",
            ),
            (
                "/properties/reason/enum",
                json!([1]),
                ".properties.reason.enum",
            ),
            ("/description", json!("x".repeat(FORM_BYTES)), ""),
        ] {
            assert_eq!(with(pointer, value.clone()), [path], "{pointer} {value}");
        }
    }

    #[test]
    fn an_answer_fits_a_form_or_each_fault_is_at_its_field() {
        let paths = |answer: Option<Value>| {
            let faults = answer_faults(&form(), answer.as_ref(), 20).unwrap();
            let mut paths: Vec<String> = faults.into_iter().map(|fault| fault.path).collect();
            paths.sort_unstable();
            paths
        };
        let fits =
            json!({"amount": 500, "parts": 2.0, "reason": "late", "note": "ab", "notify": false});
        assert_eq!(paths(Some(fits)), Vec::<String>::new());
        assert_eq!(paths(None), [".amount", ".reason"]);
        assert_eq!(paths(Some(json!(7))), [""]);
        let wrong = json!({"amount": -1, "parts": 1.5, "reason": "lost", "note": "a", "notify": "yes", "who": 1});
        let all = [".amount", ".note", ".notify", ".parts", ".reason", ".who"];
        assert_eq!(paths(Some(wrong)), all);
        assert_eq!(answer_faults(&form(), None, 1).unwrap().len(), 1);
    }

    #[test]
    fn an_answer_that_nobody_changes_has_the_defaults() {
        assert_eq!(defaults(&form()), json!({"amount": 10, "notify": true}));
    }
}
