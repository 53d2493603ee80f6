//! Assembles a model's answer from the pieces of a stream or from one JSON object.
//!
//! Not here: whether a tool call's arguments are JSON that fits the tool.

use super::request::{Kept, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
const MAX_TOOL_CALLS: usize = 128;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The text; empty if the model only called tools.
    pub text: String,
    /// The calls of tools, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// Why the answer ended.
    pub finish: Finish,
    /// Its reasoning, for a person to read; empty if the provider shows none.
    #[serde(default)]
    pub reasoning: String,
    /// What the provider is handed back within the turn.
    #[serde(default)]
    pub kept: Kept,
    /// The refusal, if the model refused.
    pub refusal: Option<String>,
    /// Tokens, if the provider counts them.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// How long the first byte of the answer's body took.
    pub first_byte: Option<Duration>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Finish {
    /// The model finished.
    Stop,
    /// The answer reached its maximum length and is cut off.
    Length,
    /// The model called tools.
    ToolCalls,
    /// A reason of the provider's own.
    Other(String),
}

/// Tokens of a call, as the provider counts them. A count that is missing is `None`, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub prompt: Option<u64>,
    /// Tokens of the answer, reasoning included.
    pub completion: Option<u64>,
    /// Tokens of the request read from the provider's cache.
    pub cache_read: Option<u64>,
    /// Tokens of the request written to the provider's cache.
    pub cache_write: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Parses a `usage` object; `None` if it has no counts.
    fn read(value: &Value) -> Option<Self> {
        let prompt = &value["prompt_tokens_details"];
        let written = prompt["cache_write_tokens"].as_u64();
        let usage = Self {
            prompt: value["prompt_tokens"].as_u64(),
            completion: value["completion_tokens"].as_u64(),
            cache_read: prompt["cached_tokens"].as_u64(),
            cache_write: written.or_else(|| value["cache_creation_input_tokens"].as_u64()),
            reasoning: value["completion_tokens_details"]["reasoning_tokens"].as_u64(),
        };
        (usage != Self::default()).then_some(usage)
    }
}

/// Why an answer cannot be assembled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It has too much text or too many calls.
    TooLarge(&'static str),
    /// It does not have the shape of a chat completion.
    Malformed(&'static str),
    /// The provider's content filter stopped it.
    Filtered,
    /// It ended early.
    Cut,
}

/// An answer under assembly.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    refusal: String,
    calls: Vec<Building>,
    finish: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    begun: bool,
    done: bool,
}

#[derive(Debug)]
struct Building {
    index: Option<u64>,
    call: ToolCall,
}

impl Assembly {
    /// The stream sent `[DONE]`.
    pub(super) fn done(&mut self) {
        self.done = true;
    }

