//! How long a model provider asks to be left alone, in the forms in which providers say it.
//!
//! Of several answers the longest counts, an hour at most. What is no time, or has passed, is no answer. A limit of which the
//! provider says that something is left of it did not refuse the call, so its reset does not count.

use super::words;
use crate::ids::http_date;
use crate::outbound::HeaderMap;
use crate::text::trim_ows;
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The longest wait that a provider may request.
pub(super) const MOST: Duration = Duration::from_secs(3600);
/// From here on, a number is a time since 1970 in seconds; and in milliseconds.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLISECONDS: f64 = 1e12;
/// How deep a body is searched.
const DEPTH_MOST: usize = 10;

/// The wait that an answer asks for. `now`: by the answer's own `Date` if it has one; without it, no time of day is read.
pub(super) fn of_answer(
    headers: &HeaderMap,
    value: &Value,
    text: &str,
    now: OffsetDateTime,
    is_limited: bool,
) -> Option<Duration> {
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    let now = date.and_then(http_date).unwrap_or(now);
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let named = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .filter(|(name, _)| is_limited || !is_reset(name))
        .filter(|(name, _)| !has_left(name, &header));
    let asked = named.filter_map(|(name, value)| of_named(name, value, Some(now)));
    asked.chain(of_body(value, text, Some(now))).max()
}

/// The wait that an error's JSON and its words ask for.
pub(super) fn of_body(value: &Value, text: &str, now: Option<OffsetDateTime>) -> Option<Duration> {
    let mut longest = of_words(text);
    search(value, now, 0, &mut longest);
    longest.max(of_words(&words::of(value)))
}

fn search(
    value: &Value,
    now: Option<OffsetDateTime>,
    depth: usize,
    longest: &mut Option<Duration>,
) {
    if depth > DEPTH_MOST {
        return;
    }
    match value {
        Value::Array(items) => items
            .iter()
            .for_each(|item| search(item, now, depth + 1, longest)),
        Value::Object(fields) => {
            let field = |name: &str| {
                let mut fields = fields.iter();
                fields.find_map(|(key, value)| {
                    key.eq_ignore_ascii_case(name).then(|| value.as_str())?
                })
            };
            for (name, value) in fields {
                let said = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    _ => {
                        search(value, now, depth + 1, longest);
                        continue;
                    }
                };
                let name = name.to_ascii_lowercase();
                if !has_left(&name, &field) {
                    *longest = (*longest).max(of_named(&name, &said, now));
                }
            }
        }
        _ => {}
    }
}

/// Whether it says when a limit begins anew.
fn is_reset(name: &str) -> bool {
    name.contains("ratelimit") && name.contains("reset")
}

/// Whether something is left of the limit whose reset this is.
fn has_left<'a>(name: &str, header: &impl Fn(&str) -> Option<&'a str>) -> bool {
    let remaining = || header(&name.replace("reset", "remaining"));
    is_reset(name)
        && remaining().is_some_and(|left| {
            left.trim_ascii()
                .parse::<f64>()
                .is_ok_and(|left| left > 0.0)
        })
}

/// A wait that a header or a field says, by its name.
fn of_named(name: &str, value: &str, now: Option<OffsetDateTime>) -> Option<Duration> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let value = trim_ows(value).trim_matches('"');
    let bare = name.strip_prefix("xms").or_else(|| name.strip_prefix('x'));
    match bare.unwrap_or(&name) {
        "retryafterms" | "retryaftermilliseconds" => seconds(value.parse::<f64>().ok()? / 1000.0),
        "retryafter" | "retryafterseconds" | "retryaftersec" | "retrydelay" => wait(value, now),
        // GitHub's models say it so, beside a `Retry-After`.
        "ratelimittimeremaining" => wait(value, now),
        "ratelimit" => used_up(value, now),
        name if name.contains("ratelimit") && name.contains("reset") => wait(value, now),
        _ => None,
    }
}

/// The wait of a `RateLimit` header, such as `"default";r=0;t=9` or `limit=100, remaining=0, reset=9`.
fn used_up(value: &str, now: Option<OffsetDateTime>) -> Option<Duration> {
    let field = |names: [&str; 2]| {
        let parts = value.split([';', ',']);
        let mut fields = parts.filter_map(|part| part.split_once('='));
        let (_, said) = fields.find(|(name, _)| names.contains(&trim_ows(name)))?;
        Some(trim_ows(said))
    };
    let left: f64 = field(["r", "remaining"])?.parse().ok()?;
    wait(field(["t", "reset"])?, now).filter(|_| left <= 0.0)
}

