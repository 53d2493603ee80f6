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

/// A part of a URI with everything encoded that is not unreserved.
pub fn percent_encoded(part: &[u8]) -> PercentEncode<'_> {
    percent_encode(part, UNRESERVED)
}
