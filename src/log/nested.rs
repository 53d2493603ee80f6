//! Serializes any value as JSON that is redacted and bounded while it is made.
//!
//! A value under a hidden key is never serialized. Depth, entries and bytes are bounded, so a
//! record is small and a thread's stack is large enough for every value.

use super::redact::{self, CUT, Keys, REDACTED};
use serde::ser::{self, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Deeper values are dropped.
const DEPTH_MAX: usize = 12;
/// Further entries of one list or object are dropped.
const ENTRIES_MAX: usize = 1024;
/// Longer keys are cut.
const KEY_MAX_BYTES: usize = 256;
/// An upper bound on the size of a number or a word.
const WORD_COST_BYTES: usize = 24;

/// The space left in the record, and the keys to hide.
pub(super) struct Room<'a> {
    pub(super) keys: &'a Keys,
    pub(super) left_bytes: usize,
}

impl Room<'_> {
    /// Takes the space that a text needs, or none.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left_bytes;
        self.left_bytes = if fits { self.left_bytes - bytes } else { 0 };
        fits
    }

    /// A redacted text, if there is space.
    pub(super) fn text(&mut self, text: &str, whole: bool) -> Value {
        if self.left_bytes == 0 {
            return Value::from(CUT);
        }
        let text = redact::text(text, whole);
        if self.take(cost_bytes(&text)) {
            Value::from(text)
        } else {
            Value::from(CUT)
        }
    }

    /// A number or a word, which cannot hold a secret.
    pub(super) fn word(&mut self, word: impl Into<Value>) -> Value {
        if self.take(WORD_COST_BYTES) {
            word.into()
        } else {
            Value::from(CUT)
        }
    }

    /// Any value.
    pub(super) fn nested(&mut self, value: &(impl Serialize + ?Sized)) -> Value {
        let at = At {
            room: self,
            depth: 0,
        };
        match value.serialize(at) {
            Ok(value) => value,
            Err(Unserialisable) => Value::from("[unserialisable]"),
        }
    }

    /// The space for a key of a record or an object.
    pub(super) fn key(&mut self, key: &str) -> bool {
        self.take(cost_bytes(key) + 16)
    }
}

/// An upper bound on a text's size in either format.
fn cost_bytes(text: &str) -> usize {
    let cost = |c: char| match c {
        '"' | '\\' => 2,
        c if super::format::is_escaped(c) => 10,
        c => c.len_utf8(),
    };
    2 + text.chars().map(cost).sum::<usize>()
}

/// The value's own `Serialize` failed. Its message is dropped, because it may repeat the value.
#[derive(Debug)]
pub(super) struct Unserialisable;

impl fmt::Display for Unserialisable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unserialisable")
    }
}

impl std::error::Error for Unserialisable {}

impl ser::Error for Unserialisable {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// The position in the value that is being written.
struct At<'r, 'k> {
    room: &'r mut Room<'k>,
    depth: usize,
}

type Result<T> = std::result::Result<T, Unserialisable>;

impl<'r, 'k> At<'r, 'k> {
    fn many(self, variant: Option<&'static str>) -> Many<'r, 'k> {
        Many {
            room: self.room,
            depth: self.depth + 1,
            variant,
            list: Vec::new(),
            object: Map::new(),
            key: None,
        }
    }
}

macro_rules! words {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<Value> {
            Ok(self.room.word(value))
        })*
    };
}

impl<'r, 'k> ser::Serializer for At<'r, 'k> {
    type Ok = Value;
    type Error = Unserialisable;
    type SerializeSeq = Many<'r, 'k>;
    type SerializeTuple = Many<'r, 'k>;
    type SerializeTupleStruct = Many<'r, 'k>;
    type SerializeTupleVariant = Many<'r, 'k>;
    type SerializeMap = Many<'r, 'k>;
    type SerializeStruct = Many<'r, 'k>;
    type SerializeStructVariant = Many<'r, 'k>;

