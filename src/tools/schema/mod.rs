//! The JSON Schemas of tools' arguments and of agents' answers: compiling them, and checking what is to fit.
//!
//! A tenant writes a schema and a run thread uses it, so a schema is bounded before it is compiled.
//! It must be self-contained, and a small tree once its references are followed. So compiling it
//! and checking arguments takes little time, memory and stack, whoever wrote it.

use super::exchange::Answer;
use crate::json::{SENT_NESTING_MOST, is_nested_deeper};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The stack of a thread that checks arguments. Schemas, arguments and answers come from outside and
/// may nest as deep as the JSON parser takes, which a smaller stack does not hold in an unoptimised
/// build. What is not touched costs no memory.
pub const STACK_BYTES: usize = 2 * 1024 * 1024;

/// The longest schema, in bytes of JSON.
const BYTES_MOST: usize = 64 * 1024;
/// The deepest nesting of JSON, references followed: with it a run thread's stack suffices.
const DEPTH_MOST: usize = 32;
/// JSON values, references followed.
const VALUES_MOST: usize = 20_000;
/// Keywords in one another that ask what others have not evaluated: each doubles the work for one value.
const UNEVALUATED_MOST: usize = 8;
/// Regular expressions, references followed, and the size of each when compiled.
const PATTERNS_MOST: usize = 100;
const PATTERN_BYTES: usize = 256 * 1024;

/// The versions of JSON Schema in which a reference is a JSON pointer and nothing else is meant by it.
const DRAFTS: [&str; 3] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
];

/// What is wrong with a schema.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, as the end of a JSON path: `.properties.city.type`; empty for the whole.
    pub path: String,
    /// What is expected there.
    pub expected: String,
}

/// Compiles the schema of an object.
///
/// # Errors
/// As [`compile_any`], or it is one of something else.
pub fn compile(schema: &Value) -> Result<Validator, Fault> {
    let kind = schema.as_object().map(|root| root.get("type"));
    if kind.is_some_and(|kind| kind.and_then(Value::as_str) != Some("object")) {
        return Err(Fault {
            path: ".type".to_owned(),
            expected: "\"object\", because what fits the schema is an object".to_owned(),
        });
    }
    compile_any(schema)
}

/// Compiles a schema of any value.
///
/// # Errors
/// It is no JSON Schema (2020-12, 2019-09 or draft 7), or a larger or less simple one than is taken.
pub fn compile_any(schema: &Value) -> Result<Validator, Fault> {
    let fault = |path: &str, expected: String| Fault {
        path: path.to_owned(),
        expected,
    };
    let Some(root) = schema.as_object() else {
        return Err(fault("", "a JSON Schema as an object".to_owned()));
    };
    let draft = root
        .get("$schema")
        .map(|draft| draft.as_str().unwrap_or_default());
    if draft.is_some_and(|draft| !DRAFTS.contains(&draft.trim_end_matches('#'))) {
        return Err(fault(".$schema", format!("one of {}", DRAFTS.join(", "))));
    }
    if schema.to_string().len() > BYTES_MOST {
        return Err(fault("", format!("at most {BYTES_MOST} bytes of JSON")));
    }
    let mut walk = Walk {
        root: schema,
        path: Vec::new(),
        values: 0,
        patterns: 0,
    };
    walk.value(schema)
        .map_err(|expected| fault(&path_text(&walk.path), expected))?;
    let patterns = PatternOptions::regex()
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES);
    jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| {
            let said: String = error.to_string().chars().take(300).collect();
            Fault {
                path: path_of_pointer(schema, error.instance_path().as_str()),
                expected: format!("a valid JSON Schema ({said})"),
            }
        })
}

/// The schemas of one program's tools by tool's name, each compiled at its first use. `None`: it
/// cannot be compiled.
#[derive(Default)]
pub struct Schemas(HashMap<String, Option<Validator>>);

