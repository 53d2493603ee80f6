//! Which header blocks the door accepts, beyond what hyper refuses (RFC 9110, RFC 9112).
//!
//! hyper refuses folded lines, control characters, and malformed or differing lengths. It merges
//! two equal lengths. It drops `Content-Length` beside `Transfer-Encoding`, and then closes the
//! connection. It cuts off a target's fragment, which `wire` notices.

use super::limits::Limits;
use crate::error::{Code, Error, Result};
use hyper::header::{
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    ORIGIN, TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

/// Fields that decide who is asking, from which page, for what, or how a body is read: a second one is an attempt
/// to have two readers see two requests. `Host` and `Transfer-Encoding` are looked at below.
///
/// Of what is not here, `Cookie` and `Accept-Encoding` are lists, of two `traceparent` none counts (Trace Context, section
/// 3.2), and one field of `Forwarded` and its like is enough to say that a proxy is in between.
const SINGLE: [HeaderName; 9] = [
    ACCESS_CONTROL_REQUEST_METHOD,
    AUTHORIZATION,
    CONTENT_TYPE,
    ORIGIN,
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("svc-background"),
    HeaderName::from_static("svc-origin"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
];

/// Why the request is refused before its body is looked at, if it is.
pub(super) fn check(head: &Parts, limits: &Limits) -> Result<()> {
    target(head)?;
    if head.headers.len() > limits.headers {
        return Err(Error::new(
            Code::HeadersTooLarge,
            format!(
                "The request has more than {} header fields.",
                limits.headers
            ),
        ));
    }
    host(&head.headers)?;
    for name in &SINGLE {
        if head.headers.get_all(name).iter().nth(1).is_some() {
            return Err(invalid(format!("The header {name} may be given once.")));
        }
    }
    for (name, value) in &head.headers {
        if std::str::from_utf8(value.as_bytes()).is_err() {
            return Err(invalid(format!("The header {name} is not UTF-8 text.")));
        }
    }
    transfer_encoding(&head.headers)
}

/// 413, with the limit.
pub(super) fn too_large(most_bytes: u64) -> Error {
    Error::new(
        Code::BodyTooLarge,
        format!("The body is longer than the {most_bytes} bytes that are taken here."),
    )
    .detail("mostBytes", most_bytes)
}

/// 400: a fragment is the client's own, and never sent (RFC 9110, section 7.1).
pub(super) fn fragment() -> Error {
    invalid(
        "The request target has a fragment. Leave out the `#` and what follows, or write `#` as %23.",
    )
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidRequest, message)
}

fn target(head: &Parts) -> Result<()> {
    let origin_form = head.uri.scheme().is_none()
        && head.uri.authority().is_none()
        && head.uri.path().starts_with('/');
    if origin_form {
        return Ok(());
    }
    Err(invalid(
        "The request target must be a path that begins with a slash.",
    ))
}

fn host(headers: &HeaderMap) -> Result<()> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(invalid("The request needs exactly one Host header."));
    };
    let valid = Authority::try_from(host.as_bytes())
        .is_ok_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
    if valid {
        return Ok(());
    }
    Err(invalid(
        "The Host header is not a host with an optional port.",
    ))
}

fn transfer_encoding(headers: &HeaderMap) -> Result<()> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(invalid("The only Transfer-Encoding taken is `chunked`.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(target: &str, headers: &[(&str, &str)]) -> Option<Code> {
        let mut request = hyper::Request::builder().method("POST").uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        check(&head, &Limits::default()).err().map(|e| e.code())
    }

    #[test]
    fn takes_an_ordinary_head() {
        let headers = [
            ("host", "[::1]:8080"),
            ("transfer-encoding", "Chunked"),
            ("x-name", "Zoë"),
        ];
        assert_eq!(outcome("/v1/runs?limit=1", &headers), None);
    }

    #[test]
    fn refuses_what_two_readers_could_read_differently() {
        let host = ("host", "a");
        let invalid = Some(Code::InvalidRequest);
        assert_eq!(outcome("/", &[]), invalid);
        assert_eq!(outcome("/", &[host, host]), invalid);
        assert_eq!(outcome("/", &[("host", "")]), invalid);
        assert_eq!(outcome("/", &[("host", "a b")]), invalid);
        assert_eq!(outcome("/", &[("host", "user@a")]), invalid);
        assert_eq!(outcome("http://a/", &[host]), invalid);
        assert_eq!(outcome("*", &[host]), invalid);
        assert_eq!(outcome("a:443", &[host]), invalid);
        for coding in ["gzip, chunked", "identity", "chunked, chunked", ""] {
            assert_eq!(
                outcome("/", &[host, ("transfer-encoding", coding)]),
                invalid
            );
        }
        for name in SINGLE {
            let field = (name.as_str(), "1");
            assert_eq!(outcome("/", &[host, field, field]), invalid, "{name}");
        }
    }

    #[test]
    fn refuses_too_much() {
        let mut many = vec![("host", "a")];
        many.extend([("x", "1"); 64]);
        assert_eq!(outcome("/", &many), Some(Code::HeadersTooLarge));
    }
}
