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
