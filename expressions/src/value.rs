//! Values during an evaluation.
//!
//! A value from outside is borrowed and read in place, so that reading a field costs nothing for what lies
//! beside it. A value that was made is shared, and knows its weight and its depth: a structure that holds
//! itself many times weighs as much as its text would.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Number, Value as Json};

use crate::number;

/// The weight of a value without its contents.
pub(crate) const SCALAR: usize = 32;
/// The weight of an object's entry without its key's letters and its value.
pub(crate) const ENTRY: usize = 64;

pub(crate) type Fields<'a> = IndexMap<Text<'a>, Value<'a>>;

#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text<'a>),
    Array(Array<'a>),
    Object(Object<'a>),
}

#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Made(Rc<str>),
}

#[derive(Debug, Clone)]
pub(crate) enum Array<'a> {
    Borrowed(&'a [Json]),
    Made(Rc<Measured<Vec<Value<'a>>>>),
}

#[derive(Debug, Clone)]
pub(crate) enum Object<'a> {
    Borrowed(&'a Map<String, Json>),
    Made(Rc<Measured<Fields<'a>>>),
}

#[derive(Debug)]
pub(crate) struct Measured<T> {
    pub(crate) inner: T,
    pub(crate) size: Size,
}

/// What a value takes: bytes about, levels, and how many values were looked at to know.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    pub(crate) weight: usize,
    pub(crate) depth: usize,
    pub(crate) seen: usize,
}

impl Size {
    pub(crate) fn add(&mut self, inner: Self) {
        self.weight += inner.weight;
        self.depth = self.depth.max(inner.depth + 1);
        self.seen += inner.seen;
    }

    fn of_scalar(letters: usize) -> Self {
        Self {
            weight: SCALAR + letters,
            depth: 0,
            seen: 1,
        }
    }
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text<'_> {}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Number(number.clone()),
            Json::String(text) => Self::Text(Text::Borrowed(text)),
            Json::Array(items) => Self::Array(Array::Borrowed(items)),
            Json::Object(fields) => Self::Object(Object::Borrowed(fields)),
        }
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Self::Number(number.into())
    }
}

impl<'a> Array<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(items) => items.len(),
            Self::Made(items) => items.inner.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Value<'a>> {
        match self {
            Self::Borrowed(items) => items.get(at).map(Value::from),
            Self::Made(items) => items.inner.get(at).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl<'a> Object<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(fields) => fields.len(),
            Self::Made(fields) => fields.inner.len(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Self::Borrowed(fields) => fields.get(key).map(Value::from),
            Self::Made(fields) => fields.inner.get(key).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (Text<'a>, Value<'a>)> + '_> {
        match self {
            Self::Borrowed(fields) => Box::new(
                fields
                    .iter()
                    .map(|(key, value)| (Text::Borrowed(key), Value::from(value))),
            ),
            Self::Made(fields) => Box::new(
                fields
                    .inner
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            ),
        }
    }

    /// The letters of all keys, in bytes.
    pub(crate) fn key_bytes(&self) -> usize {
        match self {
            Self::Borrowed(fields) => fields.keys().map(String::len).sum(),
            Self::Made(fields) => fields.inner.keys().map(|key| key.as_str().len()).sum(),
        }
    }

    /// Steps for sorting the keys: each round may read all their letters.
    pub(crate) fn sorting_cost(&self) -> u64 {
        let rounds = usize::BITS - self.len().leading_zeros();
        u64::from(rounds) * (self.key_bytes() as u64 / 64)
    }

    /// The keys by their letters' code points.
    pub(crate) fn sorted_keys(&self) -> Vec<Text<'a>> {
        let mut keys: Vec<Text<'a>> = self.iter().map(|(key, _)| key).collect();
        keys.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        keys
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub(crate) fn is_true(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The value's size. What is borrowed is walked through; deeper than `deepest` it is not followed.
    pub(crate) fn size(&self, deepest: usize) -> Size {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => Size::of_scalar(0),
            Self::Text(text) => Size::of_scalar(text.as_str().len()),
            Self::Array(Array::Made(items)) => Size {
                seen: 1,
                ..items.size
            },
            Self::Object(Object::Made(fields)) => Size {
                seen: 1,
                ..fields.size
            },
            Self::Array(Array::Borrowed(items)) => {
                let mut size = Size::of_scalar(0);
                for item in items.iter().take_while(|_| deepest > 0) {
                    size.add(Value::from(item).size(deepest - 1));
                }
                size.depth = size.depth.max(1);
                size
            }
            Self::Object(Object::Borrowed(fields)) => {
                let mut size = Size::of_scalar(0);
                for (key, value) in fields.iter().take_while(|_| deepest > 0) {
                    size.add(Value::from(value).size(deepest - 1));
                    size.weight += ENTRY + key.len();
                }
                size.depth = size.depth.max(1);
                size
            }
        }
    }

    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Number(number) => Json::Number(number.clone()),
            Self::Text(text) => Json::String(text.as_str().to_owned()),
            Self::Array(Array::Borrowed(items)) => Json::Array(items.to_vec()),
            Self::Object(Object::Borrowed(fields)) => Json::Object((*fields).clone()),
            Self::Array(Array::Made(items)) => {
                Json::Array(items.inner.iter().map(Value::to_json).collect())
            }
            Self::Object(Object::Made(fields)) => {
                let fields = fields.inner.iter();
                Json::Object(
                    fields
                        .map(|(key, value)| (key.as_str().to_owned(), value.to_json()))
                        .collect(),
                )
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(false) => 1,
            Self::Bool(true) => 2,
            Self::Number(_) => 3,
            Self::Text(_) => 4,
            Self::Array(_) => 5,
            Self::Object(_) => 6,
        }
    }
}

/// The order of all values, as jq has it. `cost` counts what was looked at.
pub(crate) fn compare(a: &Value<'_>, b: &Value<'_>, cost: &mut u64) -> Ordering {
    *cost += 1;
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number::compare(a, b),
        (Value::Text(a), Value::Text(b)) => {
            *cost += a.as_str().len().min(b.as_str().len()) as u64 / 64;
            a.as_str().cmp(b.as_str())
        }
        (Value::Array(a), Value::Array(b)) => {
            let mut pairs = a.iter().zip(b.iter());
            pairs
                .find_map(|(a, b)| Some(compare(&a, &b, cost)).filter(|order| order.is_ne()))
                .unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b, cost),
        _ => a.rank().cmp(&b.rank()),
    }
}

/// Objects by their sorted keys first, then by the values under these.
fn compare_objects(a: &Object<'_>, b: &Object<'_>, cost: &mut u64) -> Ordering {
    let keys = a.sorted_keys();
    let others = b.sorted_keys();
    *cost += (keys.len() + others.len()) as u64 + a.sorting_cost() + b.sorting_cost();
    let by_keys = keys
        .iter()
        .map(Text::as_str)
        .cmp(others.iter().map(Text::as_str));
    if by_keys.is_ne() {
        return by_keys;
    }
    *cost += a.key_bytes() as u64 / 8;
    for key in &keys {
        if let (Some(a), Some(b)) = (a.get(key.as_str()), b.get(key.as_str())) {
            let order = compare(&a, &b, cost);
            if order.is_ne() {
                return order;
            }
        }
    }
    Ordering::Equal
}