impl Schemas {
    /// Reads the arguments that a model wrote as JSON text; no text is no arguments.
    ///
    /// # Errors
    /// An answer for the model that says what does not fit.
    pub fn check(&mut self, name: &str, schema: &Value, arguments: &str) -> Result<Value, Answer> {
        let text = match arguments.trim_ascii() {
            "" => "{}",
            text => text,
        };
        let arguments: Value = serde_json::from_str(text)
            .map_err(|error| Answer::error(format!("The arguments are not JSON: {error}.")))?;
        if is_nested_deeper(&arguments, SENT_NESTING_MOST) {
            return Err(Answer::error(format!(
                "The arguments are JSON of more than {SENT_NESTING_MOST} levels."
            )));
        }
        let compiled = || compile(schema).ok();
        let validator = self.0.entry(name.to_owned()).or_insert_with(compiled);
        let Some(validator) = validator else {
            return Err(Answer::error(
                "The tool cannot be called: the schema of its arguments is not valid.",
            ));
        };
        match faults(validator, &arguments) {
            None => Ok(arguments),
            Some(faults) => Err(Answer::error(format!(
                "The arguments do not fit the tool's schema: {faults}."
            ))),
        }
    }
}

/// What of a value does not fit, for the model that wrote it: the first faults, each with its place.
pub fn faults(validator: &Validator, value: &Value) -> Option<String> {
    let faults: Vec<String> = validator
        .iter_errors(value)
        .take(5)
        .map(|fault| {
            let shown: String = fault.to_string().chars().take(300).collect();
            format!("at {:?}: {shown}", fault.instance_path().to_string())
        })
        .collect();
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// What of a value does not fit, for whoever sent it: at most `most` faults, each with its place as the end of a JSON path.
/// `schema` is what the sentences call the schema.
pub fn faults_at(validator: &Validator, value: &Value, schema: &str, most: usize) -> Vec<Fault> {
    let mut faults = Vec::new();
    for error in validator.iter_errors(value).take(most) {
        let path = path_of_pointer(value, error.instance_path().as_str());
        match error.kind() {
            ValidationErrorKind::Required { property } => faults.push(Fault {
                path: format!("{path}.{}", property.as_str().unwrap_or_default()),
                expected: format!("a value, which {schema} requires"),
            }),
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let each = unexpected.iter().map(|name| Fault {
                    path: format!("{path}.{name}"),
                    expected: format!("nothing here: {schema} has no such field"),
                });
                faults.extend(each.take(most));
            }
            _ => {
                let said: String = error.to_string().chars().take(300).collect();
                let expected = format!("what fits {schema} ({said})");
                faults.push(Fault { path, expected });
            }
        }
    }
    faults.truncate(most);
    faults
}

/// A step of a path.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn path_text(path: &[Step<'_>]) -> String {
    path.iter()
        .map(|step| match step {
            Step::Key(key) => format!(".{key}"),
            Step::Index(index) => format!("[{index}]"),
        })
        .collect()
}

fn path_of_pointer(root: &Value, pointer: &str) -> String {
    let mut at = Some(root);
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        if at.is_some_and(Value::is_array) {
            text += &format!("[{key}]");
            at = at.and_then(|at| at.get(key.parse::<usize>().ok()?));
        } else {
            text += &format!(".{key}");
            at = at.and_then(|at| at.get(&key));
        }
    }
    text
}

/// Goes over a schema, following references, and stops at the first bound that is passed. The path
/// stays where it stopped.
struct Walk<'a> {
    root: &'a Value,
    path: Vec<Step<'a>>,
    values: usize,
    patterns: usize,
}

fn is_unevaluated(key: &str) -> bool {
    matches!(key, "unevaluatedItems" | "unevaluatedProperties")
}