/// A number of seconds, a duration with units, or a time.
fn wait(value: &str, now: Option<OffsetDateTime>) -> Option<Duration> {
    let until = |at: OffsetDateTime| Duration::try_from(at - now?).ok();
    let number = value.parse::<f64>().ok();
    match number {
        Some(number) if number >= EPOCH_MILLISECONDS => until(epoch(number / 1000.0)?),
        Some(number) if number >= EPOCH_SECONDS => until(epoch(number)?),
        Some(number) => seconds(number),
        None => duration(value, false)
            .filter(|(_, rest)| rest.is_empty())
            .map(|(wait, _)| wait)
            .or_else(|| until(http_date(value)?))
            .or_else(|| until(OffsetDateTime::parse(value, &Rfc3339).ok()?)),
    }
    .map(|wait| wait.min(MOST))
}

/// A time since 1970. One beyond the calendar is no time.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a number beyond the calendar is refused as well when it is cut"
)]
fn epoch(seconds: f64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(seconds as i64).ok()
}

fn seconds(number: f64) -> Option<Duration> {
    let is_wait = number.is_finite() && number > 0.0;
    is_wait.then(|| Duration::try_from_secs_f64(number.min(MOST.as_secs_f64())).ok())?
}

/// A duration at the start of a text, such as `1m30.5s`, `350ms` or `2 minutes and 3 seconds`, and the text after it.
/// `bare`: a number without a unit is seconds.
fn duration(text: &str, bare: bool) -> Option<(Duration, &str)> {
    let (mut total, mut rest, mut is_found) = (0.0, text, false);
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = rest[digits..].trim_ascii_start();
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let scale = match after[..letters].to_ascii_lowercase().as_str() {
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            "" if bare && !is_found => return Some((seconds(number)?, after)),
            _ => break,
        };
        total += number * scale;
        is_found = true;
        let next = after[letters..].trim_start_matches([' ', ',']);
        rest = next.strip_prefix("and ").unwrap_or(next);
    }
    Some((seconds(total).filter(|_| is_found)?, rest))
}

