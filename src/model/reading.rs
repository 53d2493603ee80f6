//! Reads the body of an answer: an event stream, or one JSON object.
//!
//! Not here: what an answer is made of, which is `answer`'s.

use super::answer::{Assembly, Completion, Unfit, Usage};
use super::{ModelFailure, sse};
use crate::outbound::Stream;
use crate::secret::Secret;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The longest start of a body that has nothing but blanks.
const MAX_BLANK_BYTES: usize = 64 * 1024;
/// How long a complete answer may take to end, so that its connection can be reused.
const FINISH_TIME: Duration = Duration::from_millis(20);

/// An answer while it is read.
pub(super) struct Reading<'a> {
    shape: Shape,
    assembly: Assembly,
    key: Option<&'a Secret>,
    status: u16,
    first_byte_at: Option<Instant>,
}

/// The kind of body. Its first byte decides, whatever its content type claims.
enum Shape {
    Unknown(Vec<u8>),
    Events(sse::Parser),
    Json(Vec<u8>),
}

impl<'a> Reading<'a> {
    pub(super) fn new(key: Option<&'a Secret>, status: u16) -> Self {
        Self {
            shape: Shape::Unknown(Vec::new()),
            assembly: Assembly::default(),
            key,
            status,
            first_byte_at: None,
        }
    }

    /// Reads the whole body. Returns the answer, the usage even of a failed call, and when the first byte arrived.
    pub(super) fn whole(
        mut self,
        stream: Stream,
        on_text: &mut dyn FnMut(&str),
    ) -> (
        Result<Completion, ModelFailure>,
        Option<Usage>,
        Option<Instant>,
    ) {
        let read = self.read(stream, on_text);
        let usage = self.assembly.usage();
        let completed = read.and_then(|()| {
            let unfit = |unfit| ModelFailure::unfit(&unfit);
            self.assembly.complete().map_err(unfit)
        });
        (completed, usage, self.first_byte_at)
    }

    fn read(
        &mut self,
        mut stream: Stream,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), ModelFailure> {
        let mut buffer = [0; 8 * 1024];
        loop {
            let amount = match stream.read(&mut buffer) {
                Ok(amount) => amount,
                // An answer that lost only its final usage is still complete.
                Err(failure) if self.assembly.is_finished() && failure.is_transient() => {
                    return Ok(());
                }
                Err(failure) => return Err(ModelFailure::transport(&failure)),
            };
            self.first_byte_at.get_or_insert_with(Instant::now);
            if amount == 0 {
                return self.end(on_text);
            }
            if self.take(&buffer[..amount], on_text)? {
                stream.finish(FINISH_TIME);
                return Ok(());
            }
        }
    }

    /// Adds bytes; `true` once the answer is complete.
    fn take(&mut self, bytes: &[u8], on_text: &mut dyn FnMut(&str)) -> Result<bool, ModelFailure> {
        match &mut self.shape {
            Shape::Json(body) => body.extend_from_slice(bytes),
            Shape::Events(parser) => {
                let events = parser.push(bytes).map_err(|sse::TooLong| {
                    ModelFailure::unfit(&Unfit::TooLarge("one of its events is longer than 4 MiB"))
                })?;
                for event in events {
                    if self.take_event(&event, on_text)? {
                        return Ok(true);
                    }
                }
            }
            Shape::Unknown(start) => {
                start.extend_from_slice(bytes);
                let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
                let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
                let shape = match first {
                    None if start.len() > MAX_BLANK_BYTES => {
                        let unfit = Unfit::Malformed("it begins with nothing but blanks");
                        return Err(ModelFailure::unfit(&unfit));
                    }
                    None => return Ok(false),
                    // A byte order mark may arrive in pieces.
                    Some(0xef) if text.len() < 3 => return Ok(false),
                    Some(b'<') => return Err(ModelFailure::web_page(self.status)),
                    Some(b'{' | b'[' | b'"') => Shape::Json(Vec::new()),
                    Some(_) => Shape::Events(sse::Parser::default()),
                };
                let text = text.to_vec();
                self.shape = shape;
                return self.take(&text, on_text);
            }
        }
        Ok(false)
    }

    fn take_event(
        &mut self,
        event: &sse::Event,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<bool, ModelFailure> {
        if event.data.trim_ascii() == "[DONE]" {
            self.assembly.done();
            return Ok(true);
        }
        if event.data.trim_ascii().is_empty() {
            return Ok(false);
        }
        let value: Value = match serde_json::from_str(&event.data) {
            Ok(value) => value,
            Err(_) if event.name == "error" => serde_json::json!({"error": event.data}),
            Err(_) => {
                let unfit = Unfit::Malformed("one of its events is not JSON");
                return Err(ModelFailure::unfit(&unfit));
            }
        };
        self.take_value(&value, on_text)?;
        Ok(false)
    }

    fn take_value(
        &mut self,
        value: &Value,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), ModelFailure> {
        if let Some(failure) = ModelFailure::inside(value, self.key) {
            return Err(failure);
        }
        let taken = self.assembly.take(value, on_text);
        taken.map_err(|unfit| ModelFailure::unfit(&unfit))
    }

    /// Ends the body.
    fn end(&mut self, on_text: &mut dyn FnMut(&str)) -> Result<(), ModelFailure> {
        let Shape::Json(body) = &self.shape else {
            return Ok(());
        };
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| ModelFailure::unfit(&Unfit::Malformed("it is not valid JSON")))?;
        self.take_value(&value, on_text)
    }
}

#[cfg(test)]
mod tests;
