//! Reads the body of an answer: an event stream, one JSON object, or objects in a row.
//!
//! Each part's first byte decides what it is, whatever the content type claims. Parts and their number are bounded, and what is kept
//! of them. Not here: what an answer is made of, which is `answer`'s.

use super::answer::{Assembly, Completion, Piece, Unfit, Usage};
use super::failure::Hidden;
use super::json::{self, Brackets, Unread};
use super::{ModelFailure, sse};
use crate::outbound::Stream;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The longest start of a body that has nothing but blanks.
const MAX_BLANK_BYTES: usize = 64 * 1024;
/// The longest JSON text.
const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;
/// How much of a body is shown that is no answer.
const START_BYTES: usize = 512;
/// How long the usage and the end of a stream may take once the answer is complete.
const END_TIME: Duration = Duration::from_secs(1);
/// How long the end of a body may take after the stream's own end, so that its connection can be reused.
const FINISH_TIME: Duration = Duration::from_millis(20);

type OnPiece<'a> = &'a mut dyn FnMut(Piece<'_>);

/// An answer while it is read.
pub(super) struct Reading<'a> {
    shape: Shape,
    assembly: Assembly,
    hidden: Hidden<'a>,
    status: u16,
    first_byte_at: Option<Instant>,
    /// JSON texts that stand by themselves.
    texts: usize,
    /// The beginning of the body.
    start: Vec<u8>,
    /// The first value that is no part of an answer.
    other: Option<Value>,
}

/// The form of what is read.
enum Shape {
    /// Bytes after so many blanks.
    Unknown {
        start: Vec<u8>,
        blanks: usize,
    },
    Events(sse::Parser),
    Json {
        text: Vec<u8>,
        brackets: Brackets,
    },
}

impl Default for Shape {
    fn default() -> Self {
        Self::Unknown {
            start: Vec::new(),
            blanks: 0,
        }
    }
}

impl<'a> Reading<'a> {
    /// Of an answer to a request with these tools.
    pub(super) fn new(hidden: Hidden<'a>, status: u16, tools: Vec<String>) -> Self {
        Self {
            shape: Shape::default(),
            assembly: Assembly::new(tools),
            hidden,
            status,
            first_byte_at: None,
            texts: 0,
            start: Vec::new(),
            other: None,
        }
    }

    /// Reads the whole body. Returns the answer, the usage even of a failed call, and when the first byte arrived.
    pub(super) fn whole(
        mut self,
        stream: Stream,
        on_piece: OnPiece<'_>,
    ) -> (
        Result<Completion, ModelFailure>,
        Option<Usage>,
        Option<Instant>,
    ) {
        let read = self.read(stream, on_piece);
        let usage = self.assembly.usage();
        let first_byte_at = self.first_byte_at;
        let completed = read.and_then(|()| self.complete(on_piece));
        (completed, usage, first_byte_at)
    }

    fn complete(mut self, on_piece: OnPiece<'_>) -> Result<Completion, ModelFailure> {
        let settled = self.assembly.settle(on_piece);
        let completed = settled.and_then(|()| self.assembly.complete());
        completed.map_err(|unfit| unfit.failure())
    }

    fn read(&mut self, mut stream: Stream, on_piece: OnPiece<'_>) -> Result<(), ModelFailure> {
        let mut buffer = [0; 8 * 1024];
        let mut complete_at = None;
        loop {
            let amount = match stream.read(&mut buffer) {
                Ok(amount) => amount,
                Err(failure) => {
                    // What came whole counts, even if no blank line follows it. An answer that lost only its final usage is
                    // complete.
                    let rest = self.end_events(on_piece);
                    return match failure.is_transient() && self.assembly.is_finished() {
                        true => rest,
                        false => Err(ModelFailure {
                            is_silent: failure.is_transient()
                                && failure.limit().is_none()
                                && self.assembly.is_empty(),
                            ..ModelFailure::transport(&failure)
                        }),
                    };
                }
            };
            self.first_byte_at.get_or_insert_with(Instant::now);
            if amount == 0 {
                return self.end(on_piece);
            }
            if self.take(&buffer[..amount], on_piece)? {
                stream.finish(FINISH_TIME);
                return Ok(());
            }
            // Some servers leave the connection open, or send pings.
            let length = self.assembly.bytes();
            if self.assembly.is_finished() && complete_at.replace(length) != Some(length) {
                stream.end_within(END_TIME);
            }
        }
    }

