//! Puts the calls of tools together, from fragments as model servers send them.
//!
//! A server keeps an index, or an id, or the order: each tells fragments apart until it contradicts itself. What comes out is the
//! call that was meant. Not here: whether the arguments fit the tool.

use super::arguments;
use super::kept::Keeper;
use super::storable;
use super::unfit::Unfit;
use crate::model::json::Brackets;
use crate::model::request::ToolCall;
use crate::text::beginning;
use serde_json::{Map, Value};

const MAX_TOOL_CALLS: usize = 128;
/// The longest id and the longest name that are kept; the rest is cut.
const MAX_NAME_BYTES: usize = 1024;
/// Fields of a call that are no unknown ones.
const KNOWN: [&str; 4] = ["index", "id", "type", "function"];

/// Where servers write arguments: OpenAI's field, those of Llama's format and of Anthropic's.
const ARGUMENTS: [&str; 3] = ["arguments", "parameters", "input"];

/// Of each call the fields that the service does not know; shorter where the last ones have none.
pub(super) type UnknownFields = Vec<Map<String, Value>>;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Building>,
    /// Of names and arguments together.
    bytes: usize,
    /// The number of messages with calls that were taken.
    messages: usize,
}

#[derive(Debug, Default)]
struct Building {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    brackets: Brackets,
    kept: Map<String, Value>,
    /// The message in which it began.
    message: usize,
}

