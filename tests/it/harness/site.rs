//! A web site of somebody else.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A web server that answers everything with one page. It ends with the test.
pub(crate) struct Site {
    listener: TcpListener,
    is_over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Site {
    pub(crate) fn start(html: String) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let accepting = listener.try_clone().unwrap();
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let serving = std::thread::spawn(move || {
            for connection in accepting.incoming() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                // A browser opens connections that it may not use.
                let _ = answer(&connection.unwrap(), &html);
            }
        });
        Self {
            listener,
            is_over,
            serving: Some(serving),
        }
    }

    pub(crate) fn origin(&self) -> String {
        self.origin_as("127.0.0.1")
    }

    /// Its origin for a browser that finds it by this name.
    pub(crate) fn origin_as(&self, host: &str) -> String {
        format!(
            "http://{host}:{}",
            self.listener.local_addr().unwrap().port()
        )
    }
}

fn answer(mut connection: &TcpStream, html: &str) -> std::io::Result<()> {
    let mut head = BufReader::new(connection).lines();
    while head
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    write!(
        connection,
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{html}",
        html.len()
    )
}

impl Drop for Site {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the thread.
        drop(TcpStream::connect(self.listener.local_addr().unwrap()));
        let _ = self.serving.take().unwrap().join();
    }
}
