//! An HTTP tool that answers as the test says and keeps what it was asked.

use super::puppet::Request;
use serde_json::Value;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What a tool was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// What a tool answers.
pub(crate) enum ToolAnswer {
    /// A status and a body.
    Status(u16, String),
    /// The client is sent elsewhere.
    Redirect(String),
    /// The connection is closed.
    Cut,
    /// Nothing comes, as long as the tool stands.
    Hang,
}

impl ToolAnswer {
    pub(crate) fn ok(body: impl Into<String>) -> Self {
        Self::Status(200, body.into())
    }
}

/// The tool. It ends with the test.
pub(crate) struct ToolServer {
    listener: TcpListener,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl ToolServer {
    /// `answer` is given what is asked and how often it was asked before.
    pub(crate) fn start(answer: impl Fn(&Asked, usize) -> ToolAnswer + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (accepting, kept) = (listener.try_clone().unwrap(), asked.clone());
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let serving = std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for connection in accepting.incoming() {
                let connection = connection.unwrap();
                if ends.load(Ordering::Acquire) {
                    return;
                }
                // A client that left.
                let Some(request) = Request::read(connection) else {
                    continue;
                };
                let one = Asked {
                    headers: request.headers,
                    body: request.body,
                };
                let before = kept.lock().unwrap().len();
                let said = answer(&one, before);
                kept.lock().unwrap().push(one);
                match said {
                    ToolAnswer::Cut => {}
                    ToolAnswer::Hang => hanging.push(request.connection),
                    ToolAnswer::Status(status, body) => {
                        respond(&request.connection, status, "", &body);
                    }
                    ToolAnswer::Redirect(to) => {
                        let header = format!("location: {to}\r\n");
                        respond(&request.connection, 307, &header, "");
                    }
                }
            }
        });
        Self {
            listener,
            asked,
            is_over,
            serving: Some(serving),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/call", self.listener.local_addr().unwrap())
    }

    /// What it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn respond(mut connection: &TcpStream, status: u16, header: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} Said\r\n{header}content-type: text/plain\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // A client that takes no long answer is what some tests are about.
    let _ = connection.write_all(head.as_bytes());
    let _ = connection.write_all(body.as_bytes());
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        drop(TcpStream::connect(self.listener.local_addr().unwrap()));
        let _ = self.serving.take().unwrap().join();
    }
}
