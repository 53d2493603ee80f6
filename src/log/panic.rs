//! A panic as an error of the log, with its place and its stack.

use std::any::Any;
use std::fmt;

/// A panic as an error of the log.
pub struct Panic {
    pub(super) message: String,
    /// Where it began, if that is known.
    pub(super) place: Option<String>,
    /// The stack frames, if `RUST_BACKTRACE` is set.
    pub(super) frames: Option<String>,
}

impl Panic {
    /// A panic that was caught. Its place is in the record of the panic hook.
    pub fn caught(payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a panic without a message");
        Self {
            message: message.to_owned(),
            place: None,
            frames: None,
        }
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Panic")
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Panic {}
