//! The table of the specification's statements, `statements.txt`: each statement of the specification is in it once,
//! and each test that it names exists. `tests/show/contract` runs those tests.
//!
//! Not here: whether a test proves what its statement says. Whoever names one reads it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Statements of the whole specification.
const ALL: usize = 303;

/// What the service does not have yet.
const FEATURES: [&str; 9] = [
    "environments",
    "images",
    "improvement passes",
    "judging",
    "packs",
    "policies",
    "secrets of tools",
    "sign-in",
    "tool servers",
];

/// A section of the specification, with the statements that its head says that it has.
struct Section<'t> {
    number: &'t str,
    statements: usize,
    rows: Vec<Row<'t>>,
}

struct Row<'t> {
    id: &'t str,
    text: &'t str,
    proofs: Vec<Proof<'t>>,
}

#[derive(Debug, PartialEq)]
enum Proof<'t> {
    /// A test: target and path.
    Test(&'t str),
    ToCome(Vec<&'t str>),
    Unproved,
}

/// Reads the table.
///
/// # Errors
/// The line that has no form.
fn parse(table: &str) -> Result<Vec<Section<'_>>, String> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in table.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("this line is neither a head nor a statement: {line}");
        if let Some(head) = line.strip_prefix('[') {
            let (head, _title) = head.split_once("] ").ok_or_else(wrong)?;
            let (number, statements) = head.split_once(" | ").ok_or_else(wrong)?;
            sections.push(Section {
                number,
                statements: statements.parse().map_err(|_| wrong())?,
                rows: Vec::new(),
            });
            continue;
        }
        let parts: Vec<&str> = line.split(" | ").collect();
        let ([id, text, proofs], Some(section)) = (&parts[..], sections.last_mut()) else {
            return Err(wrong());
        };
        section.rows.push(Row {
            id,
            text,
            proofs: proofs.split("; ").map(proof).collect(),
        });
    }
    Ok(sections)
}

fn proof(text: &str) -> Proof<'_> {
    match (text, text.strip_prefix("to come: ")) {
        ("unproved", _) => Proof::Unproved,
        (_, Some(features)) => Proof::ToCome(features.split(", ").collect()),
        _ => Proof::Test(text),
    }
}

/// What is wrong with the statements: their number, ids, texts, and proofs.
fn faults(sections: &[Section<'_>], tests: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut numbers = BTreeSet::new();
    for section in sections {
        let number = section.number;
        if !numbers.insert(number) {
            faults.push(format!("section {number} stands twice"));
        }
        if section.rows.len() != section.statements {
            faults.push(format!(
                "section {number} has {} statements, and its head says {}",
                section.rows.len(),
                section.statements
            ));
        }
        let mut ids = BTreeSet::new();
        for row in &section.rows {
            if !ids.insert(row.id) {
                faults.push(format!("{number} {}: the id stands twice", row.id));
            }
            faults.extend(
                row_faults(row, tests)
                    .into_iter()
                    .map(|fault| format!("{number} {}: {fault}", row.id)),
            );
        }
    }
    faults
}

fn row_faults(row: &Row<'_>, tests: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    if row.text.is_empty() || row.text.len() > 100 {
        faults.push("say the statement in a few words".to_owned());
    }
    for proof in &row.proofs {
        match proof {
            Proof::Test(test) if !tests.contains(*test) => {
                faults.push(format!("there is no test {test:?}"));
            }
            Proof::ToCome(features) => faults.extend(
                features
                    .iter()
                    .filter(|feature| !FEATURES.contains(feature))
                    .map(|feature| format!("{feature:?} is none of the features to come")),
            ),
            Proof::Unproved if row.proofs.len() > 1 => {
                faults.push("it is proved or not".to_owned());
            }
            _ => {}
        }
    }
    faults
}

/// Every test of the repository that a target has: `it tokens::a_token_ends_by_itself`.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    gather(&root.join("src"), "lib", "", &mut found);
    for entry in fs::read_dir(root.join("tests")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().join("main.rs").is_file() {
            let target = entry.file_name().into_string().unwrap();
            gather(&entry.path(), &target, "", &mut found);
        }
    }
    gather_of_browsers(&root.join("tests/console"), &mut found);
    found
}

