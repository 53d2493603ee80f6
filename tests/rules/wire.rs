//! What came over the wire is read with the characters that its protocol names: white space is the space and the tab, letters
//! differ in case in ASCII alone. Rust's functions for texts are Unicode's: with one of them, a cookie whose name begins with a
//! no-break space was the session's. And a header that decides something stands once.

use crate::hold;
use crate::source::{self, Source, is_word, line_of};

/// Functions whose answer is Unicode's.
const OF_UNICODE: [&str; 15] = [
    "trim()",
    "trim_start()",
    "trim_end()",
    "str::trim",
    "str::trim_start",
    "str::trim_end",
    "to_lowercase",
    "to_uppercase",
    "is_whitespace",
    "split_whitespace",
    "is_alphabetic",
    "is_alphanumeric",
    "is_lowercase",
    "is_uppercase",
    "is_numeric",
];

/// Files and folders that may use them, and why.
const ALLOWED: [(&str, &str); 17] = [
    ("src/api/arrivals.rs", "the name of a person, for people"),
    (
        "src/api/run_starts.rs",
        "whether a message says anything to people",
    ),
    ("src/authz/model.rs", "a file of this repository"),
    (
        "src/cli/",
        "terminals, files, and what programs of this host print",
    ),
    ("src/config/", "the operator's files and settings"),
    (
        "src/model/answer/",
        "what a model wrote, for people and programs",
    ),
    (
        "src/dev/",
        "files and programs of this host; the scripted model reads what people write",
    ),
    (
        "src/flows/definition/",
        "what an author wrote, in their own language",
    ),
    (
        "src/http/input.rs",
        "whether a text says anything to people",
    ),
    (
        "src/log/",
        "what leaves this program, and the operator's settings",
    ),
    (
        "src/model/failure/mod.rs",
        "the words of a provider, as people see them",
    ),
    ("src/guardrails/", "what people and models write"),
    ("src/oidc/claims.rs", "the name of a person, for people"),
    (
        "src/runtime/flow/children.rs",
        "whether a message says anything to people",
    ),
    ("src/store/db/functions.rs", "a file of this repository"),
    (
        "src/store/principals.rs",
        "emails of people are matched in every script; is_same_email tells look-alikes apart",
    ),
    ("src/text.rs", "an email has no blank of any script"),
];

fn stands_as_word(text: &str, at: usize, word: &str) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + word.len()..].chars().next();
    let ends_in_word = word.ends_with(is_word);
    !(before.is_some_and(is_word) || ends_in_word && after.is_some_and(is_word))
}

fn uses(file: &Source) -> Vec<(usize, &'static str)> {
    let found = OF_UNICODE.into_iter().flat_map(|word| {
        let places = file.bare.match_indices(word);
        let places = places.filter(move |(at, _)| stands_as_word(&file.bare, *at, word));
        places.map(move |(at, _)| (line_of(&file.bare, at), word))
    });
    found.collect()
}

fn is_read(file: &Source) -> bool {
    file.path.starts_with("src/") && file.path.ends_with(".rs")
}

fn is_in(path: &str, place: &str) -> bool {
    path == place || place.ends_with('/') && path.starts_with(place)
}

fn of_unicode(files: &[Source]) -> Vec<String> {
    let files = files
        .iter()
        .filter(|file| is_read(file) && !ALLOWED.iter().any(|(place, _)| is_in(&file.path, place)));
    let faults = files.flat_map(|file| {
        let uses = uses(file).into_iter();
        uses.map(|(line, word)| format!("{}:{line}: {word}", file.path))
    });
    faults.collect()
}

/// Allowances that nothing needs any more.
fn needless(files: &[Source]) -> Vec<String> {
    let is_needed = |place: &str| {
        let mut inside = files
            .iter()
            .filter(|file| is_read(file) && is_in(&file.path, place));
        inside.any(|file| !uses(file).is_empty())
    };
    let needless = ALLOWED.iter().filter(|(place, _)| !is_needed(place));
    needless.map(|(place, _)| (*place).to_owned()).collect()
}

