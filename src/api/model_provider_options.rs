//! The `serverOptions` of a model provider: what is checked before they are stored.
//!
//! Not here: what they mean (`model::options`), and how they are used (`model`).

use super::request_parts::invalid_body;
use crate::error::Result;
use crate::http::faults::both;
use crate::model::options::{
    API_VERSION_MOST, CALL_MS_MOST, CALLS_AT_ONCE_MOST, HEADER_VALUE_MOST, HEADERS_MOST,
    TIMEOUT_MS_LEAST, TIMEOUT_MS_MOST, TRIES_MOST,
};
use crate::model::{ProviderHeader, ProviderOptions};
use crate::runtime::ModelKeys;
use crate::tools::header_fault;
use std::collections::HashSet;

/// The options of a provider at `base_url` can be used.
///
/// # Errors
/// `invalid-body` with every fault.
pub(super) fn check(keys: &ModelKeys, options: &ProviderOptions, base_url: &str) -> Result<()> {
    let with = |all, (path, expected): (String, String)| {
        let fault = invalid_body(&format!("$.serverOptions.{path}"), expected);
        both(all, Err(fault)).map(|((), ())| ())
    };
    faults(keys, options, base_url)
        .into_iter()
        .fold(Ok(()), with)
}

/// Each fault: its path below `$.serverOptions`, and what was expected.
fn faults(keys: &ModelKeys, options: &ProviderOptions, base_url: &str) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    let mut check = |is_right: bool, path: &str, expected: String| {
        if !is_right {
            faults.push((path.to_owned(), expected));
        }
    };
    let timeouts = &options.timeouts;
    for (path, value, most) in [
        (
            "timeouts.firstByteMs",
            timeouts.first_byte_ms,
            TIMEOUT_MS_MOST,
        ),
        ("timeouts.idleMs", timeouts.idle_ms, TIMEOUT_MS_MOST),
        ("timeouts.callMs", timeouts.call_ms, CALL_MS_MOST),
    ] {
        let is_right = value.is_none_or(|ms| (TIMEOUT_MS_LEAST..=most).contains(&ms));
        check(
            is_right,
            path,
            format!("{TIMEOUT_MS_LEAST} to {most} milliseconds"),
        );
    }
    let tries = options.tries.is_none_or(|n| (1..=TRIES_MOST).contains(&n));
    check(tries, "tries", format!("1 to {TRIES_MOST}"));
    let at_once = 1..=CALLS_AT_ONCE_MOST;
    let at_once = options.calls_at_once.is_none_or(|n| at_once.contains(&n));
    check(at_once, "callsAtOnce", format!("1 to {CALLS_AT_ONCE_MOST}"));
    let version = options.api_version.as_deref().is_none_or(is_api_version);
    let expected =
        format!("1 to {API_VERSION_MOST} letters, digits, points, hyphens and underscores");
    check(version, "apiVersion", expected);
    let quirks: HashSet<_> = options.quirks.iter().collect();
    let once = quirks.len() == options.quirks.len();
    check(once, "quirks", "quirks that stand once".to_owned());
    if let Some(expected) = options.key_header.as_deref().and_then(header_fault) {
        check(false, "keyHeader", expected.to_owned());
    }
    let few = options.headers.len() <= HEADERS_MOST;
    check(few, "headers", format!("{HEADERS_MOST} headers at most"));
    let mut seen: HashSet<String> = options
        .key_header
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    for (index, header) in options.headers.iter().take(HEADERS_MOST).enumerate() {
        let at = |field: &str| format!("headers[{index}].{field}");
        let name = header_fault(&header.name);
        if let Some(expected) = name {
            check(false, &at("name"), expected.to_owned());
        }
        let first = seen.insert(header.name.to_ascii_lowercase());
        check(first, &at("name"), "a header that stands once".to_owned());
        if let Some((field, expected)) = value_fault(keys, header, base_url) {
            check(false, &at(field), expected);
        }
    }
    faults
}

/// A field of a header, and what was expected of it.
fn value_fault(
    keys: &ModelKeys,
    header: &ProviderHeader,
    base_url: &str,
) -> Option<(&'static str, String)> {
    match (&header.value, &header.key_name) {
        // Whoever reads the provider reads it.
        (Some(_), None) if header.name.eq_ignore_ascii_case("authorization") => {
            let expected = "no value beside the header authorization: put the key into SVC_MODEL_KEYS, and name it in keyName";
            Some(("value", expected.to_owned()))
        }
        (Some(value), None) => {
            let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
            let is_value = (1..=HEADER_VALUE_MOST).contains(&value.len())
                && value.bytes().all(is_printable)
                && !value.starts_with(' ')
                && !value.ends_with(' ');
            let expected =
                format!("1 to {HEADER_VALUE_MOST} printable ASCII characters, no space at an end");
            (!is_value).then_some(("value", expected))
        }
        (None, Some(name)) => {
            let unlisted = keys.check(name, base_url).err()?;
            Some(("keyName", format!("a key of SVC_MODEL_KEYS. {unlisted}")))
        }
        _ => Some(("value", "a value or a keyName, and not both".to_owned())),
    }
}

fn is_api_version(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=API_VERSION_MOST).contains(&text.len()) && text.bytes().all(is_part)
}
