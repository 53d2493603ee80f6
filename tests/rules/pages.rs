//! Rules about the pages for people: every link leads somewhere, and every page is found.

use crate::source::Source;
use std::path::Path;

/// The page from which all others are found.
const INDEX: &str = "docs/README.md";

/// Where the links of a page to other files of the repository lead: line and path.
fn links(page: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in page.text.match_indices("](") {
        let Some((target, _)) = page.text[at + 2..].split_once(')') else {
            continue;
        };
        let target = target.split('#').next().unwrap_or_default();
        if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let line = page.text[..at].matches('\n').count() + 1;
        found.push((line, resolved(&page.path, target)));
    }
    found
}

/// A target relative to the page that names it, as a path from the repository's root.
fn resolved(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.pop().is_some() => {}
            other => parts.push(other),
        }
    }
    parts.join("/")
}

fn pages(files: &[Source]) -> impl Iterator<Item = &Source> {
    files.iter().filter(|file| file.path.ends_with(".md"))
}

/// A picture of the repository, which is no source.
fn is_picture(path: &str) -> bool {
    path.ends_with(".png") && Path::new(env!("CARGO_MANIFEST_DIR")).join(path).is_file()
}

pub(crate) fn broken_links(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for page in pages(files) {
        for (line, target) in links(page) {
            let inside = format!("{target}/");
            let exists = |file: &Source| file.path == target || file.path.starts_with(&inside);
            if !files.iter().any(exists) && !is_picture(&target) {
                faults.push(format!("{}:{line}: {target}", page.path));
            }
        }
    }
    faults
}

pub(crate) fn lost_pages(files: &[Source]) -> Vec<String> {
    let index = pages(files).find(|page| page.path == INDEX);
    let known: Vec<String> = index
        .map(links)
        .unwrap_or_default()
        .into_iter()
        .map(|(_, target)| target)
        .collect();
    pages(files)
        .filter(|page| page.path.starts_with("docs/") && page.path != INDEX)
        .filter(|page| !known.contains(&page.path))
        .map(|page| page.path.clone())
        .collect()
}

/// Words of a page for people who look after the code, or who have the specification.
const FOR_CONTRIBUTORS: [&str; 3] = ["specification", "UPDATE_GENERATED", "cargo test"];

/// What pages say to contributors. `docs/open-details.md` is about the specification, and the index says so.
pub(crate) fn asides(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for page in pages(files).filter(|page| page.path.starts_with("docs/")) {
        if page.path == "docs/open-details.md" {
            continue;
        }
        for (number, line) in page.text.lines().enumerate() {
            if line.contains("(open-details.md)") {
                continue;
            }
            if FOR_CONTRIBUTORS.iter().any(|word| line.contains(word)) {
                faults.push(format!("{}:{}: {line}", page.path, number + 1));
            }
        }
    }
    faults
}
