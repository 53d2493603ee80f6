//! The operator's forward proxy: which exchanges go through it, and how they begin.
//!
//! https goes through a tunnel with its TLS inside (CONNECT, RFC 9110, section 9.3.6). http names its
//! whole URL in the request line (absolute-form, RFC 9112, section 3.2.2).
//!
//! The proxy looks names up, so no address is checked here. Therefore only origins that the operator
//! lists go through it, and only for a client that was made for it
//! ([`super::Outbound::client_through_proxy`]).

use super::failure::{Failure, Kind};
use crate::config::{ForwardProxy, Origin};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use socket2::Socket;
use std::io::{self, Read, Write};
use std::time::Duration;
use url::Url;
use zeroize::Zeroizing;

/// The longest answer to CONNECT, in bytes.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// How one exchange goes through the proxy.
pub(super) struct Way {
    /// The proxy, for use in a sentence.
    pub(super) proxy: String,
    /// The value of `Proxy-Authorization`.
    authorization: Option<Zeroizing<String>>,
    /// Host and port that are wanted.
    authority: String,
    /// Whether the exchange has a tunnel.
    is_tunnel: bool,
}

impl ForwardProxy {
    /// The way to this URL, if it goes through the proxy.
    pub(super) fn way(&self, url: &Url) -> Option<Way> {
        let origin = Origin::of(url)?;
        if !self.origins.contains(&origin) {
            return None;
        }
        let is_tunnel = url.scheme() == "https";
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        let authority = match (is_tunnel, url.port()) {
            (false, None) => host.to_owned(),
            _ => format!("{host}:{port}"),
        };
        let credentials = self.credentials.as_ref();
        Some(Way {
            proxy: self.in_words(),
            authorization: credentials.map(|credentials| {
                let encoded = Zeroizing::new(STANDARD.encode(credentials.expose()));
                Zeroizing::new(format!("Basic {}", *encoded))
            }),
            authority,
            is_tunnel,
        })
    }

    pub(super) fn in_words(&self) -> String {
        format!("the forward proxy {}", self.origin.text())
    }
}

impl Way {
    /// What stands before the path in the request line.
    pub(super) fn before_path(&self) -> Option<String> {
        (!self.is_tunnel).then(|| format!("http://{}", self.authority))
    }

    /// The value of `Proxy-Authorization` in the request itself.
    pub(super) fn authorization(&self) -> Option<&str> {
        let authorization = self.authorization.as_deref().filter(|_| !self.is_tunnel);
        authorization.map(String::as_str)
    }

    /// Whether an answer of this status is the proxy's own word.
    pub(super) fn refusal(&self, status: u16) -> Option<Failure> {
        (!self.is_tunnel && status == 407).then(|| Refusal::of(self, status).failure())
    }

    /// Opens the tunnel, if the exchange has one, within the time that is left.
    ///
    /// # Errors
    /// The socket's; a [`Refusal`].
    pub(super) fn open(
        &self,
        left: impl Fn() -> io::Result<Duration>,
        mut socket: &Socket,
    ) -> io::Result<()> {
        if !self.is_tunnel {
            return Ok(());
        }
        let authority = &self.authority;
        let mut request = Zeroizing::new(format!(
            "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        ));
        if let Some(authorization) = &self.authorization {
            request.push_str(&format!("Proxy-Authorization: {}\r\n", **authorization));
        }
        request.push_str("\r\n");
        socket.set_write_timeout(Some(left()?))?;
        socket.write_all(request.as_bytes())?;
        let mut head = Vec::new();
        let mut byte = [0];
        // One byte at a time: what comes after the head belongs to TLS.
        while !head.ends_with(b"\r\n\r\n") {
            socket.set_read_timeout(Some(left()?))?;
            match socket.read(&mut byte) {
                Ok(1) if head.len() < MAX_HEAD_BYTES => head.push(byte[0]),
                Ok(0) => {
                    let (kind, why) = (io::ErrorKind::UnexpectedEof, "it closed the connection");
                    return Err(io::Error::new(kind, why));
                }
                Ok(_) => return Err(io::Error::other(Refusal::of(self, 0))),
                Err(error) if super::interrupted::is_retry(&error) => {}
                Err(error) => return Err(error),
            }
        }
        match status(&head) {
            200..300 => Ok(()),
            status => Err(io::Error::other(Refusal::of(self, status))),
        }
    }
}

/// The status in a head; 0 if it is not HTTP.
fn status(head: &[u8]) -> u16 {
    let text = head
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| rest.get(2..5));
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The proxy did not make the connection.
#[derive(Debug)]
pub(super) struct Refusal {
    status: u16,
    proxy: String,
    authority: String,
}

impl Refusal {
    fn of(way: &Way, status: u16) -> Self {
        Self {
            status,
            proxy: way.proxy.clone(),
            authority: way.authority.clone(),
        }
    }

    pub(super) fn failure(&self) -> Failure {
        let kind = match self.status {
            500.. => Kind::Connect,
            _ => Kind::Proxy,
        };
        Failure::new(kind, self.to_string())
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (proxy, authority, status) = (&self.proxy, &self.authority, self.status);
        match status {
            0 => write!(
                f,
                "What {proxy} answered for {authority} is not HTTP/1.1. SVC_FORWARD_PROXY must name an HTTP proxy."
            ),
            407 => write!(
                f,
                "No connection to {authority}: {proxy} wants other credentials (HTTP 407). The operator sets them with SVC_FORWARD_PROXY_CREDENTIALS."
            ),
            500.. => write!(
                f,
                "No connection to {authority}: {proxy} could not make one (HTTP {status})."
            ),
            _ => write!(
                f,
                "No connection to {authority}: {proxy} does not allow it (HTTP {status}). The operator allows it there, or takes the origin out of SVC_FORWARD_PROXY_ORIGINS."
            ),
        }
    }
}

impl std::error::Error for Refusal {}
