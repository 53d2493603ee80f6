//! The example's tool: a clock over HTTP on loopback, in the thread `example-tool`. It shows the
//! request that an HTTP tool gets and the answer that it gives. A real tool is a service of its
//! own.

use crate::ids::{Clock, rfc3339};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest request head, and the longest body, in bytes.
const MAX_BYTES: u64 = 64 * 1024;
/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The running tool; dropping it stops it.
pub(super) struct Tool {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tool {
    /// Starts the tool on the port of an earlier start, or on a free one.
    pub(super) fn start(port: Option<u16>, clock: &Clock) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0)))
            .or_else(|_| TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let (stop, clock) = (Arc::clone(&stopping), clock.clone());
        let thread = std::thread::Builder::new()
            .name("example-tool".to_owned())
            .spawn(move || {
                for connection in listener.incoming() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    if let Ok(connection) = connection {
                        // A caller that disconnects or stalls is not an error of the tool.
                        let _ = serve(&connection, &clock);
                    }
                }
            })?;
        Ok(Self {
            address,
            stopping,
            thread: Some(thread),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The URL without a final slash.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        // Wakes the accept call, which then stops.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut connection: &TcpStream, clock: &Clock) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(connection.take(2 * MAX_BYTES));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let asked = line.starts_with("POST /clock ");
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let (status, answer) = match serde_json::from_slice::<Value>(&body) {
        Ok(call) if asked => ("200 OK", tell(&call["arguments"], clock)),
        _ => (
            "400 Bad Request",
            json!({"error": "POST /clock takes a tool call as JSON."}),
        ),
    };
    let answer = answer.to_string();
    write!(
        connection,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )
}

/// The time as the tool answers it.
fn tell(arguments: &Value, clock: &Clock) -> Value {
    let hours = arguments["utcOffsetHours"].as_f64().unwrap_or(0.0);
    let offset = time::Duration::seconds_f64(hours.clamp(-12.0, 14.0) * 3600.0);
    let now = clock.now();
    let there = rfc3339::text(now + offset);
    json!({
        "timeThere": there.trim_end_matches('Z'),
        "utcOffsetHours": hours,
        "timeUtc": rfc3339::text(now),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(tool: &Tool, request: &str) -> String {
        let mut connection = TcpStream::connect(tool.address).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn it_tells_the_time_and_refuses_what_is_no_call() {
        let tool = Tool::start(None, &Clock::system()).unwrap();
        let body = r#"{"arguments":{"utcOffsetHours":9}}"#;
        let call = format!(
            "POST /clock HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = ask(&tool, &call);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("\"utcOffsetHours\":9"), "{answer}");
        assert!(ask(&tool, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
        let port = tool.port();
        drop(tool);
        let again = Tool::start(Some(port), &Clock::system()).unwrap();
        assert_eq!(again.port(), port);
    }
}
