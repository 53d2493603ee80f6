//! Guardrails: checks of what goes into a run and of what comes out.
//!
//! [`Guardrail`] is a check as its author writes it, [`Compiled`] is ready to judge, and [`Guards`] are those that apply to a run,
//! in the order in which they judge.
//!
//! Guarantees: the built-in checks read a text once or a few times, in time that grows with its length alone. They keep nothing of
//! it, and what they say names what kind of thing was found, and never quotes it. A check that fails counts as its author said,
//! and blocks if nothing was said.
//!
//! Not here: when checks are made, what becomes of a verdict, and its record (`runtime`); checks of packs, for which
//! [`Compiled::judge`] is the door.

mod authored;
mod bank;
mod contacts;
mod credentials;
mod guards;
mod hidden_text;
mod json_parts;
mod judge;
mod links;
mod patterns;

use jsonschema::Validator;
use regex::{Regex, RegexSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub use crate::store::policies::Streaming;
pub use crate::store::run_checks::{CheckOrigin, OnError, Point, Verdict};
pub use authored::{
    Action, BuiltIn, Config, Fault, GUARDRAILS_MOST, Guardrail, OnBlock, compile_all,
};
pub use guards::{Blocked, Cache, Guards, Made, Outcome, Policy};
pub use judge::{Compiled, Subject};
pub use links::Links;
pub use patterns::{PatternFault, Patterns};

/// What was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its bytes.
    pub range: Range<usize>,
    /// What kind of thing it is: one of a few words, such as `card`.
    pub kind: &'static str,
}

/// Personal data that has a form of its own. Names and addresses have none: they take a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "PersonalData")]
pub enum Personal {
    /// An address of email.
    Email,
    /// A telephone number.
    Phone,
    /// The number of a payment card.
    Card,
    /// The number of a bank account.
    Iban,
    /// An address of a computer.
    Ip,
}

impl Personal {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Email, Self::Phone, Self::Card, Self::Iban, Self::Ip];

    fn find(self, text: &str, found: &mut Vec<Finding>) {
        match self {
            Self::Email => contacts::emails(text, found),
            Self::Phone => contacts::phones(text, found),
            Self::Card => bank::cards(text, found),
            Self::Iban => bank::ibans(text, found),
            Self::Ip => contacts::addresses(text, found),
        }
    }
}

/// A built-in check.
#[derive(Debug)]
pub enum Check {
    /// Texts that match patterns, or miss them.
    Pattern(Patterns),
    /// Personal data of these kinds.
    Pii(Vec<Personal>),
    /// Credentials, by their form.
    Secrets,
    /// Links to other hosts than these.
    Links(Links),
    /// Characters that a reader does not see and a model reads.
    HiddenText,
    /// Arguments of calls that do not fit a schema: those of one tool, or of all.
    ToolArguments {
        /// The tool; none: every tool.
        tool: Option<String>,
        /// What its arguments fit.
        schema: Box<Validator>,
    },
    /// Nothing: it is at fault.
    #[cfg(test)]
    Crash,
}

impl Check {
    /// What it finds in a text, in order, none inside another.
    pub fn find(&self, text: &str) -> Vec<Finding> {
        let mut found = Vec::new();
        match self {
            Self::Pattern(patterns) => patterns.find(text, &mut found),
            Self::Pii(kinds) => kinds.iter().for_each(|kind| kind.find(text, &mut found)),
            Self::Secrets => credentials::find(text, &mut found),
            Self::Links(links) => links.find(text, &mut found),
            Self::HiddenText => hidden_text::find(text, &mut found),
            Self::ToolArguments { schema, .. } => {
                found.extend(judge::misfit(schema, text));
            }
            #[cfg(test)]
            Self::Crash => panic!("a check that is at fault"),
        }
        apart(found)
    }
}

/// In order of their begins. Of those that overlap the one that begins first stays, and of two that begin together the longer one,
/// which grows over what the other had.
fn apart(mut found: Vec<Finding>) -> Vec<Finding> {
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
pub fn redacted(text: &str, found: &[Finding]) -> String {
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
struct Forms {
    any: RegexSet,
    each: Vec<(Regex, &'static str)>,
}

impl Forms {
    /// The expressions are the program's own.
    fn new(forms: &[(&str, &'static str)]) -> Self {
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

    fn find(&self, text: &str, found: &mut Vec<Finding>) {
        for matched in self.any.matches(text) {
            let (form, kind) = &self.each[matched];
            found.extend(form.find_iter(text).map(|one| Finding {
                range: one.range(),
                kind,
            }));
        }
    }
}

/// The expressions of the built-in checks, for a benchmark that looks for all of them in one pass.
#[cfg(feature = "bench")]
pub fn expressions() -> Vec<&'static str> {
    let each = [
        bank::expressions(),
        contacts::expressions(),
        links::expressions(),
    ];
    each.concat()
        .into_iter()
        .chain(credentials::expressions())
        .collect()
}

/// Whether the byte before a place, and the one behind it, are no part of the same word or number.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let before = text[..range.start].chars().next_back();
    let after = text[range.end..].chars().next();
    let is_of_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !is_of_word(before) && !is_of_word(after)
}

#[cfg(test)]
mod authored_tests;
#[cfg(test)]
mod judge_tests;
#[cfg(test)]
mod tests;
