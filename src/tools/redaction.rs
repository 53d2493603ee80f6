//! Takes secrets out of what a tool answers.
//!
//! Guarantees: a value is found as it is and in hexadecimal, in base64 (both alphabets, whatever stands before and
//! behind it in the encoded bytes), and each of these percent-encoded or JSON-escaped, up to two such escapes over
//! each other. It is replaced by `[redacted:NAME]`. A text without it stays as it is, byte for byte.
//!
//! Left out: values that were put into another form (a digest, a part, compressed text), and HTML's entities.

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Escapes over each other.
const DEPTH: usize = 2;

/// What to look for. Without values it changes nothing.
#[derive(Default)]
pub(super) struct Redaction(Option<Finder>);

struct Finder {
    automaton: AhoCorasick,
    /// Of each pattern of the automaton.
    about: Vec<About>,
    names: Vec<String>,
    escapes: Vec<Escape>,
}

/// What a pattern is of.
#[derive(Clone, Copy)]
struct About {
    /// Position of the secret's name.
    name: usize,
    /// The character before it, or behind it, holds bits of the value, too.
    reaches: (bool, bool),
}

/// A piece of a text that is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    start: usize,
    end: usize,
    name: usize,
}

/// How a text can be written inside another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    Json,
    Percent,
    /// Percent-encoding with `+` for a space.
    Form,
}

impl Redaction {
    /// Looks for these values, each with its secret's name. `None`: they are too long to be looked for.
    pub(super) fn of(values: &[(&str, &[u8])]) -> Option<Self> {
        if values.is_empty() {
            return Some(Self::default());
        }
        let (mut patterns, mut about, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in values {
            names.push((*name).to_owned());
            let name = names.len() - 1;
            for (pattern, reaches) in encodings(value) {
                patterns.push(pattern);
                about.push(About { name, reaches });
            }
        }
        let mut escapes = vec![Escape::Json, Escape::Percent];
        if values.iter().any(|(_, value)| value.contains(&b' ')) {
            escapes.push(Escape::Form);
        }
        Some(Self(Some(Finder {
            automaton: AhoCorasick::new(patterns).ok()?,
            about,
            names,
            escapes,
        })))
    }

    /// The text without the values.
    pub(super) fn apply(&self, text: String) -> String {
        let Some(finder) = &self.0 else {
            return text;
        };
        let mut found = Vec::new();
        finder.find(text.as_bytes(), None, DEPTH, &mut found);
        if found.is_empty() {
            return text;
        }
        found.sort_unstable();
        finder.without(text.as_bytes(), &found)
    }
}

/// What a value looks like, and whether the characters around it hold bits of it, too.
fn encodings(value: &[u8]) -> Vec<(Vec<u8>, (bool, bool))> {
    let whole = (false, false);
    let hex = |upper: bool| -> Vec<u8> {
        let digit = |byte: &u8| match upper {
            true => format!("{byte:02X}"),
            false => format!("{byte:02x}"),
        };
        value.iter().map(digit).collect::<String>().into_bytes()
    };
    let mut all = vec![
        (value.to_vec(), whole),
        (hex(false), whole),
        (hex(true), whole),
    ];
    for shift in 0..3 {
        let shifted = [&[0; 3][..shift], value].concat();
        let (first, last) = (8 * shift, 8 * shifted.len());
        let inside = first.div_ceil(6)..last / 6;
        let reaches = (first % 6 != 0, last % 6 != 0);
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let pattern = engine.encode(&shifted).as_bytes()[inside.clone()].to_vec();
            all.push((pattern, reaches));
        }
    }
    all
}

