//! The page, and the code in it.

use crate::harness::page::Page;

/// The page as it stands.
#[track_caller]
pub(super) fn text() -> String {
    Page::read("webhooks-receiver.md").text
}

/// The blocks of code in this language, in order.
#[track_caller]
pub(super) fn blocks(language: &str) -> Vec<String> {
    Page::read("webhooks-receiver.md").blocks(language)
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
