//! Values beside those of the library `jaq`, a second reader of the language. Where it differs from `jq`, we follow `jq`.
//!
//! Not here: random programs. Most have several values somewhere, which `jaq` puts out in another order.

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, unwrap_valr};
use jaq_json::Val;
use serde_json::Value;
use std::collections::HashSet;

use crate::corpus::{differences, examples, lines, report};

fn jaq(program: &str, input: &Value) -> Option<Vec<Value>> {
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let functions = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let file = File {
        code: program,
        path: (),
    };
    let modules = Loader::new(definitions).load(&arena, file).ok()?;
    let compiler = Compiler::default().with_funs(functions);
    let filter = compiler.compile(modules).ok()?;
    let context = Ctx::<JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let input = jaq_json::read::parse_single(input.to_string().as_bytes()).unwrap();
    let outputs = filter.id.run((context, input)).map(unwrap_valr);
    let values = outputs.map(|output| {
        let text = output.unwrap().to_string();
        // What is no JSON, such as an infinite number, stands as its text.
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    });
    Some(values.collect())
}

/// It has no end there; here it has no values, as in `jq`.
const ENDLESS: &str = "[range(0; 3; 0)]";

#[test]
fn examples_have_the_values_of_jaq_but_for_those_that_are_listed_with_a_reason() {
    let mut programs = examples();
    programs.retain(|program| program != ENDLESS);
    let listed: HashSet<&str> = lines(include_str!("jaq.txt")).collect();
    let (known, found): (Vec<_>, Vec<_>) = differences(jaq, &programs, false)
        .into_iter()
        .partition(|difference| listed.contains(difference.program.as_str()));
    assert!(found.is_empty(), "{}:\n{}", found.len(), report(&found));
    let known = known.iter().map(|difference| difference.program.as_str());
    let known: HashSet<&str> = known.collect();
    let gone: Vec<&&str> = listed.difference(&known).collect();
    assert!(gone.is_empty(), "no difference any more: {gone:?}");
}