/// A fragment.
struct Fragment<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: String,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The length of names and arguments.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the calls of a piece of a message, or of a whole one, in which each is a call of its own.
    pub(super) fn take(
        &mut self,
        message: &Value,
        whole: bool,
        tools: &[String],
        keeper: &mut Keeper,
    ) -> Result<(), Unfit> {
        self.messages += 1;
        let calls = match &message["tool_calls"] {
            Value::Array(calls) => calls.as_slice(),
            one @ Value::Object(_) => std::slice::from_ref(one),
            _ => &[],
        };
        let is_bare = |call: &Value| call["index"].is_null() && text(&call["id"]).is_empty();
        let in_order = calls.len() > 1 && calls.iter().all(is_bare);
        for (position, call) in (0..).zip(calls).filter(|(_, call)| call.is_object()) {
            let index = if in_order {
                Some(position)
            } else {
                index(&call["index"])
            };
            let function = if call["function"].is_object() {
                &call["function"]
            } else {
                call
            };
            let fragment = Fragment {
                index,
                id: cut(text(&call["id"])),
                name: cut(text(&function["name"])),
                arguments: written(given(function)),
            };
            let at = self.add(fragment, whole, tools)?;
            let fields = call.as_object().into_iter().flatten();
            let is_flat = std::ptr::eq(function, call);
            for (name, value) in fields.filter(|(name, _)| !KNOWN.contains(&name.as_str())) {
                if !(is_flat && (name == "name" || ARGUMENTS.contains(&name.as_str()))) {
                    keeper.add(&mut self.calls[at].kept, name, value)?;
                }
            }
        }
        // The older form, with one call at most.
        let function = &message["function_call"];
        if calls.is_empty() && function.is_object() {
            let fragment = Fragment {
                index: Some(0),
                id: "",
                name: cut(text(&function["name"])),
                arguments: written(given(function)),
            };
            self.add(fragment, whole, tools)?;
        }
        Ok(())
    }

    /// Merges a fragment into its call; returns which that is.
    fn add(
        &mut self,
        fragment: Fragment<'_>,
        whole: bool,
        tools: &[String],
    ) -> Result<usize, Unfit> {
        self.bytes += fragment.name.len() + fragment.arguments.len();
        let found = if whole {
            None
        } else {
            self.find(&fragment, tools)
        };
        let at = match found {
            Some(at) => at,
            None if self.calls.len() == MAX_TOOL_CALLS => {
                return Err(Unfit::TooLarge("it calls more than 128 tools"));
            }
            None => {
                self.calls.push(Building {
                    index: fragment.index,
                    message: self.messages,
                    ..Building::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = storable(fragment.id);
        }
        if fragment.name != call.name && call.name.len() < MAX_NAME_BYTES {
            call.name.push_str(&storable(fragment.name));
        }
        // Some servers begin with empty arguments and then write the real ones.
        if call.arguments.trim() == "{}" && fragment.arguments.trim_start().starts_with('{') {
            call.arguments.clear();
            call.brackets = Brackets::default();
        }
        call.arguments.push_str(&storable(&fragment.arguments));
        call.brackets.push(fragment.arguments.as_bytes());
        Ok(at)
    }

    /// The call that a fragment continues; `None` if it begins one.
    fn find(&self, fragment: &Fragment<'_>, tools: &[String]) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let by_id = || {
            let known = !fragment.id.is_empty();
            let same = |call: &Building| call.id == fragment.id;
            self.calls.iter().rposition(same).filter(|_| known)
        };
        let at = match fragment.index {
            Some(_) => {
                let same = |call: &Building| call.index == fragment.index;
                match self.calls.iter().rposition(same) {
                    Some(at) => at,
                    // The index counts fragments, not calls.
                    None if fragment.name.is_empty() => match by_id() {
                        Some(at) => at,
                        None if fragment.id.is_empty() => last,
                        None => return None,
                    },
                    None => return None,
                }
            }
            None if fragment.id.is_empty() => last,
            None => by_id().unwrap_or(last),
        };
        let call = &self.calls[at];
        (!self.begins(call, fragment, tools)).then_some(at)
    }

    /// Whether a fragment begins another call, although its index or place is that of this one.
    fn begins(&self, call: &Building, fragment: &Fragment<'_>, tools: &[String]) -> bool {
        if fragment.name.is_empty() || call.name.is_empty() {
            return false;
        }
        let has_other_id = !fragment.id.is_empty() && !call.id.is_empty() && fragment.id != call.id;
        if !fragment.id.is_empty() && fragment.id == call.id {
            return fragment.name != call.name && is_named(tools, &call.name);
        }
        if call.brackets.are_closed() {
            // `{}` may be no more than a beginning.
            let is_begun = call.arguments.trim() == "{}" && fragment.name == call.name;
            return !(is_begun && !has_other_id && arguments::begins(&fragment.arguments));
        }
        if !call.arguments.trim().is_empty() {
            return has_other_id && fragment.arguments.trim_start().starts_with('{');
        }
        if fragment.name != call.name {
            // A name may come in pieces.
            let joined = format!("{}{}", call.name, fragment.name);
            return has_other_id || (is_named(tools, &call.name) && !is_named(tools, &joined));
        }
        has_other_id && (call.message == self.messages || fragment.arguments.trim().is_empty())
    }

    /// The calls, with names and arguments as they were meant, and their unknown fields.
    pub(super) fn complete(
        self,
        tools: &[String],
    ) -> Result<(Vec<ToolCall>, UnknownFields), Unfit> {
        let mut joined: Vec<Building> = Vec::new();
        for call in self.calls {
            match joined.last_mut() {
                // Fragments whose index and id both changed.
                Some(last) if call.name.trim().is_empty() => {
                    last.arguments.push_str(&call.arguments);
                    for (name, value) in call.kept {
                        last.kept.entry(name).or_insert(value);
                    }
                }
                _ => joined.push(call),
            }
        }
        if joined.iter().any(|call| call.name.trim().is_empty()) {
            return Err(Unfit::Malformed("a tool call has no name"));
        }
        let mut kept: Vec<Map<String, Value>> = Vec::new();
        let mut calls = Vec::new();
        for (number, call) in joined.into_iter().enumerate() {
            let id = if call.id.is_empty() {
                format!("call_{number}")
            } else {
                call.id
            };
            calls.push(ToolCall {
                id,
                name: arguments::meant_name(&call.name, tools),
                arguments: arguments::meant(call.arguments),
            });
            kept.push(call.kept);
        }
        while kept.last().is_some_and(Map::is_empty) {
            kept.pop();
        }
        Ok((calls, kept))
    }
}

fn is_named(tools: &[String], name: &str) -> bool {
    tools.iter().any(|tool| tool == name)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn index(value: &Value) -> Option<u64> {
    let text = || value.as_str()?.trim().parse().ok();
    // With a decimal point.
    let whole = || value.as_f64()?.to_string().parse().ok();
    value.as_u64().or_else(text).or_else(whole)
}

/// The arguments of a function, wherever they stand.
fn given(function: &Value) -> &Value {
    let places = ARGUMENTS.iter().map(|name| &function[*name]);
    let mut given = places.filter(|value| !value.is_null());
    given.next().unwrap_or(&Value::Null)
}

/// The arguments as text. Some servers send them as an object instead.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        object => object.to_string(),
    }
}

fn cut(text: &str) -> &str {
    beginning(text, MAX_NAME_BYTES)
}
