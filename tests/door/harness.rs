//! A small application behind a real door, and a client that writes raw bytes.

use agent_runtime::error::Error;
use agent_runtime::http::door::{
    App, Context, Door, Limits, Reply, Responder, StreamWriter, stream,
};
use agent_runtime::ids::Clock;
use crossbeam_channel::{Receiver, Sender, unbounded};
use rouille::{Request, Response};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than anything here should take, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that `POST /echo` takes.
pub(crate) const ECHO_BYTES: u64 = 64 * 1024;

/// The application's ends of what a test drives.
struct Service {
    entered: Sender<String>,
    release: Receiver<()>,
    later: Sender<Responder>,
    streams: Sender<StreamWriter>,
}

impl App for Service {
    fn probe(&self, context: &Context) -> Option<Response> {
        let asks = ["GET", "HEAD"].contains(&context.method()) && context.target() == "/healthz";
        asks.then(|| Response::text("alive"))
    }

    fn admit(&self, head: &Request, _: &Context) -> Result<u64, Response> {
        match (head.raw_url(), head.header("Authorization")) {
            ("/admit-panic", _) => panic!("admit fails on purpose"),
            ("/echo", Some("Bearer good")) => Ok(ECHO_BYTES),
            ("/echo", _) => Err(Response::text("who?").with_status_code(401)),
            _ => Err(Response::text("where?").with_status_code(404)),
        }
    }

    fn handle(&self, request: &Request, responder: Responder) {
        let target = request.raw_url();
        let reply = match target.split('?').next().unwrap_or_default() {
            "/fast" => Response::text("ok"),
            "/echo" => {
                let mut body = String::new();
                let mut data = request.data().expect("the body is there");
                data.read_to_string(&mut body).expect("the body is text");
                Response::text(format!("{} {body}", request.method()))
            }
            "/address" => Response::text(request.remote_addr().to_string()),
            "/large" => Response::from_data("application/octet-stream", vec![7; 32 << 20]),
            "/panic" => panic!("the handler fails on purpose"),
            "/silent" => return,
            "/later" => return self.later.send(responder).expect("the test listens"),
            "/block" => {
                let _ = self.entered.send(target.to_owned());
                // Held until the test lets go, or is over.
                let _ = self.release.recv_timeout(PATIENCE);
                Response::text("released")
            }
            "/stream" => {
                let (writer, body) = stream(64 * 1024);
                self.streams.send(writer).expect("the test listens");
                let head =
                    Response::text("").with_unique_header("Content-Type", "text/event-stream");
                return responder.send(Reply::Stream { head, body });
            }
            "/bad-header" => Response::text("").with_additional_header("X-Bad", "a\r\nb: c"),
            _ => Response::empty_404(),
        };
        responder.send(Reply::Full(reply));
    }

    fn refuse(&self, error: &Error, context: &Context) -> Response {
        let body = format!(
            "{{\"code\":\"{}\",\"requestId\":\"req-{}\"}}",
            error.code().text(),
            context.request_id()
        );
        Response::from_data("application/json", body).with_status_code(error.code().status())
    }
}

/// A door with its application, and the test's ends.
pub(crate) struct House {
    pub(crate) door: Door,
    pub(crate) entered: Receiver<String>,
    pub(crate) release: Sender<()>,
    pub(crate) later: Receiver<Responder>,
    pub(crate) streams: Receiver<StreamWriter>,
}

/// Bounds small enough that a test reaches them, and waits long enough that a busy machine does
/// not.
pub(crate) fn limits() -> Limits {
    Limits {
        request_threads: 4,
        ..Limits::default()
    }
}

