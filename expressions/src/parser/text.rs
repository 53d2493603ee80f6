//! Strings: their escapes, the expressions in them, the formats before them.

use serde_json::Value as Json;

use super::{Parsed, Parser};
use crate::fault::Fault;
use crate::lexer::{Kind, Token};
use crate::tree::{Format, Piece, Term};

impl Parser<'_> {
    /// `@name`, alone or before a string.
    pub(super) fn format(&mut self, name: &str, token: &Token<'_>) -> Parsed<Term> {
        let known = Format::ALL.iter().find(|(known, _)| *known == name);
        let Some((_, format)) = known else {
            let names: Vec<String> = Format::ALL
                .iter()
                .map(|(name, _)| format!("`@{name}`"))
                .collect();
            let fault = Fault::new(token.span.clone(), format!("There is no format `@{name}`."));
            return Err(fault.hint(format!("Taken are {}.", names.join(", "))));
        };
        match self.peek()?.kind {
            Kind::Quote => {
                self.next()?;
                self.text(*format)
            }
            _ => Ok(Term::Format(*format)),
        }
    }

    /// A string whose opening quote was taken.
    pub(super) fn text(&mut self, format: Format) -> Parsed<Term> {
        let opening = self.at - 1;
        let mut pieces = Vec::new();
        let mut literal = String::new();
        loop {
            let rest = &self.source[self.at..];
            let plain = rest.find(['"', '\\']).ok_or_else(|| {
                Fault::new(
                    opening..opening + 1,
                    "The string that begins here has no end.",
                )
                .hint("A quote inside a string is written `\\\"`.")
            })?;
            literal.push_str(&rest[..plain]);
            self.skip_to(self.at + plain);
            if self.source[self.at..].starts_with('"') {
                self.skip_to(self.at + 1);
                self.last = Kind::Quote;
                break;
            }
            if !self.source[self.at..].starts_with("\\(") {
                literal.push(self.escape()?);
                continue;
            }
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            self.skip_to(self.at + 2);
            pieces.push(Piece::Interpolated(self.pipe()?));
            self.expect(")")?;
        }
        if pieces.is_empty() {
            return Ok(Term::Constant(Json::String(literal)));
        }
        pieces.push(Piece::Literal(literal));
        Ok(Term::Text { format, pieces })
    }

    /// The character after a backslash.
    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        let rest = &self.source[start + 1..];
        let simple = match rest.chars().next() {
            Some(same @ ('"' | '\\' | '/')) => Some(same),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            _ => None,
        };
        if let Some(simple) = simple {
            self.skip_to(start + 2);
            return Ok(simple);
        }
        let first = unit(rest);
        let (read, length) = match first {
            Some(high @ 0xd800..=0xdbff) => {
                let low = rest
                    .get(5..)
                    .and_then(|rest| unit(rest.strip_prefix('\\')?));
                let read = low.and_then(|low| char::decode_utf16([high, low]).next()?.ok());
                (read, 12)
            }
            Some(unit) => (char::from_u32(unit.into()), 6),
            None => (None, 2),
        };
        let Some(read) = read else {
            let end = start + 1 + rest.chars().next().map_or(0, char::len_utf8);
            return Err(Fault::new(start..end, "This is no escape of a string.")
                .hint("A backslash is written `\\\\`."));
        };
        self.skip_to(start + length);
        Ok(read)
    }
}

/// The UTF-16 unit of `uXXXX`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    is_hex
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}
