//! A text that several checks judge one after another, with what they and their record need of it, each read once.

use super::json_parts::{Part, parts};
use crate::text::hex;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::cell::OnceCell;

/// The text, as it was given or as a check changed it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text<'a> {
    text: Cow<'a, str>,
    digest: OnceCell<String>,
    parts: OnceCell<Option<Vec<Part>>>,
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::of(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(changed: String) -> Self {
        Self::of(Cow::Owned(changed))
    }
}

impl<'a> Text<'a> {
    fn of(text: Cow<'a, str>) -> Self {
        Self {
            text,
            digest: OnceCell::new(),
            parts: OnceCell::new(),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// SHA-256, in hexadecimal.
    pub(super) fn digest(&self) -> &str {
        self.digest
            .get_or_init(|| hex(&Sha256::digest(self.text.as_bytes())))
    }

    /// The strings and numbers of an object or an array. None: it is something else.
    pub(super) fn parts(&self) -> Option<&[Part]> {
        self.parts.get_or_init(|| parts(&self.text)).as_deref()
    }

    /// The text where a check changed it.
    pub(super) fn changed(self) -> Option<String> {
        match self.text {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        }
    }
}