    /// Adds bytes; `true` once the answer is complete.
    fn take(&mut self, bytes: &[u8], on_piece: OnPiece<'_>) -> Result<bool, ModelFailure> {
        let room = START_BYTES.saturating_sub(self.start.len());
        self.start
            .extend_from_slice(&bytes[..room.min(bytes.len())]);
        let mut rest = bytes.to_vec();
        loop {
            match &mut self.shape {
                Shape::Unknown { start, .. } => {
                    start.extend_from_slice(&rest);
                    match self.begin()? {
                        Some(begun) => rest = begun,
                        None => return Ok(false),
                    }
                }
                Shape::Events(parser) => {
                    let too_long = |sse::TooLong| {
                        Unfit::TooLarge("one of its events is longer than 16 MiB").failure()
                    };
                    let events = parser.push(&rest).map_err(too_long)?;
                    for event in events {
                        if self.take_event(&event, on_piece)? {
                            return Ok(true);
                        }
                    }
                    return Ok(false);
                }
                Shape::Json { text, brackets } => {
                    let closed = brackets.close_in(&rest);
                    let end = closed.unwrap_or(rest.len());
                    text.extend_from_slice(&rest[..end]);
                    if text.len() > MAX_JSON_BYTES {
                        return Err(Unfit::TooLarge("it is longer than 16 MiB").failure());
                    }
                    if closed.is_none() {
                        return Ok(false);
                    }
                    let text = std::mem::take(text);
                    self.shape = Shape::default();
                    if self.take_json(&text, on_piece)? {
                        return Ok(true);
                    }
                    rest.drain(..end);
                }
            }
        }
    }

    /// Decides what begins, and returns its bytes; `None` once more bytes are needed.
    fn begin(&mut self) -> Result<Option<Vec<u8>>, ModelFailure> {
        let Shape::Unknown { start, blanks } = &mut self.shape else {
            return Ok(None);
        };
        let text = start.trim_ascii_start();
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = text.trim_ascii_start();
        let shape = match text.first() {
            None => {
                *blanks += start.len();
                start.clear();
                if *blanks > MAX_BLANK_BYTES {
                    let unfit = Unfit::Malformed("it begins with nothing but blanks");
                    return Err(unfit.failure());
                }
                return Ok(None);
            }
            // A byte order mark may arrive in pieces.
            Some(0xef) if text.len() < 3 => return Ok(None),
            Some(b'<') if !self.assembly.has_begun() => {
                return Err(ModelFailure::web_page(self.status));
            }
            Some(b'{' | b'[' | b'"') => Shape::Json {
                text: Vec::new(),
                brackets: Brackets::default(),
            },
            Some(_) => Shape::Events(sse::Parser::default()),
        };
        let text = text.to_vec();
        self.shape = shape;
        Ok(Some(text))
    }

    /// Adds a JSON text that stands by itself.
    fn take_json(&mut self, text: &[u8], on_piece: OnPiece<'_>) -> Result<bool, ModelFailure> {
        if text.trim_ascii() == b"[DONE]" {
            self.assembly.done();
            return Ok(true);
        }
        self.texts += 1;
        match json::parse(&String::from_utf8_lossy(text)) {
            Ok(Value::Array(values)) if values.first().is_some_and(Value::is_object) => {
                let mut values = values.iter();
                values.try_for_each(|value| self.take_value(value, on_piece))?;
            }
            Ok(value) => self.take_value(&value, on_piece)?,
            Err(unread) => return Err(unfit(unread, "it is not valid JSON").failure()),
        }
        Ok(false)
    }

