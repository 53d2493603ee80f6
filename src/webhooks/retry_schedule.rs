//! When a delivery is retried (specification section 6.2, rule 1), following Standard Webhooks.

use crate::text::trim_ows;
use std::time::Duration;
use time::macros::format_description;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// The wait after each failed attempt but the last, in seconds.
const INTERVALS_SECONDS: [u64; 9] = [
    MINUTE,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];

/// Longer by up to this many thousandths, so that what failed together does not return together.
/// Never shorter: the specification names the intervals.
const JITTER: u32 = 200;

/// How long to wait after the given number of failed attempts, or `None` when that was the last.
///
/// `asked` is what the receiver asks for: honoured between one and two times the interval.
pub(super) fn wait(attempts: i32, asked: Option<Duration>) -> Option<Duration> {
    let mut random = [0; 4];
    // Without random bytes there is no jitter, and still a wait.
    let drawn = match getrandom::fill(&mut random) {
        Ok(()) => u32::from_ne_bytes(random) % (JITTER + 1),
        Err(_) => 0,
    };
    wait_drawn(attempts, asked, drawn)
}

fn wait_drawn(attempts: i32, asked: Option<Duration>, drawn: u32) -> Option<Duration> {
    let place = usize::try_from(attempts).ok()?.checked_sub(1)?;
    let interval = Duration::from_secs(*INTERVALS_SECONDS.get(place)?);
    Some(match asked {
        Some(asked) => asked.clamp(interval, 2 * interval),
        None => interval * (1000 + drawn) / 1000,
    })
}

/// The wait that a `Retry-After` header asks for (RFC 9110, section 10.2.3): seconds, or a date in
/// one of its three forms. `None` for anything else.
pub(super) fn retry_after(value: &str, now: OffsetDateTime) -> Option<Duration> {
    let value = trim_ows(value);
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // What does not fit is longer than any interval.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let at = http_date(value, now)?;
    Some(Duration::try_from(at - now).unwrap_or(Duration::ZERO))
}

fn http_date(value: &str, now: OffsetDateTime) -> Option<OffsetDateTime> {
    let parts: Vec<&str> = value
        .split([' ', ',', '-'])
        .filter(|part| !part.is_empty())
        .collect();
    let (day, month, year, clock) = match parts[..] {
        [_, day, month, year, clock, "GMT"] => (day, month, year, clock),
        [_, month, day, clock, year] => (day, month, year, clock),
        _ => return None,
    };
    let month = (1..=12)
        .filter_map(|number| Month::try_from(number).ok())
        .find(|known| known.to_string().get(..3) == Some(month))?;
    let year = match (year.len(), year.parse::<i32>().ok()?) {
        (4, year) => year,
        (2, year) => {
            // Of the years that end so, the last that is at most 50 years ahead.
            let most = now.year() + 50;
            most - (most - year).rem_euclid(100)
        }
        _ => return None,
    };
    let date = Date::from_calendar_date(year, month, day.parse().ok()?).ok()?;
    let clock = Time::parse(clock, format_description!("[hour]:[minute]:[second]")).ok()?;
    Some(PrimitiveDateTime::new(date, clock).assume_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn ten_attempts_with_waits_no_shorter_than_the_intervals() {
        let expected = [60, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
        for (attempts, seconds) in (1..).zip(expected) {
            let interval = Duration::from_secs(seconds);
            let drawn = |drawn| wait_drawn(attempts, None, drawn);
            assert_eq!(drawn(0), Some(interval));
            assert_eq!(drawn(100), Some(interval * 11 / 10));
            assert_eq!(drawn(200), Some(interval * 12 / 10));
            let waits: Vec<_> = (0..50).map(|_| wait(attempts, None).unwrap()).collect();
            let bounds = interval..=interval * 12 / 10;
            assert!(waits.iter().all(|wait| bounds.contains(wait)));
            assert!(waits.iter().any(|wait| *wait != waits[0]), "no jitter");
        }
        for attempts in [10, 11, 0, -1] {
            assert_eq!(wait(attempts, Some(Duration::ZERO)), None);
        }
    }

    #[test]
    fn what_the_receiver_asks_for_is_bounded() {
        let minute = Duration::from_secs(60);
        let wait = |seconds| wait_drawn(1, Some(Duration::from_secs(seconds)), 0).unwrap();
        assert_eq!(wait(0), minute);
        assert_eq!(wait(59), minute);
        assert_eq!(wait(90), Duration::from_secs(90));
        assert_eq!(wait(u64::MAX), 2 * minute);
    }

    #[test]
    fn retry_after_in_all_its_forms() {
        let now = datetime!(1994-11-06 08:48:37 UTC);
        let minute = Some(Duration::from_secs(60));
        for (value, expected) in [
            ("60", minute),
            (" 60 ", minute),
            ("0", Some(Duration::ZERO)),
            (
                "99999999999999999999999",
                Some(Duration::from_secs(u64::MAX)),
            ),
            ("Sun, 06 Nov 1994 08:49:37 GMT", minute),
            ("Sunday, 06-Nov-94 08:49:37 GMT", minute),
            ("Sun Nov  6 08:49:37 1994", minute),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("Sunday, 06-Nov-45 08:49:37 GMT", Some(Duration::ZERO)),
            ("", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("Sun, 31 Feb 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Nov 1994 25:49:37 GMT", None),
            ("a b c d e f g h", None),
        ] {
            assert_eq!(retry_after(value, now), expected, "{value}");
        }
    }
}