impl House {
    pub(crate) fn open(limits: Limits) -> Self {
        let (entered_to, entered) = unbounded();
        let (release, release_from) = unbounded();
        let (later_to, later) = unbounded();
        let (streams_to, streams) = unbounded();
        let service = Service {
            entered: entered_to,
            release: release_from,
            later: later_to,
            streams: streams_to,
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let log = slog::Logger::root(slog::Discard, slog::o!());
        let door = Door::open(listener, limits, Arc::new(service), Clock::system(), log)
            .expect("the door opens");
        Self {
            door,
            entered,
            release,
            later,
            streams,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.door.local_addr())
    }

    /// Sends bytes on a connection of their own and reads one answer.
    pub(crate) fn ask(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut client = self.client();
        client.send(bytes);
        client.answer()
    }

    /// Others are served: the answer that everyone gets.
    pub(crate) fn serves_others(&self) {
        let answer = self.ask(get("/fast"));
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    }

    /// Waits until the door's figures are as told.
    pub(crate) fn until(&self, what: impl Fn(&agent_runtime::http::door::Stats) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !what(&self.door.stats()) {
            assert!(
                Instant::now() < deadline,
                "it stays {:?}",
                self.door.stats()
            );
            moment();
        }
    }
}

/// Between two looks, or two bytes, of a loop that has a deadline.
pub(crate) fn moment() {
    std::thread::sleep(Duration::from_millis(10));
}

/// A request without a body.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: door\r\n\r\n")
}

/// A `POST /echo` by a known caller, up to its body.
pub(crate) fn post(fields: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer good\r\n{fields}\r\n")
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// It is the service's error body with this code.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let begin = format!("{{\"code\":\"{code}\",\"requestId\":\"req-");
        assert!(self.body.starts_with(&begin), "{self:?}");
    }
}

/// A raw connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    held: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("the door is open"))
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("the option is known");
        for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
            set(&stream, Some(PATIENCE)).expect("the option is known");
        }
        Self {
            stream,
            held: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("it is sent");
    }

    /// Sends without end; how many bytes were taken before the door would take no more.
    pub(crate) fn flood(&mut self, piece: &[u8], most: usize) -> usize {
        let mut sent = 0;
        while sent < most {
            match self.stream.write(piece) {
                Ok(bytes) => sent += bytes,
                Err(_) => break,
            }
        }
        sent
    }

    fn more(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(bytes) => {
                self.held.extend_from_slice(&piece[..bytes]);
                true
            }
            Err(cause) if cause.kind() == ErrorKind::ConnectionReset => false,
            Err(cause) => panic!("nothing came in time: {cause}"),
        }
    }

    /// Everything up to and with `end`.
    pub(crate) fn until(&mut self, end: &str) -> String {
        loop {
            let found = self
                .held
                .windows(end.len())
                .position(|window| window == end.as_bytes());
            if let Some(at) = found {
                let taken = self.held.drain(..at + end.len()).collect();
                return String::from_utf8(taken).expect("it is text");
            }
            assert!(
                self.more(),
                "closed before {end:?}: {:?}",
                String::from_utf8_lossy(&self.held)
            );
        }
    }

    /// The next answer's head, with an empty body.
    pub(crate) fn head(&mut self) -> Answer {
        let head = self.until("\r\n\r\n");
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        Answer {
            status: status.expect("a status line"),
            head,
            body: String::new(),
        }
    }

    /// The next answer, whose body has a declared length.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.field("content-length").expect("a length");
        let length: usize = length.parse().expect("a number");
        while self.held.len() < length {
            assert!(self.more(), "closed within the body of {answer:?}");
        }
        let body = self.held.drain(..length).collect();
        answer.body = String::from_utf8(body).expect("it is text");
        answer
    }

    /// Reads until so many bytes are here.
    pub(crate) fn hold(&mut self, bytes: usize) {
        while self.held.len() < bytes {
            assert!(self.more(), "closed after {} bytes", self.held.len());
        }
    }

    /// Whatever else comes before the door closes.
    pub(crate) fn rest(&mut self) -> String {
        while self.more() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }

    /// The door closes, and says nothing more.
    #[track_caller]
    pub(crate) fn is_closed(&mut self) {
        assert_eq!(self.rest(), "");
    }
}
