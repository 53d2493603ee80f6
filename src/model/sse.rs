//! An incremental parser of event streams, as specified in the WHATWG HTML standard.
//!
//! Input may be split anywhere. Lines end with LF, CR or CRLF. A byte order mark, comments, `id`
//! and `retry` are ignored. Lines and events are bounded.
//!
//! Two forms that model servers send, and the standard does not have, are read as they are meant. Where the data of an event is whole
//! JSON, a further data line begins another event: some servers end an event with a single line end. A line that begins with a
//! bracket is data without its name.

use super::json::Brackets;

/// The longest line and the longest event, in bytes.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// A parser of one stream.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    data: String,
    /// Of the data.
    brackets: Brackets,
    name: String,
    past_first_line: bool,
    after_return: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The `event` field; empty when there was none, which means `message`.
    pub(crate) name: String,
    /// The `data` lines, joined by line feeds.
    pub(crate) data: String,
}

/// A line or an event exceeds the bound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Parser {
    /// Adds bytes, and returns the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, next) = rest.split_at(end.unwrap_or(rest.len()));
            self.line.extend_from_slice(line);
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
                return Err(TooLong);
            }
            rest = next;
            if let Some(&end) = next.first() {
                self.after_return = end == b'\r';
                rest = &next[1..];
                events.extend(self.end_line());
            }
        }
        Ok(events)
    }

    /// Returns the event at the stream's end that no blank line follows. It may be cut off.
    pub(crate) fn finish(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            events.extend(self.end_line());
        }
        events.extend(self.dispatch());
        events
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut line = &line[..];
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let is_bare = line.starts_with(b"{");
        let (field, value) = match colon {
            _ if is_bare => (&b"data"[..], line),
            colon => line.split_at(colon.unwrap_or(line.len())),
        };
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let before = self
                    .brackets
                    .are_closed()
                    .then(|| self.dispatch())
                    .flatten();
                self.brackets.push(value);
                self.data.push_str(&String::from_utf8_lossy(value));
                self.data.push('\n');
                return before;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // As older servers of llama.cpp say one.
            b"error" => {
                self.name = "error".to_owned();
                self.brackets.push(value);
                self.data.push_str(&String::from_utf8_lossy(value));
                self.data.push('\n');
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        self.brackets = Brackets::default();
        // An event without a data line is ignored, whatever its name.
        data.pop()?;
        Some(Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &[u8]) -> Vec<(String, String)> {
        let events = Parser::default().push(text).unwrap();
        events.into_iter().map(|e| (e.name, e.data)).collect()
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(n, d)| ((*n).to_owned(), (*d).to_owned()))
            .collect();
        assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn the_standards_forms_are_read() {
        check("data: a\n\n", &[("", "a")]);
        check("data:a\r\rdata:b\r\n\r\n", &[("", "a"), ("", "b")]);
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("data: a\n\n\u{feff}data: b\n\n", &[("", "a")]);
        check("data: a\ndata: b\ndata\n\n", &[("", "a\nb\n")]);
        check("data:  two spaces\n\n", &[("", " two spaces")]);
        check(": comment\n\nevent: ping\n\ndata: x\n\n", &[("", "x")]);
        check(
            "event: error\ndata: {}\nid: 4\nretry: 9\n\n",
            &[("error", "{}")],
        );
        check(
            "event: once\ndata: a\n\ndata: b\n\n",
            &[("once", "a"), ("", "b")],
        );
        check("data\n\n", &[("", "")]);
        check("data: cut off", &[]);
        check("data: cut off\n", &[]);
        check("datax: no\n data: no\n\n", &[]);
    }

    #[test]
    fn events_with_a_single_line_end_are_told_apart() {
        check(
            "data: {\"a\":1}\ndata: [2]\ndata: [DONE]\n\n",
            &[("", "{\"a\":1}"), ("", "[2]"), ("", "[DONE]")],
        );
        check("data: {\ndata: }\n\n", &[("", "{\n}")]);
        check("data: \"}\"\ndata: {\n\n", &[("", "\"}\"\n{")]);
        check(
            "data: 1\n\n{\"error\":2}\n\n",
            &[("", "1"), ("", "{\"error\":2}")],
        );
    }

    #[test]
    fn an_event_at_the_end_needs_no_blank_line() {
        for (text, last) in [
            ("data: a\n\ndata: b", &["b"][..]),
            ("data: a\n\ndata: b\n", &["b"]),
            ("data: a\n\n", &[]),
            ("data: [1]\ndata: [2]", &["[1]", "[2]"]),
        ] {
            let mut parser = Parser::default();
            parser.push(text.as_bytes()).unwrap();
            let events: Vec<String> = parser.finish().into_iter().map(|e| e.data).collect();
            assert_eq!(events, last, "{text:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let events = parse(b"data: a\xffb\n\n");
        assert_eq!(events[0].1, "a\u{fffd}b");
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(&vec![b'a'; MAX_EVENT_BYTES + 1]), Err(TooLong));
        let mut parser = Parser::default();
        let line = format!("data: {}\n", "a".repeat(1024));
        let outcome = (0..20_000).try_for_each(|_| parser.push(line.as_bytes()).map(drop));
        assert_eq!(outcome, Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("data: x"), Just("data"), Just(":c"), Just("event: e"), Just("é€😀"),
                    Just("\n"), Just("\r"), Just("\r\n"), Just("\n\n"), Just(" "), Just("\u{feff}"),
                ],
                0..40,
            ),
            cuts in prop::collection::vec(0_usize..200, 0..20),
        ) {
            let text = pieces.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut parser = Parser::default();
            let mut split = Vec::new();
            for pair in cuts.windows(2) {
                split.extend(parser.push(&text[pair[0]..pair[1]]).unwrap());
            }
            let split: Vec<_> = split.into_iter().map(|e| (e.name, e.data)).collect();
            prop_assert_eq!(split, parse(&text));
        }
    }
}