/// Headers of requests of which two decide nothing wrong, and why.
const MAY_STAND_TWICE: [(&str, &str); 4] = [
    (
        "accept-encoding",
        "the first counts, and whatever it names is a right answer",
    ),
    (
        "content-length",
        "hyper refuses two that differ; here it is a hint of the size",
    ),
    (
        "if-none-match",
        "the first counts; a tag that is not looked at costs a whole answer",
    ),
    ("user-agent", "shown to people, the first"),
];

/// Headers that are read once, and of which the door takes two.
fn read_once(files: &[Source]) -> Vec<String> {
    let Some(door) = files
        .iter()
        .find(|file| file.path == "src/http/door/head.rs")
    else {
        return vec![
            "src/http/door/head.rs is gone: say in tests/rules/wire.rs where it is".to_owned(),
        ];
    };
    let door = door.code.to_ascii_lowercase().replace('_', "-");
    let mut faults = Vec::new();
    let places = ["src/http/", "src/api/", "src/authn/"];
    for file in files
        .iter()
        .filter(|file| places.iter().any(|place| file.path.starts_with(place)))
    {
        let code = &file.code;
        for mark in ["cx.header(", "context.header("] {
            for (at, _) in code.match_indices(mark) {
                let argument = code[at + mark.len()..]
                    .split(')')
                    .next()
                    .unwrap_or_default();
                let name = match argument.strip_prefix('"') {
                    Some(name) => name.trim_end_matches('"').to_owned(),
                    None => value_of(code, argument),
                };
                // The function that hands a name on.
                if argument == "name" && file.path == "src/http/context.rs" {
                    continue;
                }
                let is_single = !name.is_empty() && door.contains(&name);
                if !is_single && !MAY_STAND_TWICE.iter().any(|(known, _)| *known == name) {
                    faults.push(format!("{}:{}: {argument}", file.path, line_of(code, at)));
                }
            }
        }
    }
    faults
}

/// The text of a constant of this file; nothing if it has none.
fn value_of(code: &str, constant: &str) -> String {
    let begin = format!("const {constant}: &str = \"");
    let value = code
        .split_once(&begin)
        .and_then(|(_, rest)| rest.split_once('"'));
    value.map(|(value, _)| value.to_owned()).unwrap_or_default()
}

#[test]
fn what_came_over_the_wire_is_read_as_its_protocol_says() {
    let text = "a.trim(); b.map(str::trim); // c.trim()\nd.trim_ascii(); \"trim()\"; e.to_lowercase();\nf.to_ascii_lowercase(); my_trim(); str::trim_matches(g);";
    let files: Vec<Source> = [
        ("src/http/a.rs", text),
        ("src/cli/a.rs", text),
        ("tests/it/a.rs", text),
    ]
    .iter()
    .map(|(path, text)| Source::new(path, text))
    .collect();
    assert_eq!(
        of_unicode(&files),
        [
            "src/http/a.rs:1: trim()",
            "src/http/a.rs:1: str::trim",
            "src/http/a.rs:2: to_lowercase"
        ]
    );
    let repository = source::repository();
    hold(
        &of_unicode(&repository),
        "These functions know every script, and protocols know ASCII: use text::trim_ows, trim_ascii (JSON), to_ascii_lowercase. \
         If it is no text of a protocol, give the file and the reason in tests/rules/wire.rs.",
    );
    hold(
        &needless(&repository),
        "Take these places out of ALLOWED in tests/rules/wire.rs.",
    );
}

#[test]
fn a_header_that_decides_something_stands_once() {
    let door = "const SINGLE: [H; 1] = [H::from_static(\"x-one\"), ORIGIN];";
    let text = "const TWO: &str = \"x-two\";\ncx.header(\"x-one\"); cx.header(TWO);\ncontext.header(\"origin\"); cx.header(\"user-agent\"); context.header(NONE)";
    let files: Vec<Source> = [("src/http/door/head.rs", door), ("src/api/a.rs", text)]
        .iter()
        .map(|(path, text)| Source::new(path, text))
        .collect();
    assert_eq!(
        read_once(&files),
        ["src/api/a.rs:2: TWO", "src/api/a.rs:3: NONE"]
    );
    hold(
        &read_once(&source::repository()),
        "Of these headers the first counts, and the door takes two. Add them to SINGLE of src/http/door/head.rs, or say in \
         tests/rules/wire.rs why two do no harm.",
    );
}
