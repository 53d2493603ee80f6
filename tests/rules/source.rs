//! The repository's files as the rules see them: text, and for Rust the code without its comments,
//! strings and unit tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold nothing of ours.
const SKIPPED: [&str; 5] = ["target", ".git", "node_modules", "__pycache__", ".venv"];
/// Files that tools write.
const WRITTEN: [&str; 4] = [
    "Cargo.lock",
    "package-lock.json",
    "swagger-ui-bundle.js",
    "swagger-ui.css",
];
/// What is not read as text.
const BINARY: [&str; 7] = ["png", "ico", "woff2", "jar", "gz", "jpg", "pdf"];

/// One file.
pub(crate) struct Source {
    /// Relative to the repository, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Rust without comments and without the unit tests at the end.
    pub(crate) code: String,
    /// The same without what strings say.
    pub(crate) bare: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, bare) = if path.ends_with(".rs") {
            let body = without_unit_tests(path, text);
            (stripped(body, true), stripped(body, false))
        } else {
            (String::new(), String::new())
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            bare,
        }
    }

    /// Whether this is Rust of the service or of a crate beside it (not of their tests).
    pub(crate) fn is_product(&self) -> bool {
        self.path.ends_with(".rs")
            && ["src/", "jobs/src/", "expressions/src/"]
                .iter()
                .any(|place| self.path.starts_with(place))
    }

    /// The service's module that the file belongs to: `store` for `src/store/runs.rs`.
    pub(crate) fn module(&self) -> Option<&str> {
        let inner = self.path.strip_prefix("src/")?;
        let first = inner.split('/').next()?;
        Some(first.strip_suffix(".rs").unwrap_or(first))
    }
}

/// Every text file of the repository.
pub(crate) fn repository() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_symlink() || SKIPPED.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if !WRITTEN.contains(&name.as_str()) && !is_binary(&path) {
                found.extend(read(root, &path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.iter().any(|file| file.path == "src/lib.rs"));
    found
}

fn is_binary(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| BINARY.iter().any(|binary| ending == *binary))
}

fn read(root: &Path, path: &PathBuf) -> Option<Source> {
    let text = String::from_utf8(fs::read(path).ok()?).ok()?;
    let relative = path.strip_prefix(root).unwrap().to_string_lossy();
    Some(Source::new(&relative.replace('\\', "/"), &text))
}

/// What stands before the unit tests; nothing of a file that holds tests alone.
fn without_unit_tests<'a>(path: &str, text: &'a str) -> &'a str {
    if path.ends_with("/tests.rs") || path.contains("/tests/") && path.starts_with("src/") {
        return "";
    }
    let end = text
        .match_indices("#[cfg(test)]")
        .find(|(at, mark)| opens_module(&text[at + mark.len()..]))
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Whether a module with a body follows, past further attributes. (`mod tests;` hides nothing.)
fn opens_module(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some((_, after)) = rest.strip_prefix("#[").and_then(|r| r.split_once(']')) {
        rest = after.trim_start();
    }
    rest.starts_with("mod ") && rest.find('{') < rest.find(';')
}

/// Rust with comments blanked, and strings too unless they are kept. Lines stay where they are.
fn stripped(text: &str, keep_strings: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        let token = &chars[at..end];
        let comment = token.len() > 1 && token[0] == '/';
        let quoted = token.len() > 1 && !comment;
        for c in token {
            let kept = *c == '\n' || !(comment || quoted && !keep_strings);
            out.push(if kept { *c } else { ' ' });
        }
        at = end;
    }
    out
}

/// The end of the comment, string or character that begins here, or of the one character.
fn token_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match (chars[at], next) {
        ('/', Some('/')) => until(chars, at, |i| chars[i] == '\n'),
        ('/', Some('*')) => until(chars, at + 2, |i| chars[i - 1] == '*' && chars[i] == '/') + 1,
        ('"', _) => string_end(chars, at),
        ('r', Some('"' | '#')) if at == 0 || !is_word(chars[at - 1]) || chars[at - 1] == 'b' => {
            raw_string_end(chars, at)
        }
        ('\'', Some('\\')) => until(chars, at + 3, |i| chars[i] == '\'') + 1,
        ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
        _ => at + 1,
    }
    .min(chars.len())
}

fn until(chars: &[char], from: usize, found: impl Fn(usize) -> bool) -> usize {
    (from..chars.len())
        .find(|i| found(*i))
        .unwrap_or(chars.len())
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn raw_string_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at + 1;
    }
    let closes = |i: usize| {
        chars[i] == '"'
            && chars[i + 1..]
                .iter()
                .take(hashes)
                .filter(|c| **c == '#')
                .count()
                == hashes
    };
    until(chars, at + 2 + hashes, closes) + 1 + hashes
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The line numbers at which `word` stands as a whole word.
pub(crate) fn lines_with_word(text: &str, word: &str) -> Vec<usize> {
    text.match_indices(word)
        .filter(|(at, _)| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            let ends_in_word = word.chars().next_back().is_some_and(is_word);
            !(before.is_some_and(is_word) || ends_in_word && after.is_some_and(is_word))
        })
        .map(|(at, _)| line_of(text, at))
        .collect()
}

pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[test]
fn comments_strings_and_unit_tests_are_told_apart() {
    let text = concat!(
        "let a = \"one // two \\\" three\"; // four\n",
        "let b = r#\"five \" six\"#; /* seven\n eight */ let c = '\"'; let d: &'static str = x;\n",
        "#[cfg(test)]\nmod more;\nfn ten() {}\n",
        "#[cfg(test)]\n#[allow(unused)]\nmod tests { nine; }\n",
    );
    let source = Source::new("src/a.rs", text);
    for (word, in_code, in_bare) in [
        ("one", true, false),
        ("two", true, false),
        ("three", true, false),
        ("four", false, false),
        ("five", true, false),
        ("six", true, false),
        ("seven", false, false),
        ("eight", false, false),
        ("static", true, true),
        ("ten", true, true),
        ("nine", false, false),
    ] {
        assert_eq!(source.code.contains(word), in_code, "{word} in code");
        assert_eq!(source.bare.contains(word), in_bare, "{word} in bare code");
    }
    assert_eq!(source.code.matches('\n').count(), 6);
}
