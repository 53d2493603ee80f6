//! Receivers: one HTTP server that plays all of them, each at a path of its own. It checks what arrives
//! and remembers it, and now and then refuses, resets or says nothing.

use crate::random::Random;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// More than the server's attempts at once, so that nothing waits to be taken.
const THREADS: usize = 64;
/// Of a request, in either direction.
const DEADLINE: Duration = Duration::from_secs(5);
/// How far a signature's time may be from the wall clock: as Standard Webhooks receivers hold it.
const TOLERANCE_SECONDS: i64 = 300;

/// What a receiver did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// 204.
    Accepted,
    /// 500.
    Refused,
    /// Nothing: it reset the connection.
    Reset,
}

/// A request that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receipt {
    pub(crate) endpoint: usize,
    pub(crate) event_id: Uuid,
    /// What the event is about: an approval, a pass, a run.
    pub(crate) subject: Uuid,
    pub(crate) at: Instant,
    pub(crate) answered: Answered,
}

struct Shared {
    key: hmac::Key,
    receipts: Mutex<Vec<Receipt>>,
    /// The bytes of each event at its first arrival.
    bodies: Mutex<HashMap<Uuid, Vec<u8>>>,
    /// What no receiver must ever see.
    faults: Mutex<Vec<String>>,
    /// The receiver that refuses everything.
    dead: usize,
    /// Out of a hundred requests, those that are refused, and those that are reset.
    refused: u64,
    reset: u64,
    /// How far the server's wall clock may be from this process's, in seconds.
    ahead_seconds: Mutex<Vec<i64>>,
    over: AtomicBool,
}

/// Running receivers. Dropping them ends their threads.
pub(crate) struct Receivers {
    address: SocketAddr,
    secret: String,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Receivers {
    /// The receiver number `dead` refuses everything; the others some requests.
    pub(crate) fn start(dead: usize, random: &mut Random) -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).unwrap();
        let shared = Arc::new(Shared {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            receipts: Mutex::default(),
            bodies: Mutex::default(),
            faults: Mutex::default(),
            dead,
            refused: 3,
            reset: 2,
            ahead_seconds: Mutex::new(vec![0]),
            over: AtomicBool::new(false),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let threads = (0..THREADS).map(|number| {
            let (listener, shared) = (listener.try_clone().unwrap(), Arc::clone(&shared));
            let mut random = random.fork();
            std::thread::Builder::new()
                .name(format!("receiver-{number}"))
                .spawn(move || serve(&listener, &shared, &mut random))
                .unwrap()
        });
        Self {
            address,
            secret: format!("whsec_{}", STANDARD.encode(key)),
            threads: threads.collect(),
            shared,
        }
    }

    /// What signs for all of them.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    pub(crate) fn url(&self, endpoint: usize) -> String {
        format!("http://{}/hooks/{endpoint}", self.address)
    }

    /// The server's wall clock is now so far from this process's, or one of these.
    pub(crate) fn expect_ahead(&self, seconds: &[i64]) {
        *self.shared.ahead_seconds.lock().unwrap() = seconds.to_vec();
    }

    /// Everything that came so far.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        self.shared.receipts.lock().unwrap().clone()
    }

    /// Every request was signed, and every event had the same bytes each time.
    #[track_caller]
    pub(crate) fn check(&self) {
        let faults = self.shared.faults.lock().unwrap();
        assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
    }
}

