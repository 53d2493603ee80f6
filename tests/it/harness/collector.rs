//! A collector of traces: takes OTLP over HTTP in its JSON form, and answers as the test says.

use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// An export as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Export {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

/// A span that was taken.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) is_failed: bool,
    pub(crate) began: u128,
    pub(crate) ended: u128,
    /// Values as text; those of a list with commas between.
    pub(crate) attributes: BTreeMap<String, String>,
}

#[derive(Default)]
struct Taken {
    exports: Vec<Export>,
    spans: Vec<Span>,
}

/// The collector. It ends with the test.
pub(crate) struct Collector {
    server: Arc<tiny_http::Server>,
    taken: Arc<Mutex<Taken>>,
    serving: Option<JoinHandle<()>>,
}

/// Status, headers and body of an answer.
pub(crate) type Answer = (u16, Vec<(&'static str, &'static str)>, &'static str);

/// Takes everything.
pub(crate) const WELL: fn(usize) -> Answer = |_| (200, Vec::new(), "{}");

impl Collector {
    pub(crate) fn start() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), WELL)
    }

    /// `answer` is told how many exports came before.
    pub(crate) fn at(
        address: SocketAddr,
        answer: impl Fn(usize) -> Answer + Send + 'static,
    ) -> Self {
        let server = Arc::new(tiny_http::Server::http(address).unwrap());
        let taken = Arc::<Mutex<Taken>>::default();
        let (accepting, kept) = (Arc::clone(&server), Arc::clone(&taken));
        let serving = std::thread::spawn(move || {
            for mut request in accepting.incoming_requests() {
                assert_eq!(request.method(), &tiny_http::Method::Post);
                assert_eq!(request.url(), "/v1/traces");
                let mut text = String::new();
                request.as_reader().read_to_string(&mut text).unwrap();
                let headers = request.headers().iter();
                let headers = headers
                    .map(|header| {
                        let name = header.field.as_str().as_str().to_ascii_lowercase();
                        (name, header.value.as_str().to_owned())
                    })
                    .collect();
                let mut taken = kept.lock().unwrap();
                let (status, more, body) = answer(taken.exports.len());
                if status == 200 {
                    taken.spans.extend(spans(&text));
                }
                taken.exports.push(Export { headers, text });
                drop(taken);
                let mut response = tiny_http::Response::from_string(body).with_status_code(status);
                for (name, value) in more {
                    response.add_header(tiny_http::Header::from_bytes(name, value).unwrap());
                }
                // A client that left is what some tests are about.
                let _ = request.respond(response);
            }
        });
        Self {
            server,
            taken,
            serving: Some(serving),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.server_addr().to_ip().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    pub(crate) fn exports(&self) -> Vec<Export> {
        self.taken.lock().unwrap().exports.clone()
    }

    /// The spans that were taken, by their names.
    pub(crate) fn named(&self, name: &str) -> Vec<Span> {
        let taken = self.taken.lock().unwrap();
        let named = taken.spans.iter().filter(|span| span.name == name);
        named.cloned().collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.unblock();
        let serving = self.serving.take().unwrap().join();
        if !std::thread::panicking() {
            serving.expect("every export has the form of OTLP");
        }
    }
}

/// The spans of an export, read strictly.
fn spans(text: &str) -> Vec<Span> {
    let body: Value = serde_json::from_str(text).unwrap();
    let mut spans = Vec::new();
    for of_resource in body["resourceSpans"].as_array().unwrap() {
        let resource = attributes(&of_resource["resource"]["attributes"]);
        for name in ["service.name", "service.version", "service.instance.id"] {
            assert!(!resource[name].is_empty(), "{resource:?}");
        }
        for of_scope in of_resource["scopeSpans"].as_array().unwrap() {
            let found = of_scope["spans"].as_array().unwrap();
            spans.extend(found.iter().map(span));
        }
    }
    spans
}

fn span(span: &Value) -> Span {
    let hexadecimal = |name: &str, digits: usize| {
        let text = span[name].as_str().unwrap();
        let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_hexadecimal && text.len() == digits, "{span}");
        text.to_owned()
    };
    let time = |name: &str| span[name].as_str().unwrap().parse().unwrap();
    Span {
        trace: hexadecimal("traceId", 32),
        id: hexadecimal("spanId", 16),
        parent: span
            .get("parentSpanId")
            .map(|_| hexadecimal("parentSpanId", 16)),
        name: span["name"].as_str().unwrap().to_owned(),
        kind: span["kind"].as_u64().unwrap(),
        is_failed: span["status"]["code"] == 2,
        began: time("startTimeUnixNano"),
        ended: time("endTimeUnixNano"),
        attributes: attributes(&span["attributes"]),
    }
}

fn attributes(list: &Value) -> BTreeMap<String, String> {
    let list = list.as_array().unwrap().iter();
    list.map(|pair| {
        let key = pair["key"].as_str().unwrap().to_owned();
        (key, text_of(&pair["value"]))
    })
    .collect()
}

fn text_of(value: &Value) -> String {
    if let Some(text) = value["stringValue"].as_str().or(value["intValue"].as_str()) {
        return text.to_owned();
    }
    if let Some(is_so) = value["boolValue"].as_bool() {
        return is_so.to_string();
    }
    let values = value["arrayValue"]["values"].as_array().unwrap().iter();
    values.map(text_of).collect::<Vec<_>>().join(",")
}
