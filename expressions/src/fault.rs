//! What is wrong with the text of an expression, for its author.
//!
//! A fault names the place in bytes, says one sentence, and has a hint where the slip is a usual one.

use std::fmt;
use std::ops::Range;

/// One fault in an expression's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The bytes of the text that are wrong. It is empty at the text's end if something is missing there.
    pub span: Range<usize>,
    /// One sentence: what is wrong.
    pub message: String,
    /// What to write instead, if the slip is a usual one.
    pub hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}..{}: {}",
            self.span.start, self.span.end, self.message
        )?;
        match &self.hint {
            Some(hint) => write!(f, " {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
