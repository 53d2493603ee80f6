//! A client: exchanges with other hosts, one at a time, under one policy.
//!
//! Each exchange resolves the host, checks every address against the policy, and connects only to
//! checked addresses; a pooled connection is reused only if its peer is among them. Redirects are
//! returned as answers. Proxy variables of the environment are ignored. The host name stays as
//! written in the URL, the Host header and the TLS server name.

use super::cancel::{CancelHandle, Token};
use super::coding::{Body, TooLong};
use super::explain::{explain, too_large};
use super::failure::{Failure, Kind, Phase};
use super::policy::Policy;
use super::proxy::Way;
use super::transport::{CheckedAddresses, Current, Exchange, TcpConnector, Timeouts, TlsConnector};
use super::urls::parse;
use super::way_out::{Outbound, Peer};
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use ureq::unversioned::transport::Connector;
use url::Url;

const OUTPUT_BYTES: usize = 16 * 1024;
/// The longest head of an answer. It has to fit into the buffer of what arrives.
const HEAD_BYTES: usize = 64 * 1024;
const IDLE_AGE: Duration = Duration::from_secs(30);

/// Headers that frame the exchange or name its host. A caller that set them could make what is sent
/// differ from what was checked, or merge two requests.
const FRAMING: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Exchanges with other hosts under one policy. One thread uses it at a time.
pub struct Client {
    outbound: Outbound,
    policy: Policy,
    timeouts: Timeouts,
    peer: Option<Peer>,
    is_well: bool,
    /// The next exchange begins a connection.
    is_next_apart: bool,
    /// Whether listed origins are reached through the forward proxy.
    through_proxy: bool,
    token: Arc<Token>,
    current: Current,
    agent: ureq::Agent,
}

/// A whole answer.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status; redirects (3xx) are answers too.
    pub status: u16,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The answer's body, without a content coding, at most as long as the caller's cap.
    pub body: Vec<u8>,
    /// The address that it came from.
    pub address: Option<IpAddr>,
}

/// An answer whose body is read as it arrives. The exchange's deadline and cap still apply.
pub struct Stream {
    /// The HTTP status; redirects (3xx) are answers too.
    pub status: u16,
    /// The answer's headers.
    pub headers: HeaderMap,
    body: Body<ureq::BodyReader<'static>>,
    exchange: Arc<Exchange>,
    host: String,
    left: u64,
    cap: u64,
}

/// A request. Headers are `(name, value)`; a value may be a credential and is never printed.
pub struct Outgoing<'a> {
    /// `GET`, `POST` and so on.
    pub method: Method,
    /// An absolute http or https URL.
    pub url: &'a str,
    /// Headers other than Host, Content-Length and those like them.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; if it is empty, none is sent unless the method requires one.
    pub body: &'a [u8],
    /// The longest answer body to accept, in bytes. A longer Content-Length is refused before
    /// reading.
    pub cap: u64,
}

impl Outbound {
    /// A client for one thread. It keeps a few idle connections for 30 s and checks their addresses
    /// at each use.
    pub fn client(&self, policy: Policy, timeouts: Timeouts) -> Client {
        Client::new(self.clone(), policy, timeouts, false)
    }

    /// As [`Outbound::client`], for a client that reaches the origins that the operator lists through
    /// the operator's forward proxy, if there is one. The policy applies to all others.
    pub fn client_through_proxy(&self, policy: Policy, timeouts: Timeouts) -> Client {
        Client::new(self.clone(), policy, timeouts, true)
    }
}

impl Client {
    pub(super) fn new(
        outbound: Outbound,
        policy: Policy,
        timeouts: Timeouts,
        through_proxy: bool,
    ) -> Self {
        let token = Token::new();
        let idle = Exchange::new(Arc::clone(&token), timeouts, Instant::now());
        let current = Current::new(Arc::new(idle));
        let connector = TcpConnector(current.clone()).chain(TlsConnector {
            rustls: Arc::clone(&outbound.0.rustls),
            current: current.clone(),
        });
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .accept_encoding("identity")
            .user_agent(concat!("agent-runtime/", env!("CARGO_PKG_VERSION")))
            .input_buffer_size(HEAD_BYTES + 1)
            .output_buffer_size(OUTPUT_BYTES)
            .max_response_header_size(HEAD_BYTES)
            .max_idle_connections(2)
            .max_idle_connections_per_host(1)
            .max_idle_age(IDLE_AGE)
            .tls_config(outbound.0.tls.clone())
            .build();
        let agent = ureq::Agent::with_parts(config, connector, CheckedAddresses);
        Self {
            outbound,
            policy,
            timeouts,
            peer: None,
            is_well: false,
            is_next_apart: false,
            through_proxy,
            token,
            current,
            agent,
        }
    }

