//! The layers of the service, as an order: a module uses those of later layers, and none of its own
//! layer or of an earlier one. ARCHITECTURE.md, "Code map", has the same order.
//!
//! `lib.rs` and `main.rs` stand above all. Unit tests are not read: they may use what they need.

use crate::source::{self, Source, is_word, line_of};
use crate::{found, hold};

/// From the top to the leaves.
const LAYERS: [&[&str]; 25] = [
    &["cli"],
    &["server"],
    // What development alone uses: no other layer knows of it.
    &["dev"],
    // The names of the metrics, which the server hands to the probes.
    &["metrics"],
    &["api"],
    &["http"],
    &["runtime"],
    // Definitions are checked by the API, the command line and the runtime.
    &["flows"],
    &["guardrails"],
    &["tools"],
    &["model", "webhooks"],
    // Checks are recorded, and a public token is read by who it names.
    &["authz"],
    &["audit", "authn", "secrets"],
    &["store"],
    // The protocol of identity providers, which knows no tenant.
    &["oidc"],
    // What others record, and the thread that sends it.
    &["traces"],
    &["outbound"],
    &["log"],
    &["proof"],
    &["concurrency_limit"],
    &["error"],
    &["config"],
    &["ids"],
    &["secret"],
    &["failure", "json", "text", "threads", "uri"],
];

/// Above every layer.
const ABOVE: [&str; 2] = ["lib", "main"];

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The modules of this crate that a file names: `crate::store::…`, `use crate::{ids, log::…}`.
fn used_modules(file: &Source) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    for (at, _) in file.bare.match_indices("crate::") {
        if file.bare[..at].ends_with(is_word) {
            continue;
        }
        let line = line_of(&file.bare, at);
        let rest = &file.bare[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => used.push((line, first_word(rest))),
            Some(group) => used.extend(heads(group).into_iter().map(|head| (line, head))),
        }
    }
    used
}

/// The first names in a braced group, up to its closing brace.
fn heads(group: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    let mut item_begins = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => item_begins = true,
            _ if item_begins && is_word(c) => {
                found.push(first_word(&group[at..]));
                item_begins = false;
            }
            _ => {}
        }
    }
    found
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| is_word(*c)).collect()
}

/// Uses that point upwards or sideways, and modules that stand in no layer.
fn wrong_uses(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let Some(module) = file.module().filter(|module| !ABOVE.contains(module)) else {
            continue;
        };
        let Some(own) = layer_of(module) else {
            faults.push(format!("{}: {module} stands in no layer", file.path));
            continue;
        };
        for (line, used) in used_modules(file) {
            if used != module && layer_of(&used).is_some_and(|layer| layer <= own) {
                faults.push(format!("{}:{line}: {module} uses {used}", file.path));
            }
        }
    }
    faults
}

/// Layers whose module is gone.
fn empty_layers(files: &[Source]) -> Vec<String> {
    let modules: Vec<&str> = files.iter().filter_map(Source::module).collect();
    let named = LAYERS.iter().flat_map(|layer| layer.iter());
    let gone = named.filter(|name| !modules.contains(name));
    gone.map(|name| (*name).to_owned()).collect()
}

#[test]
fn modules_use_later_layers_alone() {
    let files = [
        ("src/api/runs.rs", "use crate::{store::runs, error};"),
        (
            "src/store/runs.rs",
            "use crate::error;\nfn f() { crate::runtime::go() }",
        ),
        ("src/runtime/mod.rs", "use crate::store; // crate::http"),
        ("src/error.rs", "use crate::{ids, store::{http, api}};"),
        ("src/ids.rs", ""),
        ("src/model.rs", "use crate::outbound; use crate::webhooks;"),
        ("src/outbound.rs", "use crate::ids; use crate::outbound::x;"),
        ("src/server.rs", "use crate::{api, http, store};"),
        ("src/http/mod.rs", "use crate::server;\nuse crate::dev;"),
        ("src/novelty.rs", ""),
        ("src/lib.rs", "use crate::cli;"),
    ];
    assert_eq!(
        found(wrong_uses, &files),
        [
            "src/store/runs.rs:2: store uses runtime",
            "src/error.rs:1: error uses store",
            "src/model.rs:1: model uses webhooks",
            "src/http/mod.rs:1: http uses server",
            "src/http/mod.rs:2: http uses dev",
            "src/novelty.rs: novelty stands in no layer",
        ]
    );
    hold(
        &wrong_uses(&source::repository()),
        "These uses point upwards or sideways (tests/rules/layers.rs has the order). Pass in what the \
         lower module needs, or move the piece down to where both may use it. A new module gets its \
         place in the order.",
    );
    hold(
        &empty_layers(&source::repository()),
        "These modules are gone: take them out of the order (tests/rules/layers.rs).",
    );
}
