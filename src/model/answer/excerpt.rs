//! Texts of a provider as they may be kept.

/// The text without NUL, which PostgreSQL cannot store.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
