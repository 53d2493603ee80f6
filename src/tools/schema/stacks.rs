//! Schemas, arguments and patterns at their bounds, on the stack of a run thread, which is the smallest that reads them. A stack
//! that overflows ends the process.

use super::*;
use serde_json::json;

/// A property `a` with this schema.
fn with(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

fn on_a_run_threads_stack(check: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .name("run-0".to_owned())
        .stack_size(STACK_BYTES);
    thread.spawn(check).unwrap().join().unwrap();
}

/// The schema in as many others as are taken, each made by `wrap`.
fn deepest(innermost: &Value, wrap: &dyn Fn(Value) -> Value) -> Value {
    let mut schema = innermost.clone();
    loop {
        let next = wrap(schema.clone());
        if compile(&with(next.clone())).is_err() {
            return with(schema);
        }
        schema = next;
    }
}

/// Schemas as deep as they may be, by each keyword that has schemas in it, with values as deep as a reader of JSON takes.
#[test]
fn the_deepest_schemas_fit_a_run_threads_stack() {
    let value = |levels: usize, wrap: &dyn Fn(Value) -> Value| {
        (0..levels).fold(json!(1), |inner, _| wrap(inner))
    };
    let arrays = value(126, &|inner| json!([inner]));
    let objects = value(126, &|inner| json!({"a": inner}));
    let leaf = json!({"type": "string", "uniqueItems": true});
    type Wrap = fn(Value) -> Value;
    let wraps: [(&str, Wrap); 13] = [
        ("items", |inner| json!({"items": inner})),
        ("prefixItems", |inner| json!({"prefixItems": [inner]})),
        ("contains", |inner| json!({"contains": inner})),
        (
            "unevaluatedItems",
            |inner| json!({"unevaluatedItems": inner}),
        ),
        ("properties", |inner| json!({"properties": {"a": inner}})),
        (
            "additionalProperties",
            |inner| json!({"additionalProperties": inner}),
        ),
        (
            "unevaluatedProperties",
            |inner| json!({"unevaluatedProperties": inner}),
        ),
        (
            "patternProperties",
            |inner| json!({"patternProperties": {"a": inner}}),
        ),
        ("anyOf", |inner| json!({"anyOf": [inner, {"type": "null"}]})),
        ("oneOf", |inner| json!({"oneOf": [inner, {"type": "null"}]})),
        ("allOf", |inner| json!({"allOf": [inner, true]})),
        ("not", |inner| json!({"not": inner})),
        (
            "if",
            |inner| json!({"if": inner.clone(), "then": false, "else": true}),
        ),
    ];
    for (keyword, wrap) in wraps {
        let schema = deepest(&leaf, &wrap);
        assert!(compile(&schema).is_ok(), "{keyword}");
        let values = [json!({"a": arrays}), json!({"a": objects})];
        on_a_run_threads_stack(move || {
            let validator = compile(&schema).unwrap();
            for value in values {
                let told = faults(&validator, &value).unwrap_or_default();
                let listed = faults_at(&validator, &value, "the schema", 5);
                assert_eq!(told.is_empty(), listed.is_empty(), "{told}");
            }
        });
    }
}

/// References in a row, each to the next one, as many as are taken.
#[test]
fn the_longest_chain_of_references_fits_a_run_threads_stack() {
    let chain = |count: usize| {
        let definitions: Map<String, Value> = (0..count)
            .map(|at| match at + 1 == count {
                true => (format!("d{at}"), json!({"type": "string"})),
                false => {
                    let next = json!({"items": {"$ref": format!("#/$defs/d{}", at + 1)}});
                    (format!("d{at}"), next)
                }
            })
            .collect();
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
    };
    let most = (1..)
        .take_while(|count| compile(&chain(*count)).is_ok())
        .last();
    let schema = chain(most.unwrap());
    assert!(
        compile(&chain(most.unwrap() + 1))
            .unwrap_err()
            .expected
            .contains("levels")
    );
    on_a_run_threads_stack(move || {
        let validator = compile(&schema).unwrap();
        assert!(validator.is_valid(&json!({"a": []})));
    });
    // Far beyond it.
    let endless = chain(2_000);
    on_a_run_threads_stack(move || assert!(compile(&endless).is_err()));
}

/// A regular expression as deep as the crate takes, and one that is far deeper; the same as a value, where a format asks for
/// a regular expression.
#[test]
fn the_deepest_patterns_fit_a_run_threads_stack() {
    let nested = |levels: usize| format!("{}a{}", "(".repeat(levels), ")".repeat(levels));
    let taken = |levels: &usize| compile(&with(json!({"pattern": nested(*levels)}))).is_ok();
    let most = (1..1_000).take_while(taken).last().unwrap();
    for levels in [most, most + 1, 20_000] {
        let (pattern, most) = (nested(levels), most);
        on_a_run_threads_stack(move || {
            let draft = "http://json-schema.org/draft-07/schema#";
            let format = json!({"$schema": draft, "type": "object",
                "properties": {"a": {"format": "regex"}}});
            let _ = compile(&format).unwrap().is_valid(&json!({"a": pattern}));
            let compiled = compile(&with(json!({"pattern": pattern})));
            assert_eq!(compiled.is_ok(), levels <= most);
        });
    }
}

/// A run thread's stack has a bound, and a stack that overflows ends the process.
#[test]
fn the_deepest_arguments_fit_a_run_threads_stack() {
    let arguments = r#"{"a":"#.repeat(SENT_NESTING_MOST) + "1" + &"}".repeat(SENT_NESTING_MOST);
    let check = move || {
        let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let refusal = Schemas::default().check("search", &schema, &arguments);
        let refusal = refusal.unwrap_err().output;
        assert!(refusal.contains("/a"), "{refusal}");
    };
    on_a_run_threads_stack(check);
}

/// Each of these asks what all below it have evaluated, so the work for one value would double at each level.
#[test]
fn keywords_that_double_the_work_nest_8_deep_at_most() {
    for keyword in ["unevaluatedItems", "unevaluatedProperties"] {
        let nested = |levels: usize| {
            let innermost = json!({"type": "string"});
            with((0..levels).fold(innermost, |inner, _| json!({keyword: inner})))
        };
        assert!(compile(&nested(UNEVALUATED_MOST)).is_ok());
        let fault = compile(&nested(UNEVALUATED_MOST + 1)).unwrap_err();
        assert!(fault.expected.contains("at most 8"), "{fault:?}");
    }
}
