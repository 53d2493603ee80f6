//! An SSE client of the tests' own, over a plain connection: it reads when it is asked to and not
//! before, so that a test can be a slow reader, one that stops, or one that comes back.

use super::{Answer, Client, PATIENCE};
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// An event as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The `id` line: durable events have one.
    pub(crate) id: Option<i64>,
    /// The `event` line.
    pub(crate) kind: String,
    /// The `data` line, and what is inside a durable event's `data`.
    pub(crate) data: Value,
}

/// What a stream gives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Event(Event),
    Comment,
    Retry(String),
    /// The server ended the answer as HTTP says.
    End,
    /// The connection was cut in the middle of the answer.
    Cut,
}

/// An open stream.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    pub(crate) headers: Vec<(String, String)>,
    /// What was taken out of chunks and is not a whole event yet.
    text: Vec<u8>,
    /// How much of it was looked through for the end of an event.
    searched: usize,
    over: Option<Item>,
}

impl Client {
    /// The path of a run's stream.
    pub(crate) fn stream_of(run_id: &str) -> String {
        format!("/v1/runs/{run_id}/progress/stream")
    }

    /// Follows a run from its first event.
    #[track_caller]
    pub(crate) fn follow(&self, run_id: &str) -> Stream {
        self.open(&Self::stream_of(run_id), &[])
    }

    /// Follows a run over a connection whose kernel keeps little for it.
    #[track_caller]
    pub(crate) fn follow_narrowly(&self, run_id: &str) -> Stream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&self.address().into()).unwrap();
        self.open_on(socket.into(), &Self::stream_of(run_id), &[])
            .unwrap_or_else(|answer| panic!("{answer:?}"))
    }

    /// Follows a run after this event, named by the header.
    #[track_caller]
    pub(crate) fn follow_after(&self, run_id: &str, last_event_id: i64) -> Stream {
        let id = last_event_id.to_string();
        self.open(&Self::stream_of(run_id), &[("last-event-id", &id)])
    }

    #[track_caller]
    pub(crate) fn open(&self, path: &str, headers: &[(&str, &str)]) -> Stream {
        self.try_open(path, headers)
            .unwrap_or_else(|answer| panic!("{path}: {answer:?}"))
    }

    /// A stream, or what was answered in its place.
    pub(crate) fn try_open(&self, path: &str, headers: &[(&str, &str)]) -> Result<Stream, Answer> {
        self.open_on(TcpStream::connect(self.address()).unwrap(), path, headers)
    }

    /// The head of a stream that does not end by itself, or what was answered in its place.
    pub(super) fn begun(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.try_open(path, headers).map_or_else(
            |answer| answer,
            |stream| Answer {
                status: 200,
                headers: stream.headers,
                text: String::new(),
            },
        )
    }

    fn open_on(
        &self,
        mut connection: TcpStream,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Stream, Answer> {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n",
            self.address()
        );
        if !self.token().is_empty() {
            request += &format!("authorization: Bearer {}\r\n", self.token());
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        for (name, value) in &self.standing {
            request += &format!("{name}: {value}\r\n");
        }
        connection
            .write_all(format!("{request}\r\n").as_bytes())
            .unwrap();
        let mut reader = BufReader::with_capacity(64 * 1024, connection);
        let (status, headers) = head(&mut reader);
        let header = |name: &str| {
            headers
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, v)| v.as_str())
        };
        if status == 200 {
            assert_eq!(header("content-type"), Some("text/event-stream"));
            assert_eq!(header("cache-control"), Some("no-store"));
            assert_eq!(header("transfer-encoding"), Some("chunked"));
            return Ok(Stream {
                reader,
                headers,
                text: Vec::new(),
                searched: 0,
                over: None,
            });
        }
        let length = header("content-length").and_then(|length| length.parse().ok());
        let mut text = String::new();
        reader
            .take(length.unwrap_or(0))
            .read_to_string(&mut text)
            .unwrap();
        Err(Answer {
            status,
            headers,
            text,
        })
    }
}

fn head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    (status.unwrap_or(0), headers)
}

impl Stream {
    /// The next of whatever comes.
    #[track_caller]
    pub(crate) fn item(&mut self) -> Item {
        loop {
            if let Some(block) = self.block() {
                match parse(&block) {
                    Some(item) => return item,
                    None => continue,
                }
            }
            if let Some(over) = &self.over {
                return over.clone();
            }
            self.read_chunk();
        }
    }