impl Finder {
    /// Looks into a text and into what it says without its escapes. `places` are where its bytes, and its end, stand in
    /// the text that was asked for.
    fn find(&self, text: &[u8], places: Option<&[usize]>, depth: usize, all: &mut Vec<Found>) {
        let place = |at: usize| places.map_or(at, |places| places[at]);
        let is_base64 = |at: usize| {
            let byte = text.get(at);
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
        };
        for hit in self.automaton.find_overlapping_iter(text) {
            let About { name, reaches } = self.about[hit.pattern().as_usize()];
            let (mut start, mut end) = (hit.start(), hit.end());
            if reaches.0 && start > 0 && is_base64(start - 1) {
                start -= 1;
            }
            if reaches.1 && is_base64(end) {
                end += 1;
            }
            let found = Found {
                start: place(start),
                end: place(end),
                name,
            };
            match all.last_mut() {
                // A long row of overlapping hits is kept as one.
                Some(last) if (last.start..last.end).contains(&found.start) => {
                    last.end = last.end.max(found.end);
                }
                _ => all.push(found),
            }
        }
        if depth == 0 {
            return;
        }
        for escape in &self.escapes {
            if let Some((said, own)) = escape.read(text) {
                let places: Vec<usize> = own.into_iter().map(place).collect();
                self.find(&said, Some(&places), depth - 1, all);
            }
        }
    }

    /// The text without what was found, which is in order.
    fn without(&self, text: &[u8], found: &[Found]) -> String {
        let (mut left, mut at) = (Vec::with_capacity(text.len()), 0);
        for one in found {
            if one.start >= at {
                left.extend_from_slice(&text[at..one.start]);
                left.extend_from_slice(format!("[redacted:{}]", self.names[one.name]).as_bytes());
            }
            at = at.max(one.end);
        }
        left.extend_from_slice(&text[at..]);
        String::from_utf8_lossy(&left).into_owned()
    }
}

impl Escape {
    /// What a text says without this escape, and where each byte of that, and the end, stands in it. `None`: the same.
    fn read(self, text: &[u8]) -> Option<(Vec<u8>, Vec<usize>)> {
        let (mut said, mut places) = (Vec::new(), Vec::new());
        let (mut at, mut is_escaped) = (0, false);
        while let Some(&byte) = text.get(at) {
            let (read, length) = self.read_one(&text[at..]).unwrap_or((byte, 1));
            is_escaped |= length > 1 || read != byte;
            said.push(read);
            places.push(at);
            at += length;
        }
        places.push(at);
        is_escaped.then_some((said, places))
    }

    /// The escaped byte that this begins with, and the length of its escape.
    fn read_one(self, text: &[u8]) -> Option<(u8, usize)> {
        match (self, text) {
            (Self::Form, [b'+', ..]) => Some((b' ', 1)),
            (Self::Percent | Self::Form, [b'%', digits @ ..]) => {
                let byte = number(digits.get(..2)?)?;
                Some((u8::try_from(byte).ok()?, 3))
            }
            (Self::Json, [b'\\', b'u', digits @ ..]) => {
                let letter = number(digits.get(..4)?)?;
                let byte = u8::try_from(letter).ok().filter(u8::is_ascii)?;
                Some((byte, 6))
            }
            (Self::Json, [b'\\', letter, ..]) => {
                let byte = match letter {
                    b'"' | b'\\' | b'/' => *letter,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'f' => 12,
                    _ => return None,
                };
                Some((byte, 2))
            }
            _ => None,
        }
    }
}