impl<'a> Walk<'a> {
    fn value(&mut self, value: &'a Value) -> Result<(), String> {
        self.values += 1;
        if self.values > VALUES_MOST {
            return Err(format!(
                "at most {VALUES_MOST} values in the schema, its references followed"
            ));
        }
        if self.path.len() > DEPTH_MOST {
            return Err(format!(
                "at most {DEPTH_MOST} levels, references followed; a schema that refers to itself has no end"
            ));
        }
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.step(Step::Index(index), item)?;
                }
                Ok(())
            }
            Value::Object(fields) => self.object(fields),
            _ => Ok(()),
        }
    }

    fn step(&mut self, step: Step<'a>, value: &'a Value) -> Result<(), String> {
        self.path.push(step);
        self.value(value)?;
        self.path.pop();
        Ok(())
    }

    fn object(&mut self, fields: &'a Map<String, Value>) -> Result<(), String> {
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    self.path.push(Step::Key(key));
                    let target = self.target(reference)?;
                    self.value(target)?;
                    self.path.pop();
                    continue;
                }
                ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                    self.path.push(Step::Key(key));
                    return Err("no such keyword; use $ref".to_owned());
                }
                ("$id", Value::String(_)) if !self.path.is_empty() => {
                    self.path.push(Step::Key(key));
                    return Err("no $id inside the schema".to_owned());
                }
                ("pattern", Value::String(_)) => self.patterns += 1,
                ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
                _ => {}
            }
            if is_unevaluated(key) {
                let around = self
                    .path
                    .iter()
                    .filter(|step| matches!(step, Step::Key(key) if is_unevaluated(key)));
                if around.count() >= UNEVALUATED_MOST {
                    self.path.push(Step::Key(key));
                    return Err(format!(
                        "at most {UNEVALUATED_MOST} unevaluatedItems or unevaluatedProperties in one another"
                    ));
                }
            }
            if self.patterns > PATTERNS_MOST {
                return Err(format!("at most {PATTERNS_MOST} regular expressions"));
            }
            self.step(Step::Key(key), value)?;
        }
        Ok(())
    }

    fn target(&self, reference: &str) -> Result<&'a Value, String> {
        reference
            .strip_prefix('#')
            .filter(|pointer| pointer.starts_with('/') && !pointer.contains('%'))
            .and_then(|pointer| self.root.pointer(pointer))
            .ok_or_else(|| "a reference to a place in this schema, such as #/$defs/name".to_owned())
    }
}