    words!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64
    );

    fn serialize_i128(self, value: i128) -> Result<Value> {
        Ok(match i64::try_from(value) {
            Ok(value) => self.room.word(value),
            Err(_) => self.room.text(&value.to_string(), true),
        })
    }

    fn serialize_u128(self, value: u128) -> Result<Value> {
        Ok(match u64::try_from(value) {
            Ok(value) => self.room.word(value),
            Err(_) => self.room.text(&value.to_string(), true),
        })
    }

    fn serialize_f32(self, value: f32) -> Result<Value> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<Value> {
        Ok(if value.is_finite() {
            self.room.word(value)
        } else {
            self.room.word(value.to_string())
        })
    }

    fn serialize_char(self, value: char) -> Result<Value> {
        Ok(self.room.text(value.encode_utf8(&mut [0; 4]), true))
    }

    fn serialize_str(self, value: &str) -> Result<Value> {
        Ok(self.room.text(value, true))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Value> {
        Ok(self.room.word(format!("[{} bytes]", value.len())))
    }

    fn serialize_none(self) -> Result<Value> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value> {
        Ok(self.room.word(Value::Null))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Value> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value> {
        let mut object = self.many(None);
        object.entry(variant, value)?;
        Ok(Value::from(object.object))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Many<'r, 'k>> {
        Ok(self.many(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Many<'r, 'k>> {
        Ok(self.many(None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Many<'r, 'k>> {
        Ok(self.many(None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Many<'r, 'k>> {
        Ok(self.many(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Many<'r, 'k>> {
        Ok(self.many(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Many<'r, 'k>> {
        Ok(self.many(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Many<'r, 'k>> {
        Ok(self.many(Some(variant)))
    }
}

/// The entries of a list or an object.
struct Many<'r, 'k> {
    room: &'r mut Room<'k>,
    /// The depth of the entries.
    depth: usize,
    /// The name of the enum variant around the entries.
    variant: Option<&'static str>,
    list: Vec<Value>,
    object: Map<String, Value>,
    key: Option<String>,
}

impl Many<'_, '_> {
    /// Whether there is space for another entry.
    fn open(&self) -> bool {
        let entries = self.list.len() + self.object.len();
        self.depth <= DEPTH_MAX && entries < ENTRIES_MAX && self.room.left_bytes > 0
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<Value> {
        value.serialize(At {
            room: self.room,
            depth: self.depth,
        })
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if self.open() {
            let value = self.value(value)?;
            self.list.push(value);
        } else if self.list.last().is_none_or(|last| last != CUT) {
            self.list.push(Value::from(CUT));
        }
        Ok(())
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<()> {
        if !self.open() {
            self.object.insert(CUT.to_owned(), Value::Null);
            return Ok(());
        }
        let mut shown = redact::text(key, true);
        shown.truncate(redact::floor(&shown, KEY_MAX_BYTES));
        let mut number = self.object.len();
        let start = shown.len();
        while self.object.contains_key(&shown) {
            // Two keys may be equal once their secrets are hidden: number them.
            shown.truncate(start);
            shown.push_str(&format!("#{number}"));
            number += 1;
        }
        if !self.room.key(&shown) {
            self.object.insert(CUT.to_owned(), Value::Null);
            return Ok(());
        }
        let value = if self.room.keys.hide(key) {
            Value::from(REDACTED)
        } else {
            self.value(value)?
        };
        self.object.insert(shown, value);
        Ok(())
    }

    /// The entries, inside the variant if there is one.
    fn done(self, entries: Value) -> Value {
        let Some(variant) = self.variant else {
            return entries;
        };
        let entries = if self.room.keys.hide(variant) {
            Value::from(REDACTED)
        } else {
            entries
        };
        Value::from(Map::from_iter([(variant.to_owned(), entries)]))
    }

    fn done_list(mut self) -> Result<Value> {
        let list = std::mem::take(&mut self.list);
        Ok(self.done(Value::from(list)))
    }

    fn done_object(mut self) -> Result<Value> {
        let object = std::mem::take(&mut self.object);
        Ok(self.done(Value::from(object)))
    }
}

impl ser::SerializeSeq for Many<'_, '_> {
    type Ok = Value;
    type Error = Unserialisable;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.item(value)
    }

    fn end(self) -> Result<Value> {
        self.done_list()
    }
}

impl ser::SerializeTuple for Many<'_, '_> {
    type Ok = Value;
    type Error = Unserialisable;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.item(value)
    }

    fn end(self) -> Result<Value> {
        self.done_list()
    }
}

impl ser::SerializeTupleStruct for Many<'_, '_> {
    type Ok = Value;
    type Error = Unserialisable;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.item(value)
    }

    fn end(self) -> Result<Value> {
        self.done_list()
    }
}

impl ser::SerializeTupleVariant for Many<'_, '_> {
    type Ok = Value;
    type Error = Unserialisable;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.item(value)
    }

    fn end(self) -> Result<Value> {
        self.done_list()
    }
}

impl ser::SerializeMap for Many<'_, '_> {
    type Ok = Value;
    type Error = Unserialisable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let key = serde_json::value::to_value(key).map_err(|_| Unserialisable)?;
        self.key = Some(match key {
            Value::String(key) => key,
            other => other.to_string(),
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let key = self.key.take().unwrap_or_default();
        self.entry(&key, value)
    }

    fn end(self) -> Result<Value> {
        self.done_object()
    }
}

impl ser::SerializeStruct for Many<'_, '_> {
    type Ok = Value;
    type Error = Unserialisable;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.entry(key, value)
    }

    fn end(self) -> Result<Value> {
        self.done_object()
    }
}

impl ser::SerializeStructVariant for Many<'_, '_> {
    type Ok = Value;
    type Error = Unserialisable;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.entry(key, value)
    }

    fn end(self) -> Result<Value> {
        self.done_object()
    }
}
