//! The built-in checks.

use super::arguments::misfit;
use super::finding::{Finding, apart};
use super::links::Links;
use super::patterns::Patterns;
use super::{bank, contacts, credentials, hidden_text};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
                found.extend(misfit(schema, text));
            }
            #[cfg(test)]
            Self::Crash => panic!("a check that is at fault"),
        }
        apart(found)
    }
}
