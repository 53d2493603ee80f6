//! An error in a record: `error: {name, message, code}`, with `stack` at level debug.

use super::nested::Room;
use super::panic::Panic;
use super::redact::INPUT_MAX_BYTES;
use crate::error::Error;
use serde_json::{Map, Value};
use std::fmt::{self, Write};

type Dyn<'a> = &'a (dyn std::error::Error + 'static);

/// Further causes are dropped.
const CAUSES_MAX: usize = 16;

/// An error as the field `error` of a record, and the only form of one (`tests/rules`):
/// `slog::error!(log, "the run failed"; ErrorValue(&error))`.
///
/// slog's own form, `"error" => #error`, writes the same; it is for the crate `jobs`, which knows nothing of this one.
pub struct ErrorValue<'a>(pub &'a (dyn std::error::Error + 'static));

impl slog::KV for ErrorValue<'_> {
    fn serialize(&self, _: &slog::Record<'_>, out: &mut dyn slog::Serializer) -> slog::Result {
        out.emit_error("error", self.0)
    }
}

/// A text of at most [`INPUT_MAX_BYTES`] that survives a `Display` that fails.
#[derive(Default)]
pub(super) struct Bounded {
    pub(super) text: String,
    /// Whether the text was cut.
    pub(super) cut: bool,
}

impl Bounded {
    pub(super) fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut bounded = Self::default();
        if bounded.write_fmt(arguments).is_err() && !bounded.cut {
            bounded.text.push_str(" [unprintable]");
        }
        bounded
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = INPUT_MAX_BYTES - self.text.len().min(INPUT_MAX_BYTES);
        let taken = super::redact::floor(text, room);
        self.text.push_str(&text[..taken]);
        if taken < text.len() {
            self.cut = true;
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// The JSON object of an error.
pub(super) fn object(room: &mut Room<'_>, error: Dyn<'_>, with_stack: bool) -> Value {
    let message = message(error);
    let mut object = Map::new();
    object.insert("name".to_owned(), room.text(&name(error), true));
    object.insert("message".to_owned(), room.text(&message.text, !message.cut));
    // Of an error that only says where another was met, the other's.
    let code = match chain(error).find_map(code) {
        Some(code) => room.text(&code, true),
        None => Value::Null,
    };
    object.insert("code".to_owned(), code);
    if with_stack {
        let stack = stack(error);
        object.insert("stack".to_owned(), room.text(&stack.text, !stack.cut));
    }
    for (key, value) in &mut object {
        if room.keys.hide(key) {
            *value = Value::from(super::redact::REDACTED);
        }
    }
    Value::from(object)
}

/// The error and its causes.
fn chain(error: Dyn<'_>) -> impl Iterator<Item = Dyn<'_>> {
    std::iter::successors(Some(error), |error| error.source()).take(CAUSES_MAX)
}

/// The error's own sentence, followed by its first cause unless the sentence contains it.
fn message(error: Dyn<'_>) -> Bounded {
    let mut message = sentence(error);
    if let Some(cause) = error.source() {
        let cause = sentence(cause);
        if !message.cut && !message.text.contains(&cause.text) {
            let _ = write!(message, ": {}", cause.text);
        }
        message.cut |= cause.cut;
    }
    message
}

fn sentence(error: Dyn<'_>) -> Bounded {
    if let Some(error) = error.downcast_ref::<Error>() {
        return Bounded::of(format_args!("{}", error.message()));
    }
    // Its own sentence is "db error". The detail, which has values of the row, is in the stack alone.
    let database = error.downcast_ref::<postgres::Error>();
    match database.and_then(postgres::Error::as_db_error) {
        Some(said) => Bounded::of(format_args!("{}", said.message())),
        None => Bounded::of(format_args!("{error}")),
    }
}

fn code(error: Dyn<'_>) -> Option<String> {
    if let Some(error) = error.downcast_ref::<Error>() {
        return Some(error.code().text().to_owned());
    }
    if let Some(error) = error.downcast_ref::<postgres::Error>() {
        return error.code().map(|code| code.code().to_owned());
    }
    error
        .downcast_ref::<std::io::Error>()
        .map(|error| format!("{:?}", error.kind()))
}

/// The name of the error's type or variant, taken from the start of its derived `Debug`.
fn name(error: Dyn<'_>) -> String {
    if error.is::<std::io::Error>() {
        return "IoError".to_owned();
    }
    if error.is::<postgres::Error>() {
        return "PostgresError".to_owned();
    }
    let mut start = Start(String::new());
    let _ = write!(start, "{error:?}");
    let end = start
        .0
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(start.0.len());
    let followed = matches!(start.0[end..].chars().next(), None | Some(' ' | '(' | '{'));
    if followed && start.0.starts_with(|c: char| c.is_ascii_uppercase()) {
        start.0.truncate(end);
        start.0
    } else {
        "Error".to_owned()
    }
}

/// The first characters of a text; the rest is not formatted.
struct Start(String);

impl Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const START_MAX_BYTES: usize = 64;
        let room = START_MAX_BYTES - self.0.len().min(START_MAX_BYTES);
        let taken = super::redact::floor(text, room);
        self.0.push_str(&text[..taken]);
        if taken < text.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// The chain of causes, each with its source location if it has one.
fn stack(error: Dyn<'_>) -> Bounded {
    let mut stack = Bounded::default();
    for (index, error) in chain(error).enumerate() {
        let lead = if index == 0 { "" } else { "\ncaused by: " };
        let sentence = sentence(error);
        let _ = match error.downcast_ref::<Error>() {
            Some(error) => write!(
                stack,
                "{lead}{}: {}\n  at {}",
                error.code().text(),
                sentence.text,
                error.place()
            ),
            None => write!(stack, "{lead}{}: {}", name(error), sentence.text),
        };
        if let Some(panic) = error.downcast_ref::<Panic>() {
            if let Some(place) = &panic.place {
                let _ = write!(stack, "\n  at {place}");
            }
            if let Some(frames) = &panic.frames {
                let _ = write!(stack, "\n{frames}");
            }
        }
    }
    stack
}
