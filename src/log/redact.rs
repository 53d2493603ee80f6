//! Redaction: hides values under sensitive keys, and recognisable credentials inside any text.
//!
//! One pass over the bytes, without backtracking. Nothing is guessed from entropy, and ids stay
//! (specification section 1.5). If a form is ambiguous, more is hidden rather than less.

use crate::text::beginning;
use std::ops::Range;

/// Longer texts are cut before redaction.
pub(super) const INPUT_MAX_BYTES: usize = 64 * 1024;
/// The length that is kept after redaction.
pub(super) const TEXT_MAX_BYTES: usize = 16 * 1024;
/// Marks the end of a cut text, and replaces one without space.
pub(super) const CUT: &str = "… [cut]";
/// Replaces a hidden value.
pub(super) const REDACTED: &str = "[redacted]";

/// The key suffixes of the specification, in lower case and without `-` and `_`.
const KEYS: [&str; 11] = [
    "authorization",
    "cookie",
    "token",
    "password",
    "secret",
    "secrets",
    "apikey",
    "privatekey",
    "passphrase",
    "credential",
    "credentials",
];

/// Prefixes of credentials that this service issues, with the characters that may follow besides
/// `A-Za-z0-9_-`. The specification lists the first one.
const TOKENS: [(&str, &[u8]); 6] = [
    ("svc_bt_", b""),
    ("svc_en_", b""),
    ("svc_ss_", b""),
    ("svc_pt_", b"."),
    ("svc_lk_", b"."),
    ("whsec_", b"+/="),
];

/// From this length on, a token keeps its last four characters.
const BODY_MIN_BYTES: usize = 8;

/// The key suffixes whose values are hidden.
pub(super) struct Keys(Vec<String>);

impl Keys {
    /// The suffixes of the specification and `further` ones.
    pub(super) fn new(further: &[String]) -> Self {
        let plain = |text: &str| normal(text).rev().collect::<String>();
        let listed = KEYS.into_iter().map(str::to_owned);
        let further = further.iter().map(|text| plain(text));
        Self(
            listed
                .chain(further.filter(|end| !end.is_empty()))
                .collect(),
        )
    }

    /// Whether the value under this key is hidden.
    pub(super) fn hide(&self, key: &str) -> bool {
        self.0.iter().any(|end| {
            let mut key = normal(key);
            end.chars().rev().all(|c| key.next() == Some(c))
        })
    }
}

/// The letters and digits of a key, last to first.
fn normal(key: &str) -> impl DoubleEndedIterator<Item = char> {
    key.chars()
        .rev()
        .filter(|c| *c != '-' && *c != '_')
        .flat_map(|c| c.to_lowercase().rev())
}

/// The text without tokens, bearer credentials and URL passwords, at most [`TEXT_MAX_BYTES`] long
/// plus a note if it was cut. `whole` is false if `text` is only a prefix.
pub(super) fn text(text: &str, whole: bool) -> String {
    let start = floor(text, INPUT_MAX_BYTES);
    let mut scan = Scan {
        text: &text[..start],
        bytes: &text.as_bytes()[..start],
        whole: whole && start == text.len(),
        at: 0,
        copied: 0,
        out: String::with_capacity(start.min(256)),
        hidden: None,
        run: None,
    };
    scan.run();
    scan.out
}

/// The greatest character boundary up to `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    beginning(text, at).len()
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Whether the whole text is here.
    whole: bool,
    /// The next byte to examine.
    at: usize,
    /// Everything before this is in `out`.
    copied: usize,
    out: String,
    /// The next URL password.
    hidden: Option<Range<usize>>,
    /// The end of the last examined run of non-blank bytes, and its last `@`.
    run: Option<(usize, Option<usize>)>,
}

