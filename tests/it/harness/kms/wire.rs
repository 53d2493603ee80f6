//! HTTP/1.1 as far as the clients of a key-management service need it.

use super::{CUT, Shared};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

/// A request, its header names in lower case.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    fn read(from: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        from.read_line(&mut line)
            .ok()
            .filter(|length| *length > 0)?;
        let mut words = line.split(' ');
        let (method, url) = (words.next()?.to_owned(), words.next()?);
        let path = url.split('?').next()?.to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).ok()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self {
            method,
            path,
            headers,
            body: String::new(),
        };
        let length = request.header("content-length").unwrap_or("0");
        let mut body = from.take(length.parse().ok()?);
        body.read_to_string(&mut request.body).ok()?;
        Some(request)
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name)?;
        Some(found.1.as_str())
    }
}

/// A thread for each connection, which is kept for further requests.
pub(super) fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut answering = Vec::new();
    for connection in listener.incoming() {
        let connection = connection.unwrap();
        let mut state = shared.lock();
        if state.ended {
            break;
        }
        state.connections.push(connection.try_clone().unwrap());
        drop(state);
        let shared = Arc::clone(shared);
        answering.push(std::thread::spawn(move || talk(&shared, &connection)));
    }
    for one in answering {
        one.join().unwrap();
    }
}

fn talk(shared: &Shared, mut connection: &TcpStream) {
    let mut from = BufReader::new(connection);
    while let Some(request) = Request::read(&mut from) {
        let (status, said) = shared.answer(&request);
        if status == CUT {
            break;
        }
        let (content_type, text) = match said {
            Value::Null => ("text/html", "<!DOCTYPE html>".to_owned()),
            said => ("application/json", said.to_string()),
        };
        let is_metadata = request.path.starts_with("/computeMetadata");
        let flavor = match is_metadata && !shared.lock().flavorless {
            true => "Metadata-Flavor: Google\r\n",
            false => "",
        };
        let length = text.len();
        let answer = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: {content_type}\r\n{flavor}Content-Length: {length}\r\n\r\n{text}"
        );
        // A client that gave up waiting is what some tests are about.
        let _ = connection.write_all(answer.as_bytes());
    }
    let _ = connection.shutdown(Shutdown::Both);
}
