//! What a check finds in a text, and what is common to those that look for forms.

use regex::{Regex, RegexSet};
use std::ops::Range;

/// What was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its bytes.
    pub range: Range<usize>,
    /// What kind of thing it is: one of a few words, such as `card`.
    pub kind: &'static str,
}

/// In order of their begins. Of those that overlap the one that begins first stays, and of two that begin together the longer one,
/// which grows over what the other had.
pub(super) fn apart(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end)));
    let mut kept: Vec<Finding> = Vec::with_capacity(found.len());
    for one in found {
        match kept.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                last.range.end = last.range.end.max(one.range.end);
            }
            _ => kept.push(one),
        }
    }
    kept
}

/// The text with each finding replaced by its kind in brackets. Without findings it is the text, byte for byte.
pub(super) fn redacted(text: &str, found: &[Finding]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for one in found {
        out.push_str(&text[at..one.range.start]);
        out.push('[');
        out.push_str(one.kind);
        out.push(']');
        at = one.range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Regular expressions that are asked together first: most texts have nothing of any.
pub(super) struct Forms {
    any: RegexSet,
    pub(super) each: Vec<(Regex, &'static str)>,
}

impl Forms {
    /// The expressions are the program's own.
    pub(super) fn new(forms: &[(&str, &'static str)]) -> Self {
        let expressions = forms.iter().map(|(expression, _)| *expression);
        let compiled =
            |expression: &str| Regex::new(expression).unwrap_or_else(|fault| panic!("{fault}"));
        Self {
            any: RegexSet::new(expressions).unwrap_or_else(|fault| panic!("{fault}")),
            each: forms
                .iter()
                .map(|(expression, kind)| (compiled(expression), *kind))
                .collect(),
        }
    }

    pub(super) fn find(&self, text: &str, found: &mut Vec<Finding>) {
        for matched in self.any.matches(text) {
            let (form, kind) = &self.each[matched];
            found.extend(form.find_iter(text).map(|one| Finding {
                range: one.range(),
                kind,
            }));
        }
    }
}

/// Whether the byte before a place, and the one behind it, are no part of the same word or number.
pub(super) fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let before = text[..range.start].chars().next_back();
    let after = text[range.end..].chars().next();
    let is_of_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !is_of_word(before) && !is_of_word(after)
}