/// The tests in browsers: of each the words before the first colon of its name, which say what it is about.
fn gather_of_browsers(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(file) = name.strip_suffix(".test.mjs") else {
            continue;
        };
        for line in fs::read_to_string(&path).unwrap().lines() {
            let named = line
                .strip_prefix("test(\"")
                .or_else(|| line.strip_prefix("story(\""));
            if let Some((about, _)) = named.and_then(|named| named.split_once(": ")) {
                found.insert(format!("console {file}::{about}"));
            }
        }
    }
}

/// The tests of a module's directory and of what lies below it.
fn gather(directory: &Path, target: &str, module: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let inner = format!("{module}{name}::");
        if path.is_dir() {
            gather(&path, target, &inner, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let module = match name {
                "main" | "lib" | "mod" => module,
                _ => &inner,
            };
            let text = fs::read_to_string(&path).unwrap();
            let paths = test_paths(&text);
            found.extend(paths.iter().map(|path| format!("{target} {module}{path}")));
        }
    }
}

/// The tests in a file, with the modules of the file around them. It is formatted, so a module ends where a brace stands
/// as deep as its first word.
fn test_paths(text: &str) -> Vec<String> {
    let (mut modules, mut found, mut is_test) = (Vec::<(usize, &str)>::new(), Vec::new(), false);
    for line in text.lines() {
        let words = line.trim_start();
        let depth = line.len() - words.len();
        if words == "}" && modules.last().is_some_and(|(outer, _)| *outer == depth) {
            modules.pop();
        } else if let Some(name) = words
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(" {"))
        {
            modules.push((depth, name));
        } else if words == "#[test]" {
            is_test = true;
        } else if is_test && let Some(rest) = words.strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap_or_default();
            let outer: String = modules
                .iter()
                .map(|(_, name)| format!("{name}::"))
                .collect();
            found.push(format!("{outer}{name}"));
            is_test = false;
        }
    }
    found
}

#[test]
fn every_statement_is_in_the_table_and_every_named_test_exists() {
    let sections = parse(include_str!("statements.txt")).unwrap();
    let faults = faults(&sections, &tests());
    assert!(
        faults.is_empty(),
        "\n\nMend tests/it/specification/statements.txt. A test that was renamed is named anew; one that is gone is \
         replaced by one that proves the same.\n\n  {}\n",
        faults.join("\n  ")
    );
    let all: usize = sections.iter().map(|section| section.rows.len()).sum();
    assert_eq!(all, ALL, "a statement of the specification is missing");
}

#[test]
fn the_form_of_the_table_is_checked() {
    let tests = BTreeSet::from(["it a::b".to_owned()]);
    let of = |table| faults(&parse(table).unwrap(), &tests);
    let right = "# Text.\n\n[1 | 3] One\na | words | it a::b; to come: judging\nb|c | words | unproved\nc | w | it a::b\n";
    assert_eq!(of(right), [""; 0]);
    let wrong = "[1 | 1] One\na | w | it a::c\na |  | unproved; it a::b\n[1 | 0] One\nb | w | to come: wings\n";
    assert_eq!(
        of(wrong),
        [
            "section 1 has 2 statements, and its head says 1",
            "1 a: there is no test \"it a::c\"",
            "1 a: the id stands twice",
            "1 a: say the statement in a few words",
            "1 a: it is proved or not",
            "section 1 stands twice",
            "section 1 has 1 statements, and its head says 0",
            "1 b: \"wings\" is none of the features to come",
        ]
    );
    for line in [
        "a | words | unproved",
        "[1] One",
        "[1 | x] One",
        "[1 | 1]\na | words",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn tests_are_found_in_the_modules_of_their_file() {
    let text = "#[test]\nfn one() {\n}\n\nmod tests {\n    mod inner {\n        #[test]\n        #[cfg(unix)]\n        \
         fn two() {\n        }\n    }\n    fn helper() {\n    }\n    #[test]\n    fn three(x: u8) {\n    }\n}\n";
    assert_eq!(
        test_paths(text),
        ["one", "tests::inner::two", "tests::three"]
    );
    assert!(tests().contains("lib log::tests::a_level_has_its_severity"));
    assert!(tests().contains("console webhooks::6.4.1"));
}
