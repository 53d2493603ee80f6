//! A receiver of webhooks that answers as the test says and keeps what it was sent.

use crate::harness::eventually;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What was sent.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or_else(|| panic!("no {name}: {self:?}"), |(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// What the receiver does once it has read a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// This status, with headers and a body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// Nothing comes, and the connection stays open.
    Hang,
    /// The connection is reset.
    Reset,
    /// A good head, then a byte of the body now and then, without end.
    Drip,
    /// A good head, then more and more.
    Endless,
    /// A byte of the head now and then.
    DripHead,
    /// What is not HTTP.
    Garbage,
    /// 200 once the channel disconnects.
    Held(crossbeam_channel::Receiver<()>),
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self::Status(status, Vec::new(), String::new())
    }
}

/// The receiver. It ends with the test.
pub(crate) struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Receiver {
    /// `answer` is given what was sent and how much came before it.
    pub(crate) fn start(
        answer: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (kept, answer) = (received.clone(), Arc::new(answer));
        let accepting = std::thread::spawn(move || {
            for connection in listener.incoming() {
                let connection = connection.unwrap();
                let (kept, answer) = (kept.clone(), answer.clone());
                let _ = connection.set_read_timeout(Some(Duration::from_secs(10)));
                let Some(one) = read(&connection) else {
                    continue;
                };
                if one.path == "/end" {
                    return;
                }
                let before = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(one.clone());
                    kept.len() - 1
                };
                std::thread::spawn(move || act(connection, answer(&one, before)));
            }
        });
        Self {
            address,
            received,
            accepting: Some(accepting),
        }
    }

    /// One that takes everything.
    pub(crate) fn good() -> Self {
        Self::start(|_, _| Reply::status(200))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// What was sent, once it is this much.
    #[track_caller]
    pub(crate) fn once(&self, count: usize) -> Vec<Received> {
        eventually("the receiver to be sent to", || {
            Some(self.received()).filter(|all| all.len() >= count)
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Ok(mut connection) = TcpStream::connect(self.address) {
            let _ = connection.write_all(b"POST /end HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
        }
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Reads one request. None: it is not whole.
pub(crate) fn read(connection: impl Read) -> Option<Received> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?;
    let mut body = vec![0; length.1.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        method,
        path,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

/// Does what the test said, until the other side has had enough of it.
fn act(mut connection: TcpStream, reply: Reply) {
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    match reply {
        Reply::Status(status, headers, body) => {
            let mut text = format!("HTTP/1.1 {status} Said\r\n");
            for (name, value) in headers {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
            let _ = connection.write_all(text.as_bytes());
        }
        Reply::Hang => until_closed(&mut connection),
        Reply::Reset => {
            let socket = socket2::Socket::from(connection);
            let _ = socket.set_linger(Some(Duration::ZERO));
        }
        Reply::Garbage => {
            let _ = connection.write_all(b"what is this\r\n\r\n");
        }
        Reply::Drip => {
            let _ = connection.write_all(head);
            while connection.write_all(b"1\r\n.\r\n").is_ok() {
                drip();
            }
        }
        Reply::Endless => {
            let _ = connection.write_all(head);
            let piece = format!("1000\r\n{}\r\n", "x".repeat(4096));
            while connection.write_all(piece.as_bytes()).is_ok() {}
        }
        Reply::DripHead => {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nx: ");
            while connection.write_all(b"y").is_ok() {
                drip();
            }
        }
        Reply::Held(held) => {
            let _ = held.recv();
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    }
}

/// Between two pieces of an answer that goes on until the client has had enough of its slowness.
fn drip() {
    std::thread::sleep(Duration::from_millis(50));
}

fn until_closed(connection: &mut TcpStream) {
    let _ = connection.set_read_timeout(None);
    let mut byte = [0; 1];
    while matches!(connection.read(&mut byte), Ok(amount) if amount > 0) {}
}
