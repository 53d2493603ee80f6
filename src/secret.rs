//! A secret in memory: it cannot be printed or serialised by accident, and is wiped when dropped.
//!
//! To use the bytes, call [`Secret::expose`]; a search for that word finds every place that does.

use zeroize::Zeroizing;

/// A secret text. `Debug` and `Display` show `[redacted]`; there is no `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself. Never put it into a log, an error, a URL or a command line.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}