    /// The next event; none once the stream is over.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Event> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.item() {
                Item::Event(event) => return Some(event),
                Item::Comment | Item::Retry(_) => {}
                Item::End | Item::Cut => return None,
            }
            assert!(
                Instant::now() < deadline,
                "the stream gave no event for too long"
            );
        }
    }

    /// The events up to and with the first of this kind.
    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next() {
            let found = event.kind == kind;
            events.push(event);
            if found {
                return events;
            }
        }
        panic!("the stream ended before {kind}: {events:?}");
    }

    /// The events up to the end of the answer.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next() {
            events.push(event);
        }
        assert_eq!(self.over, Some(Item::End), "after {} events", events.len());
        events
    }

    fn block(&mut self) -> Option<String> {
        let from = std::mem::replace(&mut self.searched, self.text.len().saturating_sub(1));
        let found = self.text[from..]
            .windows(2)
            .position(|pair| pair == b"\n\n");
        let rest = self.text.split_off(from + found? + 2);
        self.searched = 0;
        let block = std::mem::replace(&mut self.text, rest);
        Some(String::from_utf8(block).unwrap())
    }

    #[track_caller]
    fn read_chunk(&mut self) {
        let mut line = String::new();
        let length = match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => usize::from_str_radix(line.trim(), 16).ok(),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                panic!("the stream gave nothing for too long");
            }
            Err(_) => None,
        };
        let Some(length) = length else {
            self.over = Some(Item::Cut);
            return;
        };
        let mut chunk = vec![0; length + 2];
        if self.reader.read_exact(&mut chunk).is_err() {
            self.over = Some(Item::Cut);
            return;
        }
        chunk.truncate(length);
        self.text.extend(chunk);
        if length == 0 {
            self.over = Some(Item::End);
        }
    }
}

fn parse(block: &str) -> Option<Item> {
    let mut event = Event {
        id: None,
        kind: String::new(),
        data: Value::Null,
    };
    let mut is_event = false;
    for line in block.lines().filter(|line| !line.is_empty()) {
        if line.starts_with(':') {
            return Some(Item::Comment);
        }
        let (field, value) = line.split_once(": ").unwrap_or((line, ""));
        match field {
            "id" => event.id = Some(value.parse().unwrap()),
            "event" => value.clone_into(&mut event.kind),
            "data" => {
                event.data = serde_json::from_str(value).unwrap();
                is_event = true;
            }
            "retry" => return Some(Item::Retry(value.to_owned())),
            other => panic!("an unknown field {other:?} in {block:?}"),
        }
    }
    is_event.then_some(Item::Event(event))
}

/// The durable events among these, as `number kind`.
pub(crate) fn durable(events: &[Event]) -> Vec<(i64, String)> {
    events
        .iter()
        .filter_map(|event| Some((event.id?, event.kind.clone())))
        .collect()
}

/// Checks that the durable events are numbered from `first` without gap or repetition.
#[track_caller]
pub(crate) fn check_order(events: &[Event], first: i64) {
    let ids: Vec<i64> = events.iter().filter_map(|event| event.id).collect();
    let expected: Vec<i64> = (first..).take(ids.len()).collect();
    assert_eq!(ids, expected, "{events:?}");
    for event in events.iter().filter(|event| event.id.is_some()) {
        assert_eq!(event.data["seq"].as_i64(), event.id, "{event:?}");
        assert_eq!(event.data["kind"], event.kind.as_str(), "{event:?}");
    }
}

/// The streamed text of one attempt of a step, its pieces checked to follow one another.
#[track_caller]
pub(crate) fn text_of(events: &[Event], step: i64, attempt: i64) -> String {
    let mut text = String::new();
    for event in events.iter().filter(|event| event.kind == "text.delta") {
        assert_eq!(event.id, None);
        if event.data["step"] == step && event.data["attempt"] == attempt {
            let had = i64::try_from(text.chars().count()).unwrap();
            assert_eq!(event.data["offset"], had, "{events:?}");
            text += event.data["text"].as_str().unwrap();
        }
    }
    text
}

/// Why the stream ended: its last event.
#[track_caller]
pub(crate) fn end_of(events: &[Event]) -> &str {
    let last = events.last().expect("an event");
    assert_eq!((last.kind.as_str(), last.id), ("stream.end", None));
    last.data["reason"].as_str().unwrap()
}