    /// Whether nothing is missing, except perhaps the usage.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The usage so far.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Adds a chunk of a stream or a whole completion. They differ only in `delta` and `message`.
    pub(super) fn take(
        &mut self,
        chunk: &Value,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), Unfit> {
        if !chunk.is_object() {
            return Err(Unfit::Malformed("a JSON object was expected"));
        }
        if let Some(usage) = Usage::read(&chunk["usage"]) {
            self.usage = Some(usage);
        }
        if let Some(model) = chunk["model"].as_str().filter(|model| !model.is_empty()) {
            self.model.get_or_insert_with(|| model.to_owned());
        }
        let choices = chunk["choices"].as_array().into_iter().flatten();
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            self.begun = true;
            let whole = choice.get("message").filter(|message| message.is_object());
            self.take_message(whole.unwrap_or(&choice["delta"]), whole.is_some(), on_text)?;
            if let Some(reason) = choice["finish_reason"].as_str() {
                self.finish = Some(reason.to_owned());
            }
        }
        Ok(())
    }

    fn take_message(
        &mut self,
        message: &Value,
        whole: bool,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), Unfit> {
        match &message["content"] {
            Value::String(text) => self.take_text(text, on_text)?,
            Value::Array(parts) => {
                for text in parts.iter().filter_map(|part| part["text"].as_str()) {
                    self.take_text(text, on_text)?;
                }
            }
            _ => {}
        }
        if let Some(text) = message["refusal"].as_str() {
            if self.refusal.len() + text.len() > MAX_TEXT_BYTES {
                return Err(Unfit::TooLarge("its refusal is longer than 8 MiB"));
            }
            self.refusal.push_str(&storable(text));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.take_call(call, whole)?;
        }
        Ok(())
    }

    fn take_text(&mut self, text: &str, on_text: &mut dyn FnMut(&str)) -> Result<(), Unfit> {
        if text.is_empty() {
            return Ok(());
        }
        if self.text.len() + text.len() > MAX_TEXT_BYTES {
            return Err(Unfit::TooLarge("its text is longer than 8 MiB"));
        }
        let text = storable(text);
        self.text.push_str(&text);
        on_text(&text);
        Ok(())
    }

    /// Merges a fragment into its call. Providers differ: the index may be missing or the same for
    /// several calls, which then differ by id, and the name may come whole several times.
    fn take_call(&mut self, fragment: &Value, whole: bool) -> Result<(), Unfit> {
        let index = fragment["index"].as_u64();
        let id = fragment["id"].as_str().unwrap_or("");
        let found = match index {
            _ if whole => None,
            Some(_) => self.calls.iter().rposition(|b| b.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|b| b.call.id == id),
        };
        let is_same = |b: &Building| id.is_empty() || b.call.id.is_empty() || b.call.id == id;
        let at = match found.filter(|at| is_same(&self.calls[*at])) {
            Some(at) => at,
            None if self.calls.len() == MAX_TOOL_CALLS => {
                return Err(Unfit::TooLarge("it calls more than 128 tools"));
            }
            None => {
                let (id, name, arguments) = Default::default();
                let call = ToolCall {
                    id,
                    name,
                    arguments,
                };
                self.calls.push(Building { index, call });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at].call;
        if call.id.is_empty() {
            call.id = storable(id);
        }
        let function = &fragment["function"];
        if let Some(name) = function["name"].as_str().filter(|name| *name != call.name) {
            call.name.push_str(&storable(name));
        }
        match &function["arguments"] {
            Value::String(text) => call.arguments.push_str(&storable(text)),
            Value::Null => {}
            // Some servers send the arguments as an object instead of as its text.
            object => call.arguments.push_str(&object.to_string()),
        }
        Ok(())
    }

    /// Finishes the answer once no more comes.
    pub(super) fn complete(self) -> Result<Completion, Unfit> {
        if !self.begun || !(self.done || self.finish.is_some()) {
            return Err(Unfit::Cut);
        }
        if self.finish.as_deref() == Some("content_filter") {
            return Err(Unfit::Filtered);
        }
        let mut tool_calls: Vec<ToolCall> = self.calls.into_iter().map(|b| b.call).collect();
        if tool_calls.iter().any(|call| call.name.is_empty()) {
            return Err(Unfit::Malformed("a tool call has no name"));
        }
        for (index, call) in tool_calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{index}");
            }
        }
        let finish = match self.finish.as_deref() {
            Some("length") => Finish::Length,
            Some("tool_calls" | "function_call") => Finish::ToolCalls,
            None | Some("stop") if !tool_calls.is_empty() => Finish::ToolCalls,
            None | Some("stop") => Finish::Stop,
            Some(other) => Finish::Other(other.chars().take(100).collect()),
        };
        Ok(Completion {
            text: self.text,
            tool_calls,
            finish,
            reasoning: String::new(),
            kept: Kept::default(),
            refusal: Some(self.refusal).filter(|refusal| !refusal.is_empty()),
            usage: self.usage,
            model: self.model,
            first_byte: None,
        })
    }
}

/// The text without NUL, which PostgreSQL cannot store.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests;
