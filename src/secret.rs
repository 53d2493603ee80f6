//! A secret in memory. It cannot be printed or serialized by accident, and is wiped when dropped.
//!
//! To use the bytes, call [`Secret::expose`]; a search for that word finds every place that does.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

/// What a text is the base64 of (RFC 4648, with padding), if that is one and has at most so many bytes.
/// What was decoded is wiped, also where the text turns out to be none.
pub fn decoded(text: &str, bytes_most: usize) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; bytes_most]);
    let length = STANDARD.decode_slice(text, &mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_up_to_its_bound() {
        for length in [0, 1, 31, 32, 33] {
            let text = STANDARD.encode(vec![7; length]);
            let read = decoded(&text, 32).map(|bytes| bytes.to_vec());
            assert_eq!(read, (length <= 32).then(|| vec![7; length]));
        }
        for text in ["AQEB!", "AQE", "AQF=", "not base64"] {
            assert!(decoded(text, 32).is_none(), "{text}");
        }
    }
}