    /// The same client, of exchanges with such a peer: the log tells of its outages.
    #[must_use]
    pub fn to(mut self, peer: Peer) -> Self {
        self.peer = Some(peer);
        self
    }

    /// A handle with which another thread cancels this client's exchanges, from now until the next
    /// handle is taken. Taking a new one makes a cancelled client usable again.
    pub fn cancel_handle(&mut self) -> CancelHandle {
        self.token = Token::new();
        CancelHandle(Arc::clone(&self.token))
    }

    /// Sets the time limits of the following exchanges.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.timeouts = timeouts;
    }

    /// Whether this webhook receiver answered recently. The names of such receivers are resolved by
    /// threads of their own, so that dead name servers of others cannot delay them. Initially
    /// false.
    pub fn set_well(&mut self, is_well: bool) {
        self.is_well = is_well;
    }

    /// Lets the next exchange begin a connection: the one before left its own in doubt.
    pub fn reconnect(&mut self) {
        self.is_next_apart = true;
    }

    /// Posts JSON and reads the whole answer, at most `cap` bytes.
    pub fn post_json(
        &mut self,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        cap: u64,
    ) -> Result<Response, Failure> {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send(&Outgoing {
            method: Method::POST,
            url,
            headers: &all,
            body,
            cap,
        })
    }

    /// Sends a request and reads the whole answer.
    pub fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Response, Failure> {
        let mut stream = self.open(outgoing)?;
        let body = stream.read_to_end()?;
        Ok(Response {
            address: stream.address(),
            status: stream.status,
            headers: stream.headers,
            body,
        })
    }

    /// Sends a request and returns once the answer's head has arrived.
    pub fn open(&mut self, outgoing: &Outgoing<'_>) -> Result<Stream, Failure> {
        let url = parse(self.policy, outgoing.url)?;
        let opened = self.open_at(&url, outgoing);
        self.note(&url, &opened);
        opened
    }

    /// Tells of an outage of the peer, and of its end.
    fn note(&self, url: &Url, opened: &Result<Stream, Failure>) {
        let Some(outages) = self.peer.and_then(|peer| self.outbound.outages(peer)) else {
            return;
        };
        let place = || {
            let host = url.host_str().unwrap_or_default();
            format!("{host}:{}", url.port_or_known_default().unwrap_or(0))
        };
        match opened {
            Ok(_) => outages.answered(place),
            Err(failure) if failure.is_absence() => outages.failed(place(), failure),
            Err(_) => {}
        }
    }

    fn open_at(&mut self, url: &Url, outgoing: &Outgoing<'_>) -> Result<Stream, Failure> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let mut request = request(url.as_str(), outgoing)?;
        let token = Arc::clone(&self.token);
        let mut exchange = Exchange::new(token, self.timeouts, Instant::now());
        exchange.is_apart = std::mem::take(&mut self.is_next_apart);
        let (deadline, outbound) = (exchange.deadline(), &self.outbound);
        let proxy = outbound.0.forward_proxy.as_ref();
        let way = proxy.filter(|_| self.through_proxy);
        let way = way.and_then(|proxy| Some((proxy, proxy.way(url)?)));
        exchange.addresses = match &way {
            Some((proxy, _)) => outbound.proxy_addresses(proxy, deadline, &exchange.token)?,
            None => {
                let token = &exchange.token;
                outbound.addresses(self.policy, self.is_well, url, deadline, token)?
            }
        };
        exchange.way = way.map(|(_, way)| way);
        if let Some(authorization) = exchange.way.as_ref().and_then(Way::authorization) {
            let mut value = HeaderValue::from_str(authorization).map_err(|_| {
                Failure::new(Kind::Invalid, "The proxy's credentials cannot be sent.")
            })?;
            value.set_sensitive(true);
            request.headers_mut().append("proxy-authorization", value);
        }
        let exchange = Arc::new(exchange);
        self.current.set(Arc::clone(&exchange));
        self.answer(outgoing, request, &exchange, host)
            .map_err(|failure| failure.at(exchange.peer()))
    }

    /// The exchange itself, with the addresses checked.
    fn answer(
        &self,
        outgoing: &Outgoing<'_>,
        request: Request<&[u8]>,
        exchange: &Arc<Exchange>,
        host: String,
    ) -> Result<Stream, Failure> {
        let bodiless = outgoing.body.is_empty()
            && matches!(outgoing.method, Method::GET | Method::HEAD | Method::DELETE);
        let answer = if bodiless {
            self.agent.run(request.map(|_| ()))
        } else {
            self.agent.run(request)
        };
        if exchange.token.is_cancelled() {
            return Err(Token::failure());
        }
        let answer = answer.map_err(|error| explain(error, exchange, &host))?;
        let status = answer.status().as_u16();
        if let Some(refusal) = exchange.way.as_ref().and_then(|way| way.refusal(status)) {
            return Err(refusal);
        }
        exchange.enter(Phase::Body);
        let (mut parts, body) = answer.into_parts();
        let length = body.content_length().unwrap_or(0);
        if length > outgoing.cap && outgoing.method != Method::HEAD {
            return Err(too_large(&host, outgoing.cap));
        }
        let body = body.into_reader();
        let body = match outgoing.method {
            // Its headers are those of an answer that has a body.
            Method::HEAD => Body::Plain(body),
            _ => Body::of(&mut parts.headers, body, outgoing.cap),
        };
        Ok(Stream {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            exchange: Arc::clone(exchange),
            host,
            left: outgoing.cap,
            cap: outgoing.cap,
        })
    }
}