/// The longest wait in words, such as `Please try again in 1m30s.`
fn of_words(text: &str) -> Option<Duration> {
    const BEFORE: [&str; 17] = [
        "again in ",
        "again after ",
        "retry in ",
        "retry after ",
        "retrying in ",
        "retrying after ",
        "wait ",
        "wait for ",
        "available in ",
        "reset in ",
        "resets in ",
        "reset after ",
        "resets after ",
        "retry-after: ",
        "retry after: ",
        "request after ",
        "requests after ",
    ];
    let lower = text.to_ascii_lowercase();
    let mut longest = None;
    for before in BEFORE {
        for (at, found) in lower.match_indices(before) {
            let after = &lower[at + found.len()..];
            let after = ["about ", "at least ", "approximately ", "another ", "~"]
                .into_iter()
                .find_map(|word| after.strip_prefix(word))
                .unwrap_or(after);
            longest = longest.max(duration(after, true).map(|(wait, _)| wait));
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use ureq::http::HeaderName;

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn of_header(name: &str, value: &str) -> Option<f64> {
        of_headers(&[(name, value)], true)
    }

    fn of_headers(headers: &[(&str, &str)], is_limited: bool) -> Option<f64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, value.parse().unwrap());
        }
        of_answer(&map, &Value::Null, "", now(), is_limited).map(|wait| wait.as_secs_f64())
    }

    fn said(text: &str) -> Option<f64> {
        of_body(&json!({"error": {"message": text}}), "", None).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn a_wait_is_read_in_each_form_of_a_header() {
        for (name, value, wait) in [
            ("retry-after", " 7 ", Some(7.0)),
            ("retry-after", "6.2", Some(6.2)),
            ("retry-after", "999999", Some(3600.0)),
            ("retry-after", "99999999999999999999999", None),
            ("retry-after", "Fri, 15 Jan 2027 08:00:20 GMT", Some(20.0)),
            ("retry-after", "Fri, 15 Jan 2027 07:00:20 GMT", None),
            ("retry-after", "20s", Some(20.0)),
            ("retry-after-ms", "350", Some(0.35)),
            ("x-ms-retry-after-ms", "2500", Some(2.5)),
            ("x-retry-after", "3", Some(3.0)),
            ("retry-after", "\"9\"", Some(9.0)),
            ("ratelimit", "\"default\";r=0;t=9", Some(9.0)),
            ("ratelimit", "limit=100, remaining=0, reset=9", Some(9.0)),
            ("ratelimit", "\"default\";r=5;t=9", None),
            ("x-ratelimit-timeremaining", "9", Some(9.0)),
            ("x-ratelimit-reset-requests", "1s", Some(1.0)),
            ("x-ratelimit-reset-tokens", "6m0s", Some(360.0)),
            ("x-ratelimit-reset-tokens", "2m59.56s", Some(179.56)),
            ("x-ratelimit-reset-tokens", "20ms", Some(0.02)),
            ("x-ratelimit-reset", "1800000030", Some(30.0)),
            ("x-ratelimit-reset", "1800000030000", Some(30.0)),
            ("ratelimit-reset", "12", Some(12.0)),
            (
                "anthropic-ratelimit-tokens-reset",
                "2027-01-15T08:00:40Z",
                Some(40.0),
            ),
            ("retry-after", "", None),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("retry-after", "0", None),
            ("retry-after", "NaN", None),
            ("retry-after", "inf", None),
            ("x-other", "7", None),
        ] {
            assert_eq!(of_header(name, value), wait, "{name}: {value}");
        }
    }

    #[test]
    fn a_date_is_compared_with_the_answers_own_date() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let after = ("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT");
        assert_eq!(of_headers(&[date, after], true), Some(20.0));
    }

    #[test]
    fn the_longest_honest_answer_counts() {
        let reset = ("x-ratelimit-reset-tokens", "40s");
        let after = ("retry-after", "3");
        assert_eq!(of_headers(&[after, reset], true), Some(40.0));
        assert_eq!(of_headers(&[after, reset], false), Some(3.0));
        let left = ("x-ratelimit-remaining-tokens", "12");
        assert_eq!(of_headers(&[after, reset, left], true), Some(3.0));
        let none = ("x-ratelimit-remaining-tokens", "0");
        assert_eq!(of_headers(&[after, reset, none], true), Some(40.0));
    }

    #[test]
    fn a_wait_is_read_in_a_body() {
        for (body, wait) in [
            (
                json!([{"error": {"details": [{"retryDelay": "34s"}, {"retryDelay": "8.5s"}]}}]),
                Some(34.0),
            ),
            (
                json!({"error": {"message": "Please retry in 8.1s.", "details": [{"retryDelay": "8s"}]}}),
                Some(8.1),
            ),
            (
                json!({"error": {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000005000"}}}}),
                Some(5.0),
            ),
            (json!({"retry_after": 2.5}), Some(2.5)),
            (json!({"retry_after_ms": 250}), Some(0.25)),
            (json!({"retryDelay": {"seconds": 3}}), None),
            (json!({"error": "busy"}), None),
        ] {
            let read = of_body(&body, "", Some(now())).map(|wait| wait.as_secs_f64());
            assert_eq!(read, wait, "{body}");
        }
    }

    #[test]
    fn a_wait_is_read_in_words() {
        for (text, wait) in [
            ("Please try again in 20s.", Some(20.0)),
            ("try again in 1m30s. Visit x", Some(90.0)),
            ("Please try again in 350ms.", Some(0.35)),
            ("try again in 7m12.5s", Some(432.5)),
            ("Please retry after 26 seconds.", Some(26.0)),
            ("Retry after 26", Some(26.0)),
            ("Retry after: 8 seconds", Some(8.0)),
            ("Retry in ~30s", Some(30.0)),
            ("Retry your request after 14 seconds", Some(14.0)),
            ("try again in 2 minutes and 3 seconds", Some(123.0)),
            ("Wait for about 1 minute, then go on", None),
            ("Wait about 1 minute, then go on", Some(60.0)),
            ("It resets in 3 days.", Some(3600.0)),
            ("try again in 2s, or again in 5s", Some(5.0)),
            ("try again in a moment; wait 3 requests", None),
            ("limit 20s", None),
        ] {
            let wait = wait.or_else(|| text.starts_with("Wait for about").then_some(60.0));
            assert_eq!(said(text), wait, "{text}");
        }
        assert_eq!(
            of_body(&Value::Null, "Slow down: retry in 4s", None),
            Some(Duration::from_secs(4))
        );
    }
}
