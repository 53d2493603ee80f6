//! Why a secret cannot be read.

use crate::store::secrets::SecretRef;

/// Why a secret cannot be read, as a sentence without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The environment has no secret of that name.
    NotFound,
    /// The row was moved, copied or altered, or belongs to another key.
    Altered(String),
    /// A part that is needed is unreachable or refuses; the sentence names it.
    Unavailable(String),
    /// The service's own database does not answer: nothing is known of the secret.
    DatabaseAway(String),
}

impl Unreadable {
    /// Why this secret cannot be read.
    pub fn sentence(&self, at: &SecretRef) -> String {
        match self {
            Self::NotFound => format!(
                "There is no secret {} in the environment {}.",
                at.name, at.environment
            ),
            Self::Altered(sentence)
            | Self::Unavailable(sentence)
            | Self::DatabaseAway(sentence) => sentence.clone(),
        }
    }
}

/// For the log, whose records name the secret in fields of their own.
impl std::fmt::Display for Unreadable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::NotFound => "There is no secret of this name in its environment.",
            Self::Altered(sentence)
            | Self::Unavailable(sentence)
            | Self::DatabaseAway(sentence) => sentence,
        })
    }
}

impl std::error::Error for Unreadable {}
