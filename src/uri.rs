//! Percent-encoding of parts of URIs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};

/// All but the characters that RFC 3986 leaves unencoded.
pub const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A part of a URI with everything encoded that is not unreserved.
pub fn percent_encoded(part: &[u8]) -> PercentEncode<'_> {
    percent_encode(part, UNRESERVED)
}