impl Drop for Receivers {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        for _ in &self.threads {
            // Each connection wakes one thread.
            let _ = TcpStream::connect(self.address);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, shared: &Shared, random: &mut Random) {
    while let Ok((stream, _)) = listener.accept() {
        let at = Instant::now();
        if shared.over.load(Ordering::SeqCst) {
            return;
        }
        // A request that a kill cut off is none.
        if let Ok(request) = read(&stream) {
            answer(stream, &request, at, shared, random);
        }
    }
}

struct Request {
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map(|text| text.parse());
    let mut body = vec![0; length.and_then(Result::ok).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Request {
        path,
        headers,
        body,
    })
}

fn answer(
    mut stream: TcpStream,
    request: &Request,
    at: Instant,
    shared: &Shared,
    random: &mut Random,
) {
    let (endpoint, event_id, subject) = match judge(request, shared) {
        Ok(judged) => judged,
        Err(fault) => {
            shared.faults.lock().unwrap().push(fault);
            return;
        }
    };
    let drawn = random.below(100);
    let answered = if endpoint == shared.dead || drawn < shared.refused {
        Answered::Refused
    } else if drawn < shared.refused + shared.reset {
        Answered::Reset
    } else {
        Answered::Accepted
    };
    shared.receipts.lock().unwrap().push(Receipt {
        endpoint,
        event_id,
        subject,
        at,
        answered,
    });
    let text = match answered {
        Answered::Accepted => "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
        Answered::Refused => {
            "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 7\r\nconnection: close\r\n\r\nnot now"
        }
        Answered::Reset => {
            let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
            return;
        }
    };
    // Whoever asked may have been killed.
    let _ = stream.write_all(text.as_bytes());
}

/// For which receiver it is, which event, and what the event is about.
fn judge(request: &Request, shared: &Shared) -> Result<(usize, Uuid, Uuid), String> {
    let header = |name: &str| {
        let value = request.headers.get(name);
        value.ok_or_else(|| format!("no header {name}"))
    };
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let signed = [id.as_bytes(), timestamp.as_bytes(), &request.body].join(&b"."[..]);
    let verified = header("webhook-signature")?.split(' ').any(|signature| {
        let bytes = signature
            .strip_prefix("v1,")
            .map(|text| STANDARD.decode(text));
        bytes
            .and_then(Result::ok)
            .is_some_and(|bytes| hmac::verify(&shared.key, &signed, &bytes).is_ok())
    });
    if !verified {
        return Err(format!("event {id} has no valid signature"));
    }
    let timestamp: i64 = timestamp.parse().map_err(|_| format!("time {timestamp}"))?;
    let now = agent_runtime::ids::Clock::system().now().unix_timestamp();
    let ahead = shared.ahead_seconds.lock().unwrap().clone();
    let in_time = |ahead: &i64| (now + ahead - timestamp).abs() <= TOLERANCE_SECONDS;
    if !ahead.iter().any(in_time) {
        return Err(format!(
            "event {id} was signed at {timestamp}; it is {now}, and the server {ahead:?} s ahead"
        ));
    }
    let body: serde_json::Value =
        serde_json::from_slice(&request.body).map_err(|error| format!("event {id}: {error}"))?;
    if body["id"] != id.as_str() {
        return Err(format!("event {id} has the id {} in its body", body["id"]));
    }
    let event_id: Uuid = id.parse().map_err(|_| format!("the id {id}"))?;
    let mut bodies = shared.bodies.lock().unwrap();
    let first = bodies
        .entry(event_id)
        .or_insert_with(|| request.body.clone());
    if *first != request.body {
        return Err(format!("event {id} had other bytes at another attempt"));
    }
    drop(bodies);
    let subject = match body["type"].as_str() {
        Some("approval.requested") => &body["data"]["approval"]["approvalId"],
        Some("improvement-pass.finished") => &body["data"]["pass"]["id"],
        Some("run.finished") => &body["data"]["run"]["id"],
        _ => return Err(format!("event {id} is a {}", body["type"])),
    };
    let subject = subject.as_str().and_then(|text| text.parse().ok());
    let endpoint = request.path.strip_prefix("/hooks/");
    let endpoint = endpoint.and_then(|text| text.parse().ok());
    match (endpoint, subject) {
        (Some(endpoint), Some(subject)) => Ok((endpoint, event_id, subject)),
        _ => Err(format!("event {id} at {}: {body}", request.path)),
    }
}
