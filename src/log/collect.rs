//! Collects the fields of a record from slog's pairs. The newest field of a name wins. Foreign
//! `Display` code may fail or panic.

use super::failure::{self, Bounded};
use super::nested::Room;
use super::redact::REDACTED;
use super::subsystem::Subsystem;
use serde_json::Value;
use slog::{BytesKind, Key, Result, SerdeValue, Serializer};
use std::fmt::Arguments;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Further fields are dropped.
const FIELDS_MAX: usize = 128;
/// The key under which a logger carries its subsystem.
pub(super) const SUBSYSTEM: &str = "subsystem";

/// Replaces a value whose own code panicked.
const PANICKED: &str = "[panicked]";

/// Finds the subsystem of a logger, and reads nothing else.
pub(super) struct Finder(pub(super) Option<Subsystem>);

impl Serializer for Finder {
    fn emit_str(&mut self, key: Key, value: &str) -> Result {
        if key == SUBSYSTEM {
            self.0 = Subsystem::from_name(value);
            if self.0.is_some() {
                // Stops the iteration: the newest one counts.
                return Err(slog::Error::Other);
            }
        }
        Ok(())
    }

    fn emit_arguments(&mut self, _: Key, _: &Arguments<'_>) -> Result {
        Ok(())
    }

    fn emit_serde(&mut self, _: Key, _: &dyn SerdeValue) -> Result {
        Ok(())
    }

    fn emit_error(&mut self, _: Key, _: &(dyn std::error::Error + 'static)) -> Result {
        Ok(())
    }
}

/// Collects redacted fields, newest first.
pub(super) struct Fields<'a> {
    pub(super) room: Room<'a>,
    /// Whether errors carry their stack.
    pub(super) with_stack: bool,
    pub(super) fields: Vec<(Key, Value)>,
}

impl<'a> Fields<'a> {
    /// A text that may come from foreign code.
    pub(super) fn arguments(&mut self, value: &Arguments<'_>) -> Value {
        self.guarded(|room| match value.as_str() {
            Some(text) => room.text(text, true),
            None => {
                let bounded = Bounded::of(*value);
                room.text(&bounded.text, !bounded.cut)
            }
        })
    }

    fn guarded(&mut self, make: impl FnOnce(&mut Room<'a>) -> Value) -> Value {
        catch_unwind(AssertUnwindSafe(|| make(&mut self.room)))
            .unwrap_or_else(|_| Value::from(PANICKED))
    }

    /// Adds a field, unless a newer one has its key.
    fn field(&mut self, key: Key, make: impl FnOnce(&mut Self) -> Value) -> Result {
        let known = self.fields.iter().any(|(known, _)| *known == key);
        if known || self.fields.len() >= FIELDS_MAX || !self.room.key(key) {
            return Ok(());
        }
        let value = if self.room.keys.hide(key) {
            Value::from(REDACTED)
        } else {
            make(self)
        };
        self.fields.push((key, value));
        Ok(())
    }
}

macro_rules! words {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(&mut self, key: Key, value: $type) -> Result {
            self.field(key, |fields| fields.room.word(value))
        })*
    };
}

macro_rules! nested {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(&mut self, key: Key, value: $type) -> Result {
            self.field(key, |fields| fields.room.nested(&value))
        })*
    };
}

impl Serializer for Fields<'_> {
    words!(
        emit_bool: bool, emit_u8: u8, emit_i8: i8, emit_u16: u16, emit_i16: i16, emit_u32: u32,
        emit_i32: i32, emit_u64: u64, emit_i64: i64, emit_usize: usize, emit_isize: isize
    );
    nested!(emit_f32: f32, emit_f64: f64, emit_u128: u128, emit_i128: i128, emit_char: char);

    fn emit_str(&mut self, key: Key, value: &str) -> Result {
        if key == SUBSYSTEM && Subsystem::from_name(value).is_some() {
            return Ok(());
        }
        self.field(key, |fields| fields.room.text(value, true))
    }

    fn emit_unit(&mut self, key: Key) -> Result {
        self.emit_none(key)
    }

    fn emit_none(&mut self, key: Key) -> Result {
        self.field(key, |fields| fields.room.word(Value::Null))
    }

    fn emit_bytes(&mut self, key: Key, bytes: &[u8], _: BytesKind) -> Result {
        let text = format!("[{} bytes]", bytes.len());
        self.field(key, |fields| fields.room.word(text))
    }

    fn emit_arguments(&mut self, key: Key, value: &Arguments<'_>) -> Result {
        self.field(key, |fields| fields.arguments(value))
    }

    fn emit_serde(&mut self, key: Key, value: &dyn SerdeValue) -> Result {
        self.field(key, |fields| {
            fields.guarded(|room| room.nested(value.as_serde()))
        })
    }

    fn emit_error(&mut self, key: Key, error: &(dyn std::error::Error + 'static)) -> Result {
        let with_stack = self.with_stack;
        self.field(key, |fields| {
            fields.guarded(|room| failure::object(room, error, with_stack))
        })
    }
}
