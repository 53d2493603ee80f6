//! JSON Schemas that tenants write, compiled and applied without harm.
//!
//! The validator recurses along `$ref`, so a long chain of them under nested arguments would
//! overflow a stack, which ends the process. A schema therefore has a bounded size, its size times
//! the arguments' depth is bounded, and one with references is applied on a stack that holds the
//! bound. Patterns are matched in linear time, and no reference leaves the schema.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Objects and arrays of a schema, at most.
const NODES: usize = 1000;
/// A schema's nodes times the depth of what it is applied to, at most.
const WORK: usize = 50_000;
/// Holds [`WORK`] in an unoptimised build. What is not touched costs no memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Faults that are told, and the length of each in characters.
const FAULTS: usize = 5;
const FAULT_CHARS: usize = 300;

/// A compiled schema.
pub(super) struct Schema {
    validator: Validator,
    nodes: usize,
    has_references: bool,
}

/// What is wrong with a tool's schema, as a sentence for whoever wrote it.
///
/// # Errors
/// The sentence.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    Schema::compile(schema).map(drop)
}

impl Schema {
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let (nodes, has_references) = measure(schema);
        if nodes > NODES {
            return Err(format!(
                "The schema has more than {NODES} objects and arrays."
            ));
        }
        let build = || {
            jsonschema::options()
                .with_pattern_options(PatternOptions::regex())
                .build(schema)
                .map_err(|error| {
                    format!(
                        "The schema is not valid: {}.",
                        shortened(&error.to_string())
                    )
                })
        };
        let validator = if has_references {
            on_a_large_stack(build)??
        } else {
            build()?
        };
        Ok(Self {
            validator,
            nodes,
            has_references,
        })
    }

    /// What does not fit; nothing when all does.
    pub(super) fn faults(&self, value: &Value) -> Result<Vec<String>, String> {
        if !self.has_references {
            return Ok(self.find(value));
        }
        if self.nodes * depth(value) > WORK {
            return Err("The arguments are nested too deep for the tool's schema.".to_owned());
        }
        on_a_large_stack(|| self.find(value))
    }

    fn find(&self, value: &Value) -> Vec<String> {
        let shown = |fault: jsonschema::ValidationError<'_>| {
            format!(
                "at {:?}: {}",
                fault.instance_path().to_string(),
                shortened(&fault.to_string())
            )
        };
        self.validator
            .iter_errors(value)
            .take(FAULTS)
            .map(shown)
            .collect()
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(FAULT_CHARS).collect()
}

/// Objects and arrays, and whether there is a reference. The JSON parser bounds the depth.
fn measure(schema: &Value) -> (usize, bool) {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .fold((1, false), |(nodes, has), (name, field)| {
                let (more, has_inside) = measure(field);
                let is_reference =
                    matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
                (nodes + more, has || has_inside || is_reference)
            }),
        Value::Array(items) => items
            .iter()
            .map(measure)
            .fold((1, false), |(nodes, has), (more, inside)| {
                (nodes + more, has || inside)
            }),
        _ => (0, false),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

fn on_a_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("run-schema".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work);
        thread.ok().and_then(|thread| thread.join().ok())
    });
    done.ok_or_else(|| "The server has no thread left to apply the tool's schema.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nest(levels: usize, before: &str, inner: &str, after: &str) -> Value {
        let text = before.repeat(levels) + inner + &after.repeat(levels);
        serde_json::from_str(&text).unwrap()
    }

    /// A chain of `links` references that ends in the chain's own beginning, one property deeper.
    fn chain(links: usize) -> Value {
        let links_text: String = (0..links)
            .map(|link| {
                format!(
                    r##""d{link}":{{"allOf":[{{"$ref":"#/$defs/d{}"}}]}},"##,
                    link + 1
                )
            })
            .collect();
        let end = r##"{"properties":{"a":{"$ref":"#/$defs/d0"}}}"##;
        let text = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{links_text}"d{links}":{end}}}}}"##);
        serde_json::from_str(&text).unwrap()
    }

    /// On a run thread's stack: one that overflows ends the process, and this test with it.
    fn on_a_run_thread(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new()
            .name("run-0".to_owned())
            .stack_size(crate::runtime::STACK_BYTES)
            .spawn(work)
            .unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn the_deepest_schemas_and_values_are_survived() {
        on_a_run_thread(|| {
            let itself = json!({"additionalProperties": false, "properties": {"a": {"$ref": "#"}}});
            let any = json!({"anyOf": [{"type": "string"}, {"properties": {"a": {"$ref": "#"}}}]});
            let schemas = [
                nest(62, r#"{"properties":{"a":"#, r#"{"type":"string"}"#, "}}"),
                nest(62, r#"{"allOf":["#, r#"{"type":"string"}"#, "]}"),
                itself,
                any,
                json!({"$ref": "#"}),
                json!({"allOf": [{"$ref": "#"}]}),
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}),
                chain(300),
            ];
            for levels in [1, 50, 126] {
                let value = nest(levels, r#"{"a":"#, r#"{"b":1}"#, "}");
                for schema in &schemas {
                    let _ = Schema::compile(schema).unwrap().faults(&value);
                }
            }
        });
    }

    #[test]
    fn a_chain_at_the_bound_is_applied_and_beyond_it_refused() {
        on_a_run_thread(|| {
            let value = |levels| nest(levels, r#"{"a":"#, "1", "}");
            let long = Schema::compile(&chain(300)).unwrap();
            assert_eq!(long.faults(&value(40)), Ok(Vec::new()));
            long.faults(&value(100)).unwrap_err();
            check_schema(&chain(500)).unwrap_err();
        });
    }

    #[test]
    fn no_reference_leaves_the_schema() {
        for remote in ["http://127.0.0.1:1/schema", "file:///etc/passwd"] {
            check_schema(&json!({"$ref": remote})).unwrap_err();
        }
    }
}
