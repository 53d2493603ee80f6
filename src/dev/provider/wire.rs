//! HTTP/1.1 for the scripted provider: reads requests, writes plain answers and event streams.

use super::answer::{self, Answer};
use super::{Fault, Recorded, Reply, Shared, Step};
use crate::text::trim_ows;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const MAX_HEAD_BYTES: u64 = 32 * 1024;
const MAX_BODY_BYTES: u64 = 32 * 1024 * 1024;
const IDLE: Duration = Duration::from_secs(120);

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Answers the requests of one connection until it closes.
pub(super) fn serve(connection: &TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(IDLE))?;
    connection.set_write_timeout(Some(IDLE))?;
    let mut reader = BufReader::new(connection);
    while let Some(request) = read_request(&mut reader, connection)? {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", path) if path.ends_with("/chat/completions") => {
                complete(connection, shared, request)?;
            }
            ("GET", path) if path.ends_with("/models") => {
                let body =
                    json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]});
                plain(connection, 200, &[], &body.to_string())?;
            }
            _ => {
                let body = json!({"error": {"message": "There is no such route here.", "type": "invalid_request_error"}});
                plain(connection, 404, &[], &body.to_string())?;
            }
        }
    }
    Ok(())
}

fn read_request(
    reader: &mut BufReader<&TcpStream>,
    connection: &TcpStream,
) -> io::Result<Option<Request>> {
    let mut head = reader.by_ref().take(MAX_HEAD_BYTES);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_ascii_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        headers.push((name.to_ascii_lowercase(), trim_ows(value).to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    if header("expect").is_some() {
        (&*connection).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let length = header("content-length").and_then(|v| v.parse().ok());
    let length: u64 = length.unwrap_or(0);
    if length > MAX_BODY_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = Vec::new();
    reader.by_ref().take(length).read_to_end(&mut body)?;
    Ok(Some(Request {
        method,
        path,
        headers,
        body,
    }))
}

fn complete(connection: &TcpStream, shared: &Shared, request: Request) -> io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let step = shared.next_step(Recorded {
        headers: request.headers,
        body: body.clone(),
    });
    shared.pause(step.before)?;
    if let Some((0, fault)) = step.fault {
        return fail(connection, fault);
    }
    let answer = match &step.reply {
        Reply::Plain {
            status,
            headers,
            body,
        } => return plain(connection, *status, headers, body),
        Reply::Events(events) => return stream(connection, shared, &step, events.clone()),
        Reply::Scripted => answer::scripted(&body),
        Reply::Text(text) => Answer::Text(text.clone()),
        Reply::ToolCalls(calls) => Answer::ToolCalls(calls.clone()),
    };
    if body["stream"] == Value::Bool(true) {
        let events = answer::events(&answer, &body, &shared.numbers);
        stream(connection, shared, &step, events)
    } else {
        let whole = answer::whole(&answer, &body, &shared.numbers);
        plain(connection, 200, &[], &whole.to_string())
    }
}

fn plain(
    mut connection: &TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} \r\ncontent-length: {}\r\n", body.len());
    if headers.is_empty() {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.push_str(body);
    connection.write_all(head.as_bytes())
}

fn stream(
    mut connection: &TcpStream,
    shared: &Shared,
    step: &Step,
    events: Vec<String>,
) -> io::Result<()> {
    connection.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            shared.pause(step.between)?;
        }
        if let Some((after, fault)) = step.fault
            && index == after
        {
            return fail(connection, fault);
        }
        let data = format!("data: {event}\n\n");
        connection.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())?;
    }
    match step.fault {
        Some((_, fault)) => fail(connection, fault),
        None => connection.write_all(b"0\r\n\r\n"),
    }
}

fn fail(mut connection: &TcpStream, fault: Fault) -> io::Result<()> {
    if fault == Fault::Hang {
        // Ends when the client disconnects, or when the stopping server shuts the socket down.
        connection.set_read_timeout(None)?;
        while connection.read(&mut [0; 64])? > 0 {}
    }
    Err(io::ErrorKind::ConnectionAborted.into())
}
