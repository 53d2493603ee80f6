//! Invariants are cited by their names, and each cited name is defined in ARCHITECTURE.md.
//!
//! A citation is a name in backticks that stands in parentheses, alone or with others, or behind the word "invariant".
//! A text of the program that looks the same (an error code, a state) stands in quotes somewhere.

use std::collections::BTreeSet;

use crate::hold;
use crate::source::{self, Source, line_of};

const PAGE: &str = "ARCHITECTURE.md";

/// The names at the beginnings of the paragraphs of the section.
fn defined(files: &[Source]) -> BTreeSet<&str> {
    let page = files.iter().find(|file| file.path == PAGE);
    let text = page.map_or("", |page| page.text.as_str());
    let section = text.split("\n## Invariants\n").nth(1).unwrap_or("");
    let section = section.split("\n## ").next().unwrap_or("");
    section
        .lines()
        .filter_map(|line| line.strip_prefix("**`")?.split_once('`'))
        .map(|(name, _)| name)
        .collect()
}

fn is_name(text: &str) -> bool {
    text.contains('-') && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// The names that a file cites, with their lines.
fn cited(file: &Source) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in file.text.match_indices("(`") {
        let Some((inside, _)) = file.text[at + 1..].split_once(')') else {
            continue;
        };
        let names: Vec<Option<&str>> = inside
            .split(',')
            .map(|part| part.trim().strip_prefix('`')?.strip_suffix('`'))
            .collect();
        if names.iter().all(|name| name.is_some_and(is_name)) {
            let line = line_of(&file.text, at);
            found.extend(names.into_iter().flatten().map(|name| (line, name)));
        }
    }
    for (at, mark) in file.text.match_indices("nvariant `") {
        let name = file.text[at + mark.len()..].split('`').next();
        found.extend(name.map(|name| (line_of(&file.text, at), name)));
    }
    found
}

fn unknown(files: &[Source]) -> Vec<String> {
    let defined = defined(files);
    let is_program_text = |name: &str| {
        files
            .iter()
            .any(|file| file.code.contains(&format!("\"{name}\"")))
    };
    let mut faults = Vec::new();
    for file in files
        .iter()
        .filter(|file| !file.path.starts_with("tests/rules/"))
    {
        for (line, name) in cited(file) {
            if !defined.contains(name) && !is_program_text(name) {
                faults.push(format!("{}:{line}: {name}", file.path));
            }
        }
    }
    faults
}

fn cited_by_number(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files
        .iter()
        .filter(|file| !file.path.starts_with("tests/rules/"))
    {
        for (index, line) in file.text.lines().enumerate() {
            let mut after = line
                .match_indices("nvariant")
                .map(|(at, word)| &line[at + word.len()..]);
            let numbered = |rest: &str| {
                let rest = rest.trim_start_matches('s').trim_start();
                rest.starts_with(|c: char| c.is_ascii_digit())
            };
            if after.any(numbered) {
                faults.push(format!("{}:{}", file.path, index + 1));
            }
        }
    }
    faults
}

#[test]
fn invariants_are_cited_by_names_that_are_defined() {
    let page = "## A\n**`no-such`.**\n\n## Invariants\n\n**`one-way`.** Text `any-thing`.\n\n## B\n**`two-way`.**";
    let text = "//! (`one-way`) (`two-way`, `one-way`)\n// Invariant `gone-by`, invariants 2 and 3\n\
        // (`a text`), (`Store`), (`not-found`)\nlet a = \"not-found\";";
    let files: Vec<Source> = [("ARCHITECTURE.md", page), ("src/a.rs", text)]
        .iter()
        .map(|(path, text)| Source::new(path, text))
        .collect();
    assert_eq!(
        unknown(&files),
        ["src/a.rs:1: two-way", "src/a.rs:2: gone-by"]
    );
    assert_eq!(cited_by_number(&files), ["src/a.rs:2"]);
    let repository = source::repository();
    assert!(defined(&repository).len() > 10, "{PAGE} defines invariants");
    hold(
        &unknown(&repository),
        "ARCHITECTURE.md defines no invariant of this name. Cite one that it defines, or define it there.",
    );
    hold(
        &cited_by_number(&repository),
        "Cite an invariant by its name: numbers change.",
    );
}
