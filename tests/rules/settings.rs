//! The rule about settings: each is read, by its name, where the options of its part are made.

use crate::source::{Source, is_word};
use std::collections::BTreeSet;

/// Where settings are declared, and where their texts are checked.
const TABLE: &str = "src/config/table/";

/// What reads the value of a setting.
const READERS: [&str; 14] = [
    "address",
    "boolean",
    "certificates",
    "duration",
    "headers",
    "is_given",
    "maybe_number",
    "number",
    "origins",
    "path",
    "secret",
    "signing_key",
    "text",
    "word",
];

/// The names of settings in a text, with what stands before each.
fn names(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("\"SVC_").filter_map(|(at, _)| {
        let name = text[at + 1..].split('"').next()?;
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        name.chars().all(is_name).then_some((&text[..at], name))
    })
}

/// Whether the text ends with the begin of a call of a reader: `.number(`, `.number::<u32>(`.
fn is_read(before: &str) -> bool {
    let Some(call) = before.trim_end().strip_suffix('(') else {
        return false;
    };
    let call = match call.strip_suffix('>') {
        Some(typed) => typed.rsplit_once("::<").map_or("", |(call, _)| call),
        None => call,
    };
    let word = call.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    READERS.contains(&word)
}

/// Settings of the table that nothing reads.
pub(crate) fn unread(files: &[Source]) -> Vec<String> {
    let product = files.iter().filter(|file| file.is_product());
    let (table, parts): (Vec<&Source>, Vec<&Source>) =
        product.partition(|file| file.path.starts_with(TABLE));
    let mut read = BTreeSet::new();
    for file in parts {
        // The reading combines some, and says so in a comment where the settings are assembled.
        let is_config = file.path.starts_with("src/config/");
        let found = names(&file.code).filter(|(before, _)| is_config || is_read(before));
        read.extend(found.map(|(_, name)| name));
    }
    // Those of capabilities to come are refused.
    let built = table
        .iter()
        .filter(|file| !file.path.ends_with("unbuilt.rs"));
    let declared = built
        .flat_map(|file| names(&file.code))
        .map(|(_, name)| name);
    let unread = declared.filter(|name| !read.contains(name));
    unread
        .map(|name| format!("{name} is in the table, and no part reads it"))
        .collect()
}