fn number(digits: &[u8]) -> Option<u16> {
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u16::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn redacted(value: &str, text: &str) -> String {
        let redaction = Redaction::of(&[("NAME", value.as_bytes())]).unwrap();
        redaction.apply(text.to_owned())
    }

    fn each(text: &str, write: impl Fn(&mut String, char)) -> String {
        text.chars().fold(String::new(), |mut all, letter| {
            write(&mut all, letter);
            all
        })
    }

    fn hex(text: &str) -> String {
        each(text, |all, letter| {
            write!(all, "{:02x}", u32::from(letter)).unwrap()
        })
    }

    fn percent(text: &str) -> String {
        each(text, |all, letter| match letter.is_ascii_alphanumeric() {
            true => all.push(letter),
            false => write!(all, "%{:02X}", u32::from(letter)).unwrap(),
        })
    }

    fn json(text: &str) -> String {
        let quoted = serde_json::json!(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    }

    fn form(text: &str) -> String {
        url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
    }

    proptest! {
        #[test]
        fn a_value_is_found_in_each_form_wherever_it_stands(
            value in "[!-~]{6}[ -~]{4,30}[!-~]{6}",
            before in "[a-zA-Z0-9 é/+=]{0,12}",
            after in "[a-zA-Z0-9 é/+=]{0,12}",
        ) {
            let unicode = each(&value, |all, letter| write!(all, "\\u{:04x}", u32::from(letter)).unwrap());
            let lower = each(&value, |all, letter| write!(all, "%{:02x}", u32::from(letter)).unwrap());
            let slashes = json(&value).replace('/', "\\/");
            for form in [
                value.clone(), hex(&value), hex(&value).to_uppercase(), percent(&value), lower,
                form(&value), json(&value), json(&json(&value)), percent(&json(&value)), json(&percent(&value)), unicode, slashes,
            ] {
                let text = format!("{before}{form}{after}");
                prop_assert_eq!(redacted(&value, &text), format!("{before}[redacted:NAME]{after}"), "{}", text);
            }
        }

        #[test]
        fn a_value_is_found_in_base64_whatever_is_encoded_with_it(
            value in "[!-~]{8,40}",
            before in "[ -~]{0,7}",
            after in "[ -~]{0,7}",
        ) {
            let whole = format!("{before}{value}{after}");
            let (start, end) = (8 * before.len() / 6, (8 * (before.len() + value.len())).div_ceil(6));
            for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let expected = format!("{}[redacted:NAME]{}", &text[..start], &text[end..]);
                prop_assert_eq!(redacted(&value, &text), expected);
                let escaped = text.replace('/', "\\/");
                prop_assert!(redacted(&value, &escaped).contains("[redacted:NAME]"));
                prop_assert!(redacted(&value, &percent(&text)).contains("[redacted:NAME]"));
            }
        }

        #[test]
        fn a_text_without_the_value_stays_as_it_is(
            value in "[!-~]{16,40}",
            text in prop_oneof![".{0,200}", "[A-Za-z0-9+/]{0,200}=?", "(%[0-9A-F]{2}|[a-z]){0,60}", r#"(\\["\\/nrtu]|[a-z0-9]){0,60}"#],
        ) {
            prop_assert_eq!(redacted(&value, &text), text);
        }
    }

    #[test]
    fn each_value_is_named_and_what_surrounds_them_stays() {
        let values: [(&str, &[u8]); 2] = [("A", b"first-value"), ("B", b"value-second")];
        let redaction = Redaction::of(&values).unwrap();
        let said = |text: &str| redaction.apply(text.to_owned());
        assert_eq!(
            said("é first-valuevalue-second\0"),
            "é [redacted:A][redacted:B]\0"
        );
        // They overlap: nothing of either is left.
        assert_eq!(said("(first-value-second)"), "([redacted:A])");
        assert_eq!(said("first-valu value-secon"), "first-valu value-secon");
        let none = Redaction::default();
        assert_eq!(none.apply("first-value".to_owned()), "first-value");
        assert_eq!(redacted("aaaaaaaa", &"a".repeat(1000)), "[redacted:NAME]");
    }

    #[test]
    fn bytes_that_are_no_text_are_looked_for_as_well() {
        let key = [0xff, 0xfe, 0x00, 0x80, 0xc3, 0x28, 0x01, 0x02, 0x03];
        let redaction = Redaction::of(&[("KEY", &key)]).unwrap();
        let text = format!("<fffe0080c328010203> <{}>", STANDARD.encode(key));
        assert_eq!(redaction.apply(text), "<[redacted:KEY]> <[redacted:KEY]>");
    }
}
