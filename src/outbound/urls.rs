//! The URLs that may leave this process.

use super::failure::{Failure, Kind};
use super::policy::Policy;
use super::refusal::Rule;
use url::Url;

/// The longest URL accepted, in bytes; browsers and proxies have the same limit.
pub const MAX_URL_BYTES: usize = 2048;

/// The longest host name (RFC 1035), including a final dot.
pub(super) const MAX_HOST_BYTES: usize = 254;

pub(super) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Kind::Invalid, message)
}

/// Parses an absolute http or https URL, the only kind that leaves this process.
pub(super) fn parse(policy: Policy, text: &str) -> Result<Url, Failure> {
    if text.len() > MAX_URL_BYTES {
        return Err(invalid(format!(
            "The URL is longer than {MAX_URL_BYTES} bytes."
        )));
    }
    let url =
        Url::parse(text).map_err(|error| invalid(format!("The URL is not valid: {error}.")))?;
    // The form of a webhook receiver's URL is checked by the webhook policy, with its own messages.
    let misshapen = |rule, message| match policy {
        Policy::Webhook(_) => Failure::new(Kind::Refused, message).by_rule(rule),
        Policy::Operator | Policy::Tenant(_) => invalid(message),
    };
    if !matches!(url.scheme(), "http" | "https") {
        let message = "The URL must begin with http:// or https://.";
        return Err(misshapen(Rule::Scheme, message));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let message = "The URL must not hold a user name or a password; use a secret instead.";
        return Err(misshapen(Rule::UserInfo, message));
    }
    if url.fragment().is_some() {
        let message = "The URL must not have a fragment (#).";
        return Err(misshapen(Rule::Fragment, message));
    }
    if url
        .host_str()
        .is_none_or(|host| host.is_empty() || host.len() > MAX_HOST_BYTES)
    {
        return Err(invalid("The URL has no host, or too long a one."));
    }
    if url.as_str().len() > MAX_URL_BYTES || url.as_str().parse::<ureq::http::Uri>().is_err() {
        return Err(invalid("The URL is not one that HTTP can carry."));
    }
    Ok(url)
}