    fn take_event(
        &mut self,
        event: &sse::Event,
        on_piece: OnPiece<'_>,
    ) -> Result<bool, ModelFailure> {
        let data = event.data.trim_ascii();
        if data == "[DONE]" {
            self.assembly.done();
            return Ok(true);
        }
        if data.is_empty() {
            return Ok(false);
        }
        let value = match json::parse(data) {
            Ok(value) => value,
            Err(_) if event.name == "error" => json!({"error": event.data}),
            Err(Unread::Invalid) if !data.starts_with(['{', '[']) => {
                let what = "one of its events is not JSON";
                return Err(ModelFailure::no_answer(what, data, self.hidden));
            }
            Err(unread) => return Err(unfit(unread, "one of its events is not JSON").failure()),
        };
        let value =
            match event.name == "error" && ModelFailure::inside(&value, self.hidden).is_none() {
                true => json!({"error": value}),
                false => value,
            };
        self.take_value(&value, on_piece)?;
        Ok(false)
    }

    fn take_value(&mut self, value: &Value, on_piece: OnPiece<'_>) -> Result<(), ModelFailure> {
        if let Some(failure) = ModelFailure::inside(value, self.hidden) {
            return Err(failure);
        }
        if !value.is_object() {
            let what = "a JSON object was expected";
            return Err(ModelFailure::no_answer_in(what, value, self.hidden));
        }
        if !self.assembly.has_begun() && value["choices"].is_null() {
            self.other.get_or_insert_with(|| value.clone());
        }
        let taken = self.assembly.take(value, on_piece);
        taken.map_err(|unfit| unfit.failure())
    }

    /// Ends the body.
    fn end(&mut self, on_piece: OnPiece<'_>) -> Result<(), ModelFailure> {
        self.end_events(on_piece)?;
        if let Shape::Json { text, .. } = &mut self.shape
            && !self.assembly.is_finished()
        {
            let text = std::mem::take(text);
            self.take_json(&text, on_piece)?;
        }
        if !self.assembly.has_begun() {
            self.no_answer()?;
        }
        // One whole object is complete even if it does not say why it ended.
        if self.texts == 1 && self.assembly.is_whole() {
            self.assembly.done();
        }
        Ok(())
    }

    /// What came in place of an answer, if anything came.
    fn no_answer(&self) -> Result<(), ModelFailure> {
        if let Some(other) = &self.other {
            let what = "it has no choices";
            return Err(ModelFailure::no_answer_in(what, other, self.hidden));
        }
        if self.texts > 0 {
            return Err(Unfit::Malformed("it has no choices").failure());
        }
        let start = String::from_utf8_lossy(&self.start);
        let is_field = |line: &str| {
            let fields = [":", "data", "event", "id", "retry", "error", "{"];
            fields.iter().any(|field| line.starts_with(field))
        };
        let mut lines = start.trim_ascii().lines();
        match lines.any(is_field) || start.trim_ascii().is_empty() {
            true => Ok(()),
            false => Err(ModelFailure::no_answer("it is text", &start, self.hidden)),
        }
    }

    /// Ends an event stream. Its last event may be cut off, and then does not count.
    fn end_events(&mut self, on_piece: OnPiece<'_>) -> Result<(), ModelFailure> {
        let Shape::Events(parser) = &mut self.shape else {
            return Ok(());
        };
        for event in parser.finish() {
            let data = event.data.trim_ascii();
            let is_whole = data == "[DONE]" || json::parse(data).is_ok();
            if is_whole && self.take_event(&event, on_piece)? {
                break;
            }
        }
        Ok(())
    }
}

fn unfit(unread: Unread, invalid: &'static str) -> Unfit {
    match unread {
        Unread::TooMany => Unfit::TooLarge("it has more than 500,000 JSON values"),
        Unread::Invalid => Unfit::Malformed(invalid),
    }
}

#[cfg(any(test, feature = "fuzz"))]
pub(super) mod any_bytes;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod tests;