impl Stream {
    /// Reads what has arrived, waiting for at least one byte. 0 is the end of the body.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        self.read_some(buffer)
            .map_err(|failure| failure.at(self.address()))
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let read = self.body.read(buffer);
        if self.exchange.token.is_cancelled() {
            return Err(Token::failure());
        }
        let amount = read.map_err(|error| match error.get_ref() {
            Some(inner) if inner.is::<TooLong>() => too_large(&self.host, self.cap),
            _ => explain(error.into(), &self.exchange, &self.host),
        })?;
        self.left = self
            .left
            .checked_sub(amount as u64)
            .ok_or_else(|| too_large(&self.host, self.cap))?;
        if amount > 0 {
            self.exchange.heard();
        }
        Ok(amount)
    }

    /// Reads the rest.
    pub fn read_to_end(&mut self) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let mut buffer = [0; 8 * 1024];
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(body),
                amount => body.extend_from_slice(&buffer[..amount]),
            }
        }
    }

    /// Reads at most `limit` bytes within `time`, enough to show a part of an answer. It does not
    /// wait for the rest.
    pub fn excerpt(mut self, limit: usize, time: Duration) -> Vec<u8> {
        self.exchange.end_within(time);
        let mut body = Vec::new();
        let mut buffer = [0; 4 * 1024];
        while body.len() < limit {
            match self.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(amount) => body.extend_from_slice(&buffer[..amount]),
            }
        }
        body.truncate(limit);
        body
    }

    /// Ends the exchange after this time, whatever arrives meanwhile.
    pub fn end_within(&self, time: Duration) {
        self.exchange.end_within(time);
    }

    /// Finishes an answer whose content is complete. If its end arrives within `time`, the
    /// connection is kept for the next exchange.
    pub fn finish(mut self, time: Duration) {
        self.exchange.end_within(time);
        let mut buffer = [0; 512];
        while matches!(self.read(&mut buffer), Ok(amount) if amount > 0) {}
    }

    /// The address that answers.
    pub fn address(&self) -> Option<IpAddr> {
        self.exchange.peer()
    }

    /// A header's value, if it is there and readable.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn request<'a>(url: &str, outgoing: &Outgoing<'a>) -> Result<Request<&'a [u8]>, Failure> {
    let invalid = |what: &str| Failure::new(Kind::Invalid, format!("The {what} cannot be sent."));
    let mut request = Request::builder()
        .method(outgoing.method.clone())
        .uri(url)
        .body(outgoing.body)
        .map_err(|_| invalid("URL"))?;
    for (name, value) in outgoing.headers {
        // Name the header only: its value may be a credential.
        let bad = || invalid(&format!("header {}", name.escape_default()));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        if FRAMING.contains(&key.as_str()) {
            return Err(bad());
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        request.headers_mut().append(key, value);
    }
    Ok(request)
}