impl Scan<'_> {
    fn run(&mut self) {
        while self.at < self.bytes.len() && self.out.len() + self.at - self.copied < TEXT_MAX_BYTES
        {
            let reached = self.hidden.take_if(|hidden| hidden.start <= self.at);
            if let Some(hidden) = reached.filter(|hidden| self.at < hidden.end) {
                self.put("***", hidden.end);
                continue;
            }
            let found = match self.bytes[self.at] {
                b's' | b'w' => self.token(),
                b'b' | b'B' => self.bearer(),
                b':' | b'%' => self.url(),
                _ => false,
            };
            if !found {
                self.at += 1;
            }
        }
        let cut = self.at < self.bytes.len() || !self.whole;
        self.at = floor(self.text, self.at);
        self.put("", self.at);
        if cut {
            self.out.truncate(floor(&self.out, TEXT_MAX_BYTES));
            self.out.push_str(CUT);
        }
    }

    /// Copies what was skipped, then writes `instead` for everything up to `to`.
    fn put(&mut self, instead: &str, to: usize) {
        self.out.push_str(&self.text[self.copied..self.at]);
        self.out.push_str(instead);
        self.at = to;
        self.copied = to;
    }

    fn while_at(&self, from: usize, takes: impl Fn(u8) -> bool) -> usize {
        let length = self.bytes[from..].iter().position(|byte| !takes(*byte));
        length.map_or(self.bytes.len(), |length| from + length)
    }

    /// A token: keep its prefix and its last four characters.
    fn token(&mut self) -> bool {
        let rest = &self.bytes[self.at..];
        let Some((prefix, further)) = TOKENS
            .into_iter()
            .find(|(prefix, _)| rest.starts_with(prefix.as_bytes()))
        else {
            return false;
        };
        let start = self.at + prefix.len();
        let mut end = self.while_at(start, |byte| {
            byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || further.contains(&byte)
        });
        while end > start && self.bytes[end - 1] == b'.' {
            end -= 1;
        }
        if end == start {
            return false;
        }
        let last = if end - start >= BODY_MIN_BYTES {
            &self.text[end - 4..end]
        } else {
            ""
        };
        let shown = format!("{prefix}***{last}");
        self.put(&shown, end);
        true
    }

    /// `Bearer <anything>`, in any case, up to the next blank, or up to the quote that matches one
    /// before the word.
    fn bearer(&mut self) -> bool {
        let word = self.at + "bearer".len();
        let matches = self
            .bytes
            .get(self.at..word)
            .is_some_and(|bytes| bytes.eq_ignore_ascii_case(b"bearer"));
        if !matches {
            return false;
        }
        let mut start = word;
        while start < self.bytes.len() {
            let rest = &self.text[start..];
            match rest.chars().next() {
                Some(c) if c.is_whitespace() || c.is_control() => start += c.len_utf8(),
                Some('%') if rest.starts_with("%20") => start += 3,
                _ => break,
            }
        }
        if start == word || start == self.bytes.len() {
            return false;
        }
        let quoted = self.at > 0 && self.bytes[self.at - 1] == b'"';
        let close = self.while_at(start, |byte| byte != b'"');
        let end = if quoted && close < self.bytes.len() {
            close
        } else {
            self.while_at(start, |byte| !byte.is_ascii_whitespace())
        };
        self.put("Bearer [redacted]", end);
        true
    }

    /// At the start of a URL's authority: finds the password to hide.
    fn url(&mut self) -> bool {
        let encoded = self.bytes[self.at] == b'%';
        let mut start = self.at;
        for byte in *b"://" {
            match self.is(start, byte, encoded) {
                Some(length) => start += length,
                None => return false,
            }
        }
        self.at = start;
        self.hidden = self.password(start, encoded);
        true
    }

    /// The length of `byte` at `at`, plain or (with `encoded`) percent-encoded.
    fn is(&self, at: usize, byte: u8, encoded: bool) -> Option<usize> {
        let rest = self.bytes.get(at..)?;
        if rest.first() == Some(&byte) {
            return Some(1);
        }
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).map(|c| c as u8);
        let matches = encoded
            && rest.first() == Some(&b'%')
            && rest.get(1).map(u8::to_ascii_lowercase) == digit(byte >> 4)
            && rest.get(2).map(u8::to_ascii_lowercase) == digit(byte & 15);
        matches.then_some(3)
    }

    /// The range of the password in the URL whose authority starts at `start` (RFC 3986, 3.2).
    fn password(&mut self, start: usize, encoded: bool) -> Option<Range<usize>> {
        let mut colon = None;
        let mut at_sign = None;
        let mut end = start;
        while end < self.bytes.len() {
            let byte = self.bytes[end];
            let over = byte.is_ascii_whitespace()
                || (encoded && byte == b'&')
                || b"/?#"
                    .iter()
                    .any(|stop| self.is(end, *stop, encoded).is_some());
            if over {
                break;
            }
            if let Some(length) = self.is(end, b':', encoded).filter(|_| colon.is_none()) {
                colon = Some(end + length);
                end += length;
                continue;
            }
            if self.is(end, b'@', encoded).is_some() {
                at_sign = Some(end);
            }
            end += 1;
        }
        let from = colon?;
        if let Some(at_sign) = at_sign.filter(|at_sign| *at_sign >= from) {
            return Some(from..at_sign);
        }
        if end == self.bytes.len() && !self.whole {
            return Some(from..end);
        }
        if at_sign.is_some() || self.bytes[start] == b'[' || self.is_port(from, end) {
            return None;
        }
        // Not a port: the password contains an unencoded `/`, `?` or `#`.
        let (run_end, at_sign) = self.run_at(end);
        match at_sign.filter(|at_sign| *at_sign >= from) {
            Some(at_sign) => Some(from..at_sign),
            None if run_end == self.bytes.len() && !self.whole => Some(from..run_end),
            None => None,
        }
    }

    /// Whether a port follows: digits, then the authority's end or punctuation.
    fn is_port(&self, from: usize, end: usize) -> bool {
        let digits = self.while_at(from, |byte| byte.is_ascii_digit()).min(end);
        digits == end || (digits > from && self.bytes[digits].is_ascii_punctuation())
    }

    /// The end and the last `@` of the run of non-blank bytes around `at`. Each run is read once.
    fn run_at(&mut self, at: usize) -> (usize, Option<usize>) {
        if let Some(run) = self.run.filter(|(end, _)| at <= *end) {
            return run;
        }
        let end = self.while_at(at, |byte| !byte.is_ascii_whitespace());
        let last = self.bytes[at..end].iter().rposition(|byte| *byte == b'@');
        let run = (end, last.map(|last| at + last));
        self.run = Some(run);
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacted_forms_in_full() {
        let table = [
            ("svc_bt_abcdefghijklmnop1234", "svc_bt_***1234"),
            ("(svc_bt_abcdefghijklmnop1234).", "(svc_bt_***1234)."),
            ("svc_bt_short", "svc_bt_***"),
            ("code=svc_en_abcdefghijklmnop1234", "code=svc_en_***1234"),
            ("a=svc_ss_abcdefghijklmnop1234; b", "a=svc_ss_***1234; b"),
            ("the prefix svc_bt_ alone", "the prefix svc_bt_ alone"),
            ("svc_pt_eyJhIjoxfQ.c2lnbmF0dXJl.", "svc_pt_***dXJl."),
            ("svc_lk_eyJhIjoxfQ.c2lnbmF0dXJl", "svc_lk_***dXJl"),
            ("whsec_MfKQ9r8GKYqrTwjU/+8ILPZIo2LaLaSw==", "whsec_***Sw=="),
            ("Bearer abc", "Bearer [redacted]"),
            (
                "authorization: bearer\t a.b-c and more",
                "authorization: Bearer [redacted] and more",
            ),
            (
                "{\"h\":\"Bearer a b\",\"runId\":1}",
                "{\"h\":\"Bearer [redacted]\",\"runId\":1}",
            ),
            ("Bearer%20abc", "Bearer [redacted]"),
            ("a bearer", "a bearer"),
            ("bearers of news", "bearers of news"),
            ("Bearer svc_bt_abcdefghijklmnop1234", "Bearer [redacted]"),
            ("postgres://u:p@h/db", "postgres://u:***@h/db"),
            ("postgres://u:p%40q%3A@h/db", "postgres://u:***@h/db"),
            ("redis://:p@h:6379", "redis://:***@h:6379"),
            ("http://u@h:80/a@b", "http://u@h:80/a@b"),
            (
                "http://h:80/a@b http://[::1]:80/a@b",
                "http://h:80/a@b http://[::1]:80/a@b",
            ),
            ("http://a@b:c@h/", "http://a@b:***@h/"),
            ("http://u:p@[::1]:80/", "http://u:***@[::1]:80/"),
            ("amqp://u:p@h,http://v:q@i", "amqp://u:***@h,http://v:***@i"),
            (
                "amqp://u:p@h/,http://v:q@i",
                "amqp://u:***@h/,http://v:***@i",
            ),
            ("mysql://u:p/q#r@h", "mysql://u:***@h"),
            (
                "x://svc_bt_abcdefghijklmnop1234:p@h",
                "x://svc_bt_***1234:***@h",
            ),
            (
                "r=https%3a%2F%2Fu%3Ap%40h%2F",
                "r=https%3a%2F%2Fu%3A***%40h%2F",
            ),
            ("12:30 http://h: 5 a@b", "12:30 http://h: 5 a@b"),
        ];
        for (given, expected) in table {
            assert_eq!(text(given, true), expected, "{given}");
            assert_eq!(text(expected, true), expected, "{given}, twice");
        }
    }
}
