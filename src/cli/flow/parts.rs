//! Where the parts of a definition stand in its text.

use std::collections::HashMap;
use std::ops::Range;

/// The parts of a text by their JSON paths.
pub(super) type Parts = HashMap<String, Part>;

/// Where a value stands, in characters from the begin of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The field's name.
    pub(super) key: Option<Range<usize>>,
    pub(super) value: Range<usize>,
    pub(super) form: Form,
}

/// How the characters of a text value are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A number, true, false or null.
    Word,
    /// A text as it stands.
    Bare,
    /// A text in double quotes, with escapes.
    Double,
    /// A text in single quotes, of which two are one.
    Single,
    /// A text of several lines, as they stand but for their indentation.
    Block,
    /// A text whose lines are joined.
    Folded,
    /// An array or an object.
    Container,
}

/// What a text that cannot be read has wrong: where, and a sentence.
pub(super) struct Syntax {
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}
