//! A model provider whose every word the test says: a call waits until it is answered, piece by
//! piece. What happens between two pieces is up to the test, so nothing has to be timed.

use super::PATIENCE;
use crossbeam_channel::{Receiver, unbounded};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The provider. It ends with the test.
pub(crate) struct Puppet {
    listener: TcpListener,
    calls: Receiver<Call>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// A chat completion that was asked for and waits for its answer. Dropped: cut.
pub(crate) struct Call {
    connection: TcpStream,
    /// The path and the query.
    pub(crate) target: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// What was asked.
    pub(crate) body: Value,
    begun: bool,
}

impl Puppet {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (sender, calls) = unbounded();
        let accepting = listener.try_clone().unwrap();
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let accepting = std::thread::spawn(move || {
            for connection in accepting.incoming() {
                let connection = connection.unwrap();
                if ends.load(Ordering::Acquire) {
                    return;
                }
                // One without a whole request is a client that left.
                if let Some(call) = read(connection) {
                    drop(sender.send(call));
                }
            }
        });
        Self {
            listener,
            calls,
            is_over,
            accepting: Some(accepting),
        }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.listener.local_addr().unwrap())
    }

    /// The next call.
    #[track_caller]
    pub(crate) fn call(&self) -> Call {
        self.calls
            .recv_timeout(PATIENCE)
            .expect("the provider was called")
    }

    /// A call that waits, if one does.
    pub(crate) fn waiting(&self) -> Option<Call> {
        self.calls.try_recv().ok()
    }

    /// Whether nobody called and is still waiting.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.listener.local_addr().unwrap()));
        let _ = self.accepting.take().unwrap().join();
    }
}

fn read(connection: TcpStream) -> Option<Call> {
    let request = Request::read(connection)?;
    Some(Call {
        target: request.target,
        headers: request.headers,
        body: request.body,
        connection: request.connection,
        begun: false,
    })
}

/// A request as it came. One a connection: every answer says that it closes.
pub(crate) struct Request {
    pub(crate) connection: TcpStream,
    /// The path and the query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    /// None: the client left.
    pub(crate) fn read(connection: TcpStream) -> Option<Self> {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(&connection);
        let mut first = String::new();
        reader.read_line(&mut first).ok()?;
        let target = first.split(' ').nth(1)?.to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length")?;
        let mut body = vec![0; length.1.parse().unwrap()];
        reader.read_exact(&mut body).ok()?;
        drop(reader);
        Some(Self {
            body: serde_json::from_slice(&body).unwrap(),
            connection,
            target,
            headers,
        })
    }
}

impl Call {
    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Sends an event of the answer.
    pub(crate) fn event(&mut self, event: &Value) {
        if !self.begun {
            self.begun = true;
            self.send(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            );
        }
        self.send(&format!("data: {event}\n\n"));
    }

    fn send(&mut self, text: &str) {
        // A client that left is what some tests are about.
        let _ = self.connection.write_all(text.as_bytes());
    }

    /// Says a piece of text.
    pub(crate) fn say(&mut self, text: &str) -> &mut Self {
        self.event(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
        self
    }

    /// Refuses the call.
    pub(crate) fn refuse(mut self, status: u16, message: &str) {
        let body = json!({"error": {"message": message}}).to_string();
        let length = body.len();
        self.send(&format!(
            "HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ));
    }

    /// Thinks a piece of reasoning.
    pub(crate) fn think(&mut self, text: &str) -> &mut Self {
        self.event(&json!({"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}));
        self
    }

    /// Ends the answer: 10 tokens read, 5 written. Of one that has no words yet it says that it is done, because an empty answer is
    /// asked for again.
    pub(crate) fn finish(mut self) {
        if !self.begun {
            self.say("Done.");
        }
        self.finish_for("stop");
    }

    /// Ends the answer for this reason.
    pub(crate) fn finish_for(mut self, reason: &str) {
        self.event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
        self.event(&json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}));
        self.send("data: [DONE]\n\n");
    }

    /// Waits until the client has closed the connection, and says how long that took.
    #[track_caller]
    pub(crate) fn wait_until_cut(self) -> Duration {
        let began = std::time::Instant::now();
        let read = (&self.connection).read(&mut [0; 16]);
        assert!(
            !matches!(&read, Err(error) if matches!(error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)),
            "the call was cut"
        );
        began.elapsed()
    }
}
