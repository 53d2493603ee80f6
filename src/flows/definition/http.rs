//! `call: http`.

use super::fault::{Code, Fault, Span};
use super::tree::{Endpoint, HttpCall, HttpOutput, Method, Template, UriPart};
use super::unsupported::Part;
use super::values::{Moment, Scope, braced};
use super::walk::{Fields, Location, Walk};
use serde_json::Value;
use url::Url;

/// Headers that frame an exchange, or that each hop on the way takes for itself.
const FRAMING: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What the names of headers contain whose value is a secret.
const SECRET_PARTS: [&str; 10] = [
    "api-key",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "password",
    "secret",
    "signature",
    "token",
    "x-auth",
];

/// Whether the value of a header is a secret, by its name.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

const METHODS: [(&str, Method); 7] = [
    ("get", Method::Get),
    ("head", Method::Head),
    ("post", Method::Post),
    ("put", Method::Put),
    ("patch", Method::Patch),
    ("delete", Method::Delete),
    ("options", Method::Options),
];

const OUTPUTS: [(&str, HttpOutput); 3] = [
    ("content", HttpOutput::Content),
    ("response", HttpOutput::Response),
    ("raw", HttpOutput::Raw),
];

impl<'a> Walk<'a> {
    pub(super) fn http(&mut self, mut fields: Fields<'a>, scope: &Scope) -> Option<HttpCall> {
        let at = (scope, Moment::Within);
        let method = fields.need(self, "method");
        let method = method.and_then(|(value, location)| {
            let lowercase = value.as_str().map(str::to_lowercase).map(Value::from);
            self.choice(lowercase.as_ref().unwrap_or(value), &location, &METHODS)
        });
        let endpoint = fields.need(self, "endpoint");
        let endpoint = endpoint.and_then(|(value, location)| self.endpoint(value, &location, at));
        let headers = match fields.take("headers") {
            Some((value, location)) => self.headers(value, &location, at).map(Some),
            None => Some(None),
        };
        let query = match fields.take("query") {
            Some((value, location)) => self.object_template(value, &location, at).map(Some),
            None => Some(None),
        };
        let body = match fields.take("body") {
            Some((value, location)) => self.template(value, &location, at).map(Some),
            None => Some(None),
        };
        let output = match fields.take("output") {
            Some((value, location)) => self.choice(value, &location, &OUTPUTS),
            None => Some(HttpOutput::Content),
        };
        let redirect = match fields.take("redirect") {
            Some((value, location)) => self.boolean(value, &location),
            None => Some(false),
        };
        fields.close(self, Part::Http);
        Some(HttpCall {
            method: method?,
            endpoint: endpoint?,
            headers: headers?,
            query: query?,
            body: body?,
            output: output?,
            redirect: redirect?,
        })
    }

    fn headers(
        &mut self,
        value: &Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<Template> {
        let found = self.object_template(value, location, at)?;
        let mut is_right = true;
        for (name, header) in value.as_object().into_iter().flatten() {
            let location = location.key(name);
            let lowercase = name.to_ascii_lowercase();
            let is_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let said = if !(1..=100).contains(&name.len()) || !name.bytes().all(is_token) {
                "A header's name has 1 to 100 letters, digits and hyphens."
            } else if FRAMING.contains(&lowercase.as_str()) {
                "This header frames the exchange, and is the service's to send."
            } else if !(header.is_string() || header.is_number() || header.is_boolean()) {
                "A header has one value: a text, a number, true or false."
            } else {
                let is_written = header.as_str().is_some_and(|text| braced(text).is_none());
                if is_written && is_secret_header(name) {
                    let said = "Everybody who may read the flow can read this secret.";
                    let fault = Fault::new(&location.path, Code::BadValue, said);
                    self.warn(fault.hint("Register a tool, which names its secrets."));
                }
                continue;
            };
            self.tell(&location, Code::BadValue, said);
            is_right = false;
        }
        is_right.then_some(found)
    }

    /// A text, or an object with a `uri`.
    fn endpoint(
        &mut self,
        value: &'a Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<Endpoint> {
        if value.is_string() {
            return self.uri(value, location, at);
        }
        let mut fields = self.object(value, location)?;
        let uri = fields.need(self, "uri");
        fields.close(self, Part::Endpoint);
        let (value, location) = uri?;
        self.uri(value, &location, at)
    }

    fn uri(
        &mut self,
        value: &Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<Endpoint> {
        let text = self.text(value, location)?;
        if braced(text).is_some() {
            return self
                .expression(value, location, at)
                .map(Endpoint::Expression);
        }
        let parts = match parts(text) {
            Ok(parts) => parts,
            Err((start, end, said)) => {
                let characters = |at: usize| text.get(..at).unwrap_or(text).chars().count();
                let span = Span {
                    start: characters(start),
                    end: characters(end),
                };
                let fault = Fault::new(&location.path, Code::BadValue, said);
                let hint = "`{id}` stands for a field of the task's input; `${ … }` computes the whole URL.";
                self.fault(Fault {
                    span: Some(span),
                    ..fault.hint(hint)
                });
                return None;
            }
        };
        let filled: String = parts
            .iter()
            .map(|part| match part {
                UriPart::Literal(text) => text,
                UriPart::Variable(_) => "x",
            })
            .collect();
        let url = Url::parse(&filled).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let said = match url {
            None => "An absolute URL that begins with https:// or http:// is expected.",
            Some(url) if !url.username().is_empty() || url.password().is_some() => {
                "A URL cannot have a user or a password. Register a tool, which names its secrets."
            }
            Some(_) => return Some(Endpoint::Uri(parts)),
        };
        self.tell(location, Code::BadValue, said);
        None
    }
}

/// The parts of a URI template of level 1, or what is wrong from where to where.
fn parts(text: &str) -> Result<Vec<UriPart>, (usize, usize, &'static str)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let start = text.len() - rest.len() + open;
        let (before, from) = rest.split_at(open);
        if before.ends_with('$') {
            return Err((start - 1, start + 1, "`${ }` must enclose the whole text."));
        }
        let Some((name, after)) = from
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
        else {
            return Err((start, start + 1, "This brace has no other half."));
        };
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_part) {
            let end = start + name.len() + 2;
            return Err((
                start,
                end,
                "Between braces stands a name of letters, digits and underscores.",
            ));
        }
        if !before.is_empty() {
            parts.push(UriPart::Literal(before.to_owned()));
        }
        parts.push(UriPart::Variable(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(UriPart::Literal(rest.to_owned()));
    }
    Ok(parts)
}
