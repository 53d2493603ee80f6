//! Percent-encoding of parts of URIs, and what of a URL may be shown.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};

/// All but the characters that RFC 3986 leaves unencoded.
pub const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The host of a URL, which may be shown: the rest of a tenant's URL may contain a secret. Empty where there is none.
pub fn host(url: &str) -> String {
    let url = url::Url::parse(url).ok();
    let host = url.as_ref().and_then(url::Url::host_str);
    host.unwrap_or_default().to_owned()
}

/// The origin of an HTTP URL: scheme, host, and the port unless it is the scheme's own. None: it is no such URL.
pub fn origin(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https");
    is_http.then(|| url.origin().ascii_serialization())
}

/// The origin that a text is, without a path, a query or a user. None: it is none, or has white space, which a URL's reader
/// would leave out, or a `*`, which is no host.
pub fn bare_origin(text: &str) -> Option<String> {
    if text.bytes().any(|byte| byte <= b' ' || byte == b'*') {
        return None;
    }
    let url = url::Url::parse(text).ok()?;
    let is_bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    is_bare.then(|| origin(text)).flatten()
}

/// A part of a URI with everything encoded that is not unreserved.
pub fn percent_encoded(part: &[u8]) -> PercentEncode<'_> {
    percent_encode(part, UNRESERVED)
}
