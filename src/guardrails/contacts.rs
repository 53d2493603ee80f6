//! Addresses of email, telephone numbers, addresses of computers.

use super::finding::{Finding, stands_alone};
use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

fn compiled(expression: &str) -> Regex {
    Regex::new(expression).unwrap_or_else(|fault| panic!("{fault}"))
}

static EMAILS: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"[\p{L}\p{N}._%+-]+@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}"));

/// With a plus, or in groups as numbers are written: (030) 123-4567, 555-123-4567, 030 / 1234567.
static PHONES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\+[0-9](?:[ ().-]{0,3}[0-9]){6,14}|\([0-9]{2,5}\) ?[0-9]{2,4}[ -]?[0-9]{3,5}|[2-9][0-9]{2}[ -][2-9][0-9]{2}[ -][0-9]{4}|0[1-9][0-9]{1,4}(?: ?/ ?| |-)[0-9]{3,4}[ -]?[0-9]{2,5}(?:[ -][0-9]{2,4})?",
    )
});

static QUADS: LazyLock<Regex> = LazyLock::new(|| compiled(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3,}"));

static COLONS: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\.[0-9]{1,3}){0,3}"));

pub(super) fn emails(text: &str, found: &mut Vec<Finding>) {
    found.extend(EMAILS.find_iter(text).map(|one| Finding {
        range: one.range(),
        kind: "email",
    }));
}

pub(super) fn phones(text: &str, found: &mut Vec<Finding>) {
    for one in PHONES.find_iter(text) {
        let digits = one.as_str().bytes().filter(u8::is_ascii_digit).count();
        // What is longer, or goes on with a point, a dash or a colon, is a number of another kind: an order, a version, a time.
        let (before, after) = (&text[..one.start()], &text[one.end()..]);
        let goes_on = |next: Option<char>, then: Option<char>| {
            next.is_some_and(|c| ['.', '-', ':', '/', '_', '#'].contains(&c))
                && then.is_some_and(|c| c.is_ascii_digit())
        };
        let mut back = before.chars().rev();
        let mut ahead = after.chars();
        let is_part = goes_on(back.next(), back.next())
            || goes_on(ahead.next(), ahead.next())
            || before.ends_with(['#', '_']);
        if (7..=15).contains(&digits) && !is_part && stands_alone(text, &one.range()) {
            found.push(Finding {
                range: one.range(),
                kind: "phone",
            });
        }
    }
}

pub(super) fn addresses(text: &str, found: &mut Vec<Finding>) {
    let quads = QUADS.find_iter(text).filter(|one| {
        let before = text[..one.start()].chars().next_back();
        one.as_str().parse::<Ipv4Addr>().is_ok() && before != Some('.')
    });
    let colons = COLONS.find_iter(text).filter(|one| {
        // Times and paths in Rust have colons, too; the loopback address is nobody's.
        let is_long = one.as_str().bytes().filter(u8::is_ascii_hexdigit).count() >= 4;
        is_long && one.as_str().parse::<Ipv6Addr>().is_ok()
    });
    for one in quads.chain(colons) {
        if stands_alone(text, &one.range()) {
            found.push(Finding {
                range: one.range(),
                kind: "ip",
            });
        }
    }
}

#[cfg(feature = "bench")]
pub(super) fn expressions() -> Vec<&'static str> {
    vec![
        EMAILS.as_str(),
        PHONES.as_str(),
        QUADS.as_str(),
        COLONS.as_str(),
    ]
}
