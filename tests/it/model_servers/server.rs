//! A model server that replays recorded bytes, and the form of the recordings.
//!
//! A recording has a part for each request: a head, pieces of a body, `(wait N s)` between them, `RST` where the connection breaks.
//! A piece of a chunked body stands as its chunk; `\xHH` is a byte that is no text. Once the recording is over, or a tool has
//! answered, the server says that it is so.

use crate::harness::{PATIENCE, Request};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    Wait(Duration),
    Reset,
}

/// What is answered to each request: is it refused, by the first part of the recording, as long as the request is like this?
pub(super) type Refuses = fn(&Value) -> bool;

/// How a recording is replayed.
pub(super) struct Script {
    pub(super) parts: Vec<Vec<Piece>>,
    /// The first part answers such requests alone; without it the parts answer one after another.
    pub(super) refuses: Option<Refuses>,
}

/// The server. It ends with the test.
pub(super) struct Replay {
    listener: TcpListener,
    asked: Arc<Mutex<Vec<(Instant, Value)>>>,
    stop: Option<Sender<()>>,
    accepting: Option<JoinHandle<()>>,
}

impl Replay {
    pub(super) fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (stop, stopped) = bounded::<()>(0);
        let asked = Arc::<Mutex<Vec<(Instant, Value)>>>::default();
        let (accepting, kept, script) = (
            listener.try_clone().unwrap(),
            Arc::clone(&asked),
            Arc::new(script),
        );
        let accepting = std::thread::spawn(move || {
            let mut serving = Vec::new();
            for connection in accepting.incoming() {
                if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                    break;
                }
                let (connection, stopped) = (connection.unwrap(), stopped.clone());
                let (script, asked) = (Arc::clone(&script), Arc::clone(&kept));
                serving.push(std::thread::spawn(move || {
                    serve(connection, &script, &asked, &stopped)
                }));
            }
            for one in serving {
                one.join().unwrap();
            }
        });
        Self {
            listener,
            asked,
            stop: Some(stop),
            accepting: Some(accepting),
        }
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.listener.local_addr().unwrap())
    }

    /// When each request came, and what it asked.
    pub(super) fn asked(&self) -> Vec<(Instant, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.stop.take();
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.listener.local_addr().unwrap()));
        let ended = self.accepting.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

fn serve(
    connection: TcpStream,
    script: &Script,
    asked: &Mutex<Vec<(Instant, Value)>>,
    stopped: &Receiver<()>,
) {
    let Some(request) = Request::read(connection.try_clone().unwrap()) else {
        return;
    };
    let before = {
        let mut asked = asked.lock().unwrap();
        asked.push((Instant::now(), request.body.clone()));
        asked.len() - 1
    };
    for piece in answer(script, &request.body, before) {
        match piece {
            Piece::Bytes(bytes) if (&connection).write_all(&bytes).is_err() => return,
            Piece::Bytes(_) => {}
            Piece::Wait(time) => {
                if stopped.recv_timeout(time) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
            Piece::Reset => {
                let socket = socket2::SockRef::from(&connection);
                socket.set_linger(Some(Duration::ZERO)).unwrap();
                return;
            }
        }
    }
}

fn answer(script: &Script, body: &Value, before: usize) -> Vec<Piece> {
    let messages = body["messages"].as_array().unwrap();
    let results: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    match script.refuses {
        Some(refuses) if refuses(body) => script.parts[0].clone(),
        Some(_) => script
            .parts
            .get(1)
            .cloned()
            .unwrap_or_else(|| says(&results)),
        None if results.is_empty() => script
            .parts
            .get(before)
            .cloned()
            .unwrap_or_else(|| says(&results)),
        None => says(&results),
    }
}

/// The last answer: what the tools answered.
fn says(results: &[&str]) -> Vec<Piece> {
    let text = match results {
        [] => "At last.".to_owned(),
        results => format!("It is {}.", results.join(" and ")),
    };
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {chunk}\n\ndata: [DONE]\n\n"
    );
    vec![Piece::Bytes(answer.into_bytes())]
}

/// The parts of a recording. Its waits take so much of their time.
pub(super) fn parts(recording: &str, scale: f64) -> Vec<Vec<Piece>> {
    let parts = recording
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("# "));
    let text: String = parts.collect();
    let parts = text
        .split("--- request ")
        .filter(|part| part.contains("HTTP/"));
    parts
        .map(|part| pieces(&part[part.find("HTTP/").unwrap()..], scale))
        .collect()
}

fn pieces(part: &str, scale: f64) -> Vec<Piece> {
    let (head, body) = part
        .split_once("\r\n\r\n")
        .expect("a head ends with an empty line");
    let is_chunked = head.contains("chunked");
    let mut pieces = vec![Piece::Bytes(format!("{head}\r\n\r\n").into_bytes())];
    let body = body.strip_suffix('\n').unwrap_or(body);
    let mut rest = body
        .strip_prefix('\n')
        .filter(|_| !is_chunked)
        .unwrap_or(body);
    loop {
        let (segment, next) = match rest.split_once("(wait ") {
            Some((segment, next)) => (segment, Some(next)),
            None => (rest, None),
        };
        let (segment, is_reset) = match segment.strip_suffix("RST") {
            Some(segment) => (segment, true),
            None => (segment, false),
        };
        match is_chunked {
            true => pieces.extend(chunks(&bytes(segment)).into_iter().map(Piece::Bytes)),
            false => pieces.push(Piece::Bytes(bytes(
                segment.trim_end_matches(if next.is_some() { "\n" } else { "" }),
            ))),
        }
        if is_reset {
            pieces.push(Piece::Reset);
        }
        let Some((seconds, after)) = next.and_then(|next| next.split_once(" s)")) else {
            return pieces;
        };
        pieces.push(Piece::Wait(
            Duration::from_secs_f64(seconds.parse::<f64>().unwrap() * scale).min(PATIENCE),
        ));
        rest = after.trim_start_matches('\n');
    }
}

/// Chunks as they go over the wire. Between them a recording has line ends of its own.
fn chunks(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut chunks, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        if rest.starts_with(b"\n") {
            continue;
        }
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return chunks;
        };
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(line.split(';').next().unwrap().trim(), 16).unwrap();
        // The last chunk has trailers.
        let length = if size == 0 {
            rest.len()
        } else {
            end + 2 + size + 2
        };
        let length = length.min(rest.len());
        let chunk = if size == 0 {
            rest.strip_suffix(b"\n\n")
                .map_or(rest, |_| &rest[..rest.len() - 1])
        } else {
            &rest[..length]
        };
        chunks.push(chunk.to_vec());
        rest = &rest[length..];
    }
}

/// The bytes of a text in which `\xHH` is a byte.
fn bytes(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
