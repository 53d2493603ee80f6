//! The page, and the code in it.

use std::path::Path;

/// The page as it stands.
pub(super) fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/webhooks-receiver.md");
    std::fs::read_to_string(path).unwrap()
}

/// The blocks of code in this language, in order.
pub(super) fn blocks(language: &str) -> Vec<String> {
    let text = text();
    let opening = format!("```{language}\n");
    let blocks = text.split(&opening).skip(1);
    let blocks: Vec<String> = blocks
        .map(|rest| rest.split("\n```").next().unwrap().to_owned() + "\n")
        .collect();
    assert!(!blocks.is_empty(), "there is no {language} on the page");
    blocks
}

/// The files that blocks of code say they are, in their first lines: name and text.
pub(super) fn files(language: &str, comment: &str) -> Vec<(String, String)> {
    let name = |block: &String| {
        let first = block.lines().next().unwrap();
        let name = first.strip_prefix(comment);
        name.unwrap_or_else(|| panic!("{first} names no file"))
            .to_owned()
    };
    let named = blocks(language).into_iter();
    named.map(|block| (name(&block), block)).collect()
}
