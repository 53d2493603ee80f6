//! The pages of `docs`, and what the code in them is run with.

use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use uuid::Uuid;

/// A page as it stands.
pub(crate) struct Page {
    name: &'static str,
    pub(crate) text: String,
}

impl Page {
    /// The page of this name in `docs`.
    #[track_caller]
    pub(crate) fn read(name: &'static str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(name);
        let text = std::fs::read_to_string(path).unwrap();
        Self { name, text }
    }

    /// The blocks of code in this language, in order.
    #[track_caller]
    pub(crate) fn blocks(&self, language: &str) -> Vec<String> {
        let opening = format!("```{language}\n");
        let blocks = self.text.split(&opening).skip(1);
        let blocks: Vec<String> = blocks
            .map(|rest| rest.split("\n```").next().unwrap().to_owned() + "\n")
            .collect();
        assert!(!blocks.is_empty(), "{} has no {language}", self.name);
        blocks
    }

    /// The files that blocks of code say they are, in their first lines: name and text.
    #[track_caller]
    pub(crate) fn files(&self, language: &str, comment: &str) -> Vec<(String, String)> {
        let name = |block: &String| {
            let first = block.lines().next().unwrap();
            let name = first.strip_prefix(comment);
            name.unwrap_or_else(|| panic!("{first} names no file"))
                .to_owned()
        };
        let named = self.blocks(language).into_iter();
        named.map(|block| (name(&block), block)).collect()
    }

    /// That it has a row of a table which begins with this.
    #[track_caller]
    pub(crate) fn check_row(&self, begin: &str) {
        let row = format!("\n| {begin} |");
        assert!(
            self.text.contains(&row),
            "{} has no row that begins with {begin}",
            self.name
        );
    }
}

/// The names and the types of what is in it; null may stand for anything.
pub(crate) fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null => Value::Null,
        Value::String(text) if Uuid::parse_str(text).is_ok() => json!("an id"),
        Value::String(text) if text.ends_with('Z') && text.len() == 24 => json!("a time"),
        Value::String(_) => json!("a text"),
        Value::Number(_) => json!("a number"),
        Value::Bool(_) => json!("a boolean"),
        Value::Array(_) => json!("a list"),
    }
}

/// Where `make setup` puts this.
#[track_caller]
pub(crate) fn part(name: &str) -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/setup");
    let parts = Command::new(setup.join("where")).output().unwrap();
    let parts = String::from_utf8(parts.stdout).unwrap();
    let part = Path::new(parts.trim()).join(name);
    assert!(
        part.exists(),
        "{} is missing: run make setup",
        part.display()
    );
    part
}