#[cfg(test)]
mod stacks;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(schema: Value, path: &str, expected: &str) {
        let fault = compile(&schema).unwrap_err();
        assert_eq!(fault.path, path, "{fault:?}");
        assert!(fault.expected.contains(expected), "{fault:?}");
    }

    /// A property `a` with this schema.
    fn with(schema: Value) -> Value {
        json!({"type": "object", "properties": {"a": schema}})
    }

    #[test]
    fn arguments_that_a_run_could_not_keep_are_refused() {
        let check = |levels: usize| {
            let text = format!("{}{}", "{\"a\":".repeat(levels), "1");
            let text = text + &"}".repeat(levels);
            Schemas::default().check("t", &json!({"type": "object"}), &text)
        };
        assert!(check(SENT_NESTING_MOST).is_ok());
        let refused = check(SENT_NESTING_MOST + 1).unwrap_err();
        assert!(refused.output.contains("64 levels"), "{refused:?}");
    }

    #[test]
    fn a_schema_is_compiled() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"$ref": "#/definitions/name"}, "$ref": {"type": "string"}},
            "definitions": {"name": {"type": "string", "pattern": "^[A-Z]"}},
        });
        let validator = compile(&schema).unwrap();
        assert!(validator.is_valid(&json!({"city": "Oslo"})));
        assert!(!validator.is_valid(&json!({"city": "oslo"})));
        assert!(!validator.is_valid(&json!({})));
    }

    #[test]
    fn what_is_wrong_is_named() {
        refused(json!(true), "", "as an object");
        refused(json!({"type": "array"}), ".type", "\"object\"");
        refused(
            json!({"type": "object", "$schema": "x"}),
            ".$schema",
            "one of",
        );
        refused(
            with(json!({"type": "strin"})),
            ".properties.a.type",
            "valid JSON Schema",
        );
        refused(
            with(json!({"pattern": "("})),
            ".properties.a.pattern",
            "valid",
        );
        let long = json!({"type": "object", "description": "x".repeat(65_536)});
        refused(long, "", "65536 bytes");
        let mixed = json!({"type": "object", "required": ["a", 1]});
        refused(mixed, ".required[1]", "valid");
    }

    #[test]
    fn a_schema_stands_alone() {
        for reference in [
            "https://example.com/x.json",
            "file:///etc/hosts",
            "x.json",
            "#/$defs/none",
            "#/%24defs/a",
            "#anchor",
            "#",
        ] {
            let schema = with(json!({"$ref": reference}));
            refused(schema, ".properties.a.$ref", "#/$defs/name");
        }
        let dynamic = with(json!({"$dynamicRef": "#a"}));
        refused(dynamic, ".properties.a.$dynamicRef", "use $ref");
        refused(
            with(json!({"$id": "http://x/"})),
            ".properties.a.$id",
            "no $id",
        );
    }

    #[test]
    fn a_schema_has_an_end() {
        let mut own = with(json!({"$ref": "#/properties/a"}));
        assert!(compile(&own).unwrap_err().expected.contains("no end"));
        own = json!({"type": "object", "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        assert!(compile(&own).unwrap_err().expected.contains("no end"));
        let mut definitions = Map::new();
        for level in 0..14 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({"allOf": [next, next, next]}));
        }
        definitions.insert("d14".to_owned(), json!({"type": "object"}));
        let schema = json!({"type": "object", "$defs": definitions});
        let fault = compile(&schema).unwrap_err();
        assert!(fault.expected.contains("levels") || fault.expected.contains("values"));
        let wide: Map<String, Value> = (0..40)
            .map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/wide"})))
            .collect();
        let names: Vec<String> = (0..600).map(|n| n.to_string()).collect();
        let schema =
            json!({"type": "object", "properties": wide, "$defs": {"wide": {"enum": names}}});
        assert!(
            compile(&schema)
                .unwrap_err()
                .expected
                .contains("20000 values")
        );
        let many: Map<String, Value> = (0..101)
            .map(|n| (format!("p{n}"), json!({"pattern": "a"})))
            .collect();
        let schema = json!({"type": "object", "properties": many});
        assert!(
            compile(&schema)
                .unwrap_err()
                .expected
                .contains("100 regular")
        );
    }

    fn check(schema: Value, arguments: &str) -> Result<Value, String> {
        let checked = Schemas::default().check("search", &schema, arguments);
        checked.map_err(|answer| {
            assert!(answer.is_error);
            answer.output
        })
    }

    #[test]
    fn arguments_are_checked_against_the_schema() {
        let schema = json!({"type": "object", "required": ["q"], "additionalProperties": false,
            "properties": {"q": {"type": "string", "pattern": "^[a-z]+$"}}});
        assert_eq!(
            check(schema.clone(), r#"{"q": "a"}"#),
            Ok(json!({"q": "a"}))
        );
        for bad in [
            "{",
            "[]",
            "{}",
            r#"{"q": 1}"#,
            r#"{"q": "A"}"#,
            r#"{"q": "a", "x": 1}"#,
        ] {
            check(schema.clone(), bad).unwrap_err();
        }
        assert_eq!(check(json!({"type": "object"}), ""), Ok(json!({})));
        let refusal = check(schema, r#"{"q": 1}"#).unwrap_err();
        assert!(refusal.contains("/q"), "{refusal}");
    }

    #[test]
    fn a_schema_that_is_none_is_told_to_the_model() {
        let refusal = check(json!({"type": "no such type"}), "{}").unwrap_err();
        assert!(refusal.contains("not valid"), "{refusal}");
        let remote = check(json!({"$ref": "http://127.0.0.1:1/schema"}), "{}").unwrap_err();
        assert!(remote.contains("not valid"), "{remote}");
    }
}
