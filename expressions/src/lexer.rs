//! From text to tokens, one at a time and from any place. The parser reads strings itself, since they hold
//! expressions.
//!
//! Keywords are identifiers here: after a dot they are names of fields.

use std::ops::Range;

use crate::fault::Fault;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind<'s> {
    Number(&'s str),
    /// A name that a function, a keyword or a key can have.
    Identifier(&'s str),
    /// `$name`, without the dollar.
    Variable(&'s str),
    /// `.name`, without the dot.
    Field(&'s str),
    /// `@name`, without the sign.
    Format(&'s str),
    /// The quote that opens a string.
    Quote,
    Symbol(&'s str),
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Token<'s> {
    pub(crate) kind: Kind<'s>,
    pub(crate) span: Range<usize>,
}

/// The longest first. Some are no operators of jq: they get a hint.
const SYMBOLS: [&str; 36] = [
    "===", "!==", "//=", "==", "!=", "<=", ">=", "//", "|=", "+=", "-=", "*=", "/=", "%=", "&&",
    "||", "=>", "${", "{{", "..", "|", ",", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", "[",
    "]", "?", ":",
];
/// Those that nothing longer begins with, and that no operator contains.
const SINGLE: [&str; 6] = ["{", "}", ";", ".", "!", "'"];

/// The token at or after a place.
pub(crate) fn token<'s>(source: &'s str, at: usize) -> Result<Token<'s>, Fault> {
    let start = at + blank(&source[at..]);
    let rest = &source[start..];
    let token = |kind, length: usize| Token {
        kind,
        span: start..start + length,
    };
    let Some(first) = rest.chars().next() else {
        return Ok(token(Kind::End, 0));
    };
    if first == '"' {
        return Ok(token(Kind::Quote, 1));
    }
    if let Some(length) = number(rest) {
        return Ok(token(Kind::Number(&rest[..length]), length));
    }
    let length = word(rest);
    if length > 0 {
        return Ok(token(Kind::Identifier(&rest[..length]), length));
    }
    let named: Option<fn(&'s str) -> Kind<'s>> = match first {
        '.' => Some(Kind::Field),
        '$' => Some(Kind::Variable),
        '@' => Some(Kind::Format),
        _ => None,
    };
    if let Some(named) = named {
        let name = &rest[1..];
        let length = word(name);
        if length > 0 {
            return Ok(token(named(&name[..length]), length + 1));
        }
    }
    // Braces may stand beside each other: `{a:{{…` is no expression, `{{ a }}` a usual slip.
    let symbols = SYMBOLS.iter().chain(&SINGLE);
    match symbols.copied().find(|symbol| rest.starts_with(symbol)) {
        Some(symbol) => Ok(token(Kind::Symbol(symbol), symbol.len())),
        None => Err(Fault::new(
            start..start + first.len_utf8(),
            format!("{first:?} is not part of the language."),
        )),
    }
}

/// The length of the white space and the comments that text begins with.
fn blank(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start().len();
        if !text[at..].starts_with('#') {
            return at;
        }
        at += text[at..].find('\n').unwrap_or(text.len() - at);
    }
}

/// The length of the name that text begins with.
fn word(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

/// The length of the number that text begins with.
fn number(text: &str) -> Option<usize> {
    let digits = |from: usize| {
        let rest = &text[from..];
        rest.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())
    };
    let whole = digits(0);
    let mut end = whole;
    if text[end..].starts_with('.') && (whole == 0 || !text[end..].starts_with("..")) {
        let fraction = digits(end + 1);
        if whole + fraction == 0 {
            return None;
        }
        end += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some(end)
}
