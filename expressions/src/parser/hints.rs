//! What an author of other languages may have meant by a token.

use crate::lexer::Kind;

pub(super) const ASSIGNMENTS: [&str; 8] = ["=", "|=", "+=", "-=", "*=", "/=", "%=", "//="];

pub(super) fn of_assignment(symbol: &str) -> &'static str {
    match symbol {
        "=" => "Compare with `==`. Set a field with `. + {name: value}`.",
        _ => "Set a field with `. + {name: value}`, a deeper one with `setpath`.",
    }
}

/// The hint for a token that stands where it may not, after the last one that was taken.
pub(super) fn of_token(last: Kind<'_>, token: Kind<'_>) -> Option<&'static str> {
    let by_itself = match token {
        Kind::Symbol("&&") => "Write `and`.",
        Kind::Symbol("||") => "Write `or`.",
        Kind::Symbol("!") => "Write `… | not`.",
        Kind::Symbol("===") => "Write `==`.",
        Kind::Symbol("!==") => "Write `!=`.",
        Kind::Symbol("?") => "Alternative patterns are not supported.",
        Kind::Symbol("'") => "A string stands in double quotes.",
        Kind::Symbol("${" | "{{") => "An expression is not set in braces once more.",
        Kind::Symbol("=>") => {
            "Write what is done with one item, which is `.`: `map(.price)` for `map(x => x.price)`."
        }
        _ => return after(last, token),
    };
    Some(by_itself)
}

fn after(last: Kind<'_>, token: Kind<'_>) -> Option<&'static str> {
    match (last, token) {
        (Kind::Symbol("?"), _) => {
            Some("Write `if A then B else C end` for a choice, `A // B` for a default.")
        }
        (Kind::Field(_), Kind::Symbol("(")) => {
            Some("A field is not called. Write `.items | length`.")
        }
        (Kind::Field(_), Kind::Number(_)) => Some("Write `.items[0]` for an item of an array."),
        (Kind::Variable(_), Kind::Symbol(".")) | (Kind::Symbol("."), _) => {
            Some("A field with other letters is written `.[\"first-name\"]`.")
        }
        _ => None,
    }
}
