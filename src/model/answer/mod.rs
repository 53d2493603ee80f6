//! Assembles a model's answer from the pieces of a stream or from one JSON object.
//!
//! Text, reasoning and calls are added once, whatever form a server sends them in. What the service does not know is kept for the
//! provider. All of it is bounded. Not here: whether a tool call's arguments fit the tool.

mod arguments;
mod calls;
mod end;
mod excerpt;
mod kept;
mod thinking;
mod unfit;
mod usage;

pub use end::Finish;
pub use usage::Usage;

pub(super) use unfit::Unfit;

use super::request::{Kept, ToolCall};
use crate::text::beginning;
use calls::Calls;
use end::End;
use excerpt::storable;
use kept::Keeper;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;
use thinking::{Part, Splitter};
use usage::Counted;

/// The longest text, refusal included, and the longest arguments of all calls together.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
/// The longest reasoning for a person to read; the rest is cut.
const MAX_REASONING_BYTES: usize = 4 * 1024 * 1024;
const REASONING_CUT: &str = "… (cut)";
/// Of a provider's word, at most.
const MAX_WORD_CHARS: usize = 100;

/// Fields of a message that are no unknown ones.
const KNOWN: [&str; 5] = ["role", "content", "refusal", "tool_calls", "function_call"];
/// Fields whose text is the model's reasoning; the first one of a piece counts, since some servers send the same in two of them.
const REASONING: [&str; 4] = ["reasoning_content", "reasoning", "thinking", "thought"];
/// Fields with entries of reasoning, which most servers send beside one of the above.
const REASONING_ENTRIES: [&str; 2] = ["reasoning_details", "thinking_blocks"];

