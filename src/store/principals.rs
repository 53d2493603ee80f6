//! Principals that may get a role: a person or a service account of the tenant, by id, or a person
//! by email.
//!
//! Guarantee: an active principal stays active until the transaction ends, so a later deactivation
//! sees the new role.
//!
//! Not here: creating and changing people and service accounts.

use super::{Columns, FromRow, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::text::is_email;
use crate::{from_row, ids, sql, text_column};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

// Specification, section 2.4.
/// What kind of principal somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrincipalKind {
    /// A person.
    User,
    /// A service account.
    ServiceAccount,
}

impl PrincipalKind {
    /// As `users.kind` holds it.
    const fn stored(self) -> &'static str {
        match self {
            Self::User => "person",
            Self::ServiceAccount => "service-account",
        }
    }

    /// From what `users.kind` holds.
    fn from_stored(text: &str) -> Option<Self> {
        match text {
            "person" => Some(Self::User),
            "service-account" => Some(Self::ServiceAccount),
            _ => None,
        }
    }
}

text_column!(PrincipalKind, stored, from_stored);

/// An email as it is matched.
pub(super) fn email_key(email: &str) -> String {
    email.to_lowercase()
}

/// Whether two emails that are matched alike are the same but for their case. Some letters have another one's lowercase, as
/// the Kelvin sign has that of K: whoever speaks for an email does not speak for that of a look-alike.
pub fn is_same_email(one: &str, other: &str) -> bool {
    email_key(one) == email_key(other) && one.to_uppercase() == other.to_uppercase()
}

/// How a request names somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By id.
    Id(Uuid),
    /// By email, in any case.
    Email(String),
}

impl Named {
    /// Whom a text names: an id or an email. None: it is neither.
    pub fn of(text: &str) -> Option<Self> {
        let by_id = ids::parse(text).map(Self::Id);
        by_id.or_else(|| is_email(text).then(|| Self::Email(text.to_owned())))
    }
}

/// Somebody who may be given a role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Principal {
    pub(super) user_id: Uuid,
    pub(super) kind: PrincipalKind,
}

/// The one who is named, kept active until the transaction ends.
///
/// # Errors
/// `not-found`; `conflict`: deactivated; `database-unavailable`.
pub(super) fn active(tx: &mut Tx<'_>, tenant_id: Uuid, named: &Named) -> Result<Principal> {
    let row = match named {
        Named::Id(user_id) => tx
            .query_opt(sql!("principals/by_id"), &[&tenant_id, user_id])?
            .ok_or_else(|| Error::not_found("user", user_id))?,
        Named::Email(email) => tx
            .query_opt(
                sql!("principals/by_email"),
                &[&tenant_id, &email_key(email)],
            )?
            .ok_or_else(|| Error::not_found("person", "with this email"))?,
    };
    if row.column("is_deactivated")? {
        return Err(Error::new(
            Code::Conflict,
            "The user was deactivated and cannot be given a role.",
        ));
    }
    Principal::from_row(&row)
}

/// There is such a user, active or not: taking away a role that the user does not have is done
/// already.
///
/// # Errors
/// `not-found`; `database-unavailable`.
pub(super) fn stands(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid) -> Result<()> {
    tx.query_opt(sql!("principals/by_id"), &[&tenant_id, &user_id])?
        .map(|_| ())
        .ok_or_else(|| Error::not_found("user", user_id))
}

/// As [`active`], for what is a person's alone.
///
/// # Errors
/// `not-found`, also for a service account; `conflict`: deactivated; `database-unavailable`.
pub(super) fn person(tx: &mut Tx<'_>, tenant_id: Uuid, named: &Named) -> Result<Uuid> {
    let principal = active(tx, tenant_id, named)?;
    match principal.kind {
        PrincipalKind::User => Ok(principal.user_id),
        PrincipalKind::ServiceAccount => Err(Error::not_found("person", principal.user_id)),
    }
}

from_row!(Principal { user_id, kind });

#[cfg(test)]
mod tests {
    use super::is_same_email;

    #[test]
    fn an_email_is_the_same_in_any_case_but_not_by_another_letter() {
        for (one, other) in [
            ("kim@plant.example", "Kim@PLANT.example"),
            ("émile@plant.example", "ÉMILE@plant.example"),
            ("İ@plant.example", "İ@Plant.example"),
        ] {
            assert!(is_same_email(one, other), "{one} {other}");
        }
        for (one, other) in [
            // The Kelvin sign, the Angstrom sign, a capital I with a dot, a long s.
            ("kim@plant.example", "\u{212a}im@plant.example"),
            ("å@plant.example", "\u{212b}@plant.example"),
            ("i@plant.example", "İ@plant.example"),
            ("i\u{307}@plant.example", "İ@plant.example"),
            ("s@plant.example", "\u{17f}@plant.example"),
            ("kim@plant.example", "kim@plant.example."),
        ] {
            assert!(!is_same_email(one, other), "{one} {other}");
        }
    }
}