/// A piece of an answer as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Of its text.
    Text(&'a str),
    /// Of its reasoning.
    Reasoning(&'a str),
}

/// What takes the pieces.
pub(super) type OnPiece<'a> = &'a mut dyn FnMut(Piece<'_>);

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

/// An answer under assembly.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    tools: Vec<String>,
    text: String,
    splitter: Splitter,
    reasoning: String,
    refusal: String,
    calls: Calls,
    kept: Map<String, Value>,
    keeper: Keeper,
    finish: Option<(End, String)>,
    counted: Counted,
    model: Option<String>,
    begun: bool,
    done: bool,
    /// It came in pieces.
    has_deltas: bool,
    /// The text came in pieces, or at least its beginning.
    has_content: bool,
    /// The text of the whole messages so far, if there are no pieces.
    whole: String,
}

impl Assembly {
    /// Of an answer to a request with these tools.
    pub(super) fn new(tools: Vec<String>) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }

    /// Nothing more is missing: the stream sent `[DONE]`, or the answer is one whole object.
    pub(super) fn done(&mut self) {
        self.done = true;
    }

    /// Whether nothing is missing, except perhaps the usage.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether any part of an answer came.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether what came is no piece.
    pub(super) fn is_whole(&self) -> bool {
        self.begun && !self.has_deltas
    }

    /// The length of what came, to see whether it grows.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.reasoning.len() + self.refusal.len() + self.calls.bytes()
    }

    /// The usage so far.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.counted.usage()
    }

    /// Adds a chunk of a stream or a whole completion. They differ only in `delta` and `message`.
    pub(super) fn take(&mut self, chunk: &Value, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        if !chunk.is_object() {
            return Err(Unfit::Malformed("a JSON object was expected"));
        }
        self.counted.take(chunk);
        if let Some(model) = chunk["model"].as_str().filter(|model| !model.is_empty()) {
            self.model.get_or_insert_with(|| {
                storable(&model.chars().take(MAX_WORD_CHARS).collect::<String>())
            });
        }
        let choices = chunk["choices"].as_array().into_iter().flatten();
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            self.begun = true;
            let (delta, message) = (&choice["delta"], &choice["message"]);
            if delta.as_object().is_some_and(|fields| !fields.is_empty()) {
                self.has_deltas = true;
                self.take_delta(delta, on_piece)?;
            }
            if message.is_object() {
                self.take_whole(message, on_piece)?;
            }
            // The older form of an answer.
            if !delta.is_object() && !message.is_object() {
                self.take_content(&choice["text"], on_piece)?;
            }
            let reasons = [choice, delta, message].map(|place| &place["finish_reason"]);
            let reason = reasons.into_iter().find_map(End::word).unwrap_or("");
            if let Some(end) = End::of(reason) {
                let word = reason.chars().take(MAX_WORD_CHARS).collect::<String>();
                self.finish = Some((end, storable(&word)));
            }
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: &Value, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        self.take_reasoning(delta, on_piece);
        self.take_content(&delta["content"], on_piece)?;
        self.take_refusal(&delta["refusal"])?;
        self.take_calls(delta, false)?;
        for (name, value) in unknown(delta) {
            self.keeper.add(&mut self.kept, name, value)?;
        }
        Ok(())
    }

    /// Adds of a whole message what is missing: all of it if no pieces came. Some servers repeat it, longer each time.
    fn take_whole(&mut self, message: &Value, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        if self.reasoning.is_empty() {
            self.take_reasoning(message, on_piece);
        }
        let content = &message["content"];
        match content.as_str() {
            Some(text) if !self.has_deltas => {
                let more = text.strip_prefix(self.whole.as_str()).unwrap_or(text);
                self.whole.push_str(more);
                self.take_text(more, on_piece)?;
            }
            _ if !self.has_content => self.take_content(content, on_piece)?,
            _ => {}
        }
        if self.refusal.is_empty() {
            self.take_refusal(&message["refusal"])?;
        }
        if self.calls.is_empty() {
            self.take_calls(message, true)?;
        }
        for (name, value) in unknown(message) {
            if !self.kept.contains_key(name) {
                self.keeper.add(&mut self.kept, name, value)?;
            }
        }
        Ok(())
    }

    fn take_content(&mut self, content: &Value, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        match content {
            Value::String(text) => self.take_text(text, on_piece),
            Value::Array(parts) => parts.iter().try_for_each(|part| match part {
                Value::String(text) => self.take_text(text, on_piece),
                part => self.take_content_part(part, on_piece),
            }),
            part => self.take_content_part(part, on_piece),
        }
    }

    /// Text, or reasoning of a kind.
    fn take_content_part(&mut self, part: &Value, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        let kind = part["type"].as_str().unwrap_or("");
        let is_thought = kind.contains("reasoning") || kind.contains("thinking");
        let text = part["text"].as_str().unwrap_or("");
        for place in ["thinking", "summary"].map(|name| &part[name]) {
            let entries = place.as_array().map_or(&[][..], Vec::as_slice);
            let texts = entries.iter().filter_map(|entry| entry["text"].as_str());
            for thought in texts.chain(place.as_str()) {
                self.take_thought(thought, on_piece);
            }
        }
        if is_thought {
            self.take_thought(text, on_piece);
            return Ok(());
        }
        self.take_text(text, on_piece)
    }

    fn take_text(&mut self, text: &str, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        if text.is_empty() {
            return Ok(());
        }
        self.has_content = true;
        for part in self.splitter.push(text) {
            self.take_part(part, on_piece)?;
        }
        Ok(())
    }

    fn take_part(&mut self, part: Part, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        match part {
            Part::Reasoning(thought) => self.take_thought(&thought, on_piece),
            Part::Text(text) => {
                if self.text.len() + text.len() > MAX_TEXT_BYTES {
                    return Err(Unfit::TooLarge("its text is longer than 8 MiB"));
                }
                let text = storable(&text);
                self.text.push_str(&text);
                on_piece(Piece::Text(&text));
            }
        }
        Ok(())
    }

    fn take_reasoning(&mut self, message: &Value, on_piece: OnPiece<'_>) {
        let texts = REASONING.iter().map(|name| &message[*name]);
        let text = texts
            .filter_map(Value::as_str)
            .find(|text| !text.is_empty());
        if let Some(text) = text {
            return self.take_thought(text, on_piece);
        }
        for entries in REASONING_ENTRIES
            .iter()
            .filter_map(|name| message[*name].as_array())
        {
            let places = ["text", "thinking", "summary"];
            let texts = entries
                .iter()
                .filter_map(|entry| places.iter().find_map(|place| entry[*place].as_str()));
            for text in texts {
                self.take_thought(text, on_piece);
            }
        }
    }

    fn take_thought(&mut self, thought: &str, on_piece: OnPiece<'_>) {
        if thought.is_empty() || self.reasoning.ends_with(REASONING_CUT) {
            return;
        }
        let mut thought = storable(thought);
        let room = MAX_REASONING_BYTES.saturating_sub(self.reasoning.len() + REASONING_CUT.len());
        if thought.len() > room {
            thought.truncate(beginning(&thought, room).len());
            thought.push_str(REASONING_CUT);
        }
        self.reasoning.push_str(&thought);
        on_piece(Piece::Reasoning(&thought));
    }

    fn take_refusal(&mut self, refusal: &Value) -> Result<(), Unfit> {
        let text = refusal.as_str().unwrap_or("");
        if self.refusal.len() + text.len() > MAX_TEXT_BYTES {
            return Err(Unfit::TooLarge("its refusal is longer than 8 MiB"));
        }
        self.refusal.push_str(&storable(text));
        Ok(())
    }

    fn take_calls(&mut self, message: &Value, whole: bool) -> Result<(), Unfit> {
        self.calls
            .take(message, whole, &self.tools, &mut self.keeper)?;
        if self.calls.bytes() > MAX_TEXT_BYTES {
            return Err(Unfit::TooLarge(
                "the arguments of its calls are longer than 8 MiB",
            ));
        }
        Ok(())
    }

    /// Says the text that may have been the start of a tag, and tells reasoning without an opening tag from the text.
    pub(super) fn settle(&mut self, on_piece: OnPiece<'_>) -> Result<(), Unfit> {
        if let Some(part) = self.splitter.finish() {
            self.take_part(part, on_piece)?;
        }
        let text = std::mem::take(&mut self.text);
        self.text = match thinking::split_unopened(&text).filter(|_| self.reasoning.is_empty()) {
            Some((thought, rest)) => {
                self.take_thought(thought, &mut |_| {});
                rest.to_owned()
            }
            None => text,
        };
        Ok(())
    }

    /// Whether nothing of an answer has come.
    pub(super) fn is_empty(&self) -> bool {
        !self.begun
    }

    /// Finishes the answer once no more comes.
    pub(super) fn complete(self) -> Result<Completion, Unfit> {
        if !self.begun {
            return Err(Unfit::Silent);
        }
        let finish = match self.finish {
            Some((End::Complete(finish), _)) => Some(finish),
            Some((End::Filtered, _)) => return Err(Unfit::Filtered),
            Some((End::MalformedCall, _)) => return Err(Unfit::Empty(unfit::MALFORMED_CALL)),
            Some((End::Failed, reason)) => return Err(Unfit::Ended(reason)),
            None if self.done => None,
            None => return Err(Unfit::Cut),
        };
        let (tool_calls, calls) = self.calls.complete(&self.tools)?;
        if tool_calls.is_empty() && self.text.trim().is_empty() && self.refusal.trim().is_empty() {
            return Err(Unfit::Empty(match finish {
                Some(Finish::Length) => unfit::CUT_REASONING,
                _ if self.reasoning.is_empty() => unfit::NOTHING,
                _ => unfit::REASONING_ALONE,
            }));
        }
        let finish = match finish {
            Some(Finish::Length) => Finish::Length,
            _ if tool_calls.is_empty() => Finish::Stop,
            _ => Finish::ToolCalls,
        };
        Ok(Completion {
            text: self.text,
            tool_calls,
            finish,
            reasoning: self.reasoning,
            kept: Kept {
                message: self.kept,
                calls,
            },
            refusal: Some(self.refusal).filter(|refusal| !refusal.is_empty()),
            usage: self.counted.usage(),
            model: self.model,
            first_byte: None,
        })
    }
}

/// The fields that the service does not know.
fn unknown(message: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields = message.as_object().into_iter().flatten();
    fields.filter(|(name, _)| !KNOWN.contains(&name.as_str()))
}

#[cfg(test)]
mod tests;
