//! Identities: which person a subject of an identity provider is.
//!
//! Guarantees: a subject is one person's, and a person has one subject at a provider. An identity that is unlinked takes the
//! person's sessions by that provider and the team memberships that its groups gave with it, in one transaction.
//!
//! Not here: who a subject is to be (`api::arrivals`).

use super::identity_providers::Ended;
use super::page::Request;
use super::users::{self, Person};
use super::{Columns, Sql, Tx, sessions, team_memberships};
use crate::error::{Error, Result};
use crate::proof::{Admin, May};
use crate::{from_row, list_sql, sql, texts};
use time::OffsetDateTime;
use uuid::Uuid;

/// What an identity is called in answers.
const NAME: &str = "identity";

texts! {
    /// Why the groups of somebody who signs in are not known.
    GroupsFault {
        /// The provider does not name them.
        Absent = "groups-absent",
        /// The provider leaves them out: the person is in more than it names.
        LeftOut = "groups-left-out",
    }
}

/// A person's identity at a provider.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its id.
    pub identity_id: Uuid,
    /// The provider.
    pub identity_provider_id: Uuid,
    /// What the provider is called.
    pub provider_name: String,
    /// Who it is there.
    pub subject: String,
    /// The email by which it was bound.
    pub email_then: String,
    /// Since when.
    pub bound_at: OffsetDateTime,
    /// When the person last signed in by it.
    pub last_used_at: OffsetDateTime,
}

from_row!(Identity {
    identity_id,
    identity_provider_id,
    provider_name,
    subject,
    email_then,
    bound_at,
    last_used_at
});

/// Whose a subject is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The identity.
    pub identity_id: Uuid,
    /// The person.
    pub user_id: Uuid,
}

from_row!(Bound {
    identity_id,
    user_id
});

/// A subject of a provider.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The provider.
    pub identity_provider_id: Uuid,
    /// Who it is there.
    pub subject: &'a str,
}

/// Whose this subject is.
pub fn of_subject(sql: &mut impl Sql, of: Subject<'_>) -> Result<Option<Bound>> {
    sql.fetch_optional(
        sql!("identities/of_subject"),
        &[&of.tenant_id, &of.identity_provider_id, &of.subject],
    )
}

/// Whether the person has an identity at the provider.
pub fn has_one(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    identity_provider_id: Uuid,
    user_id: Uuid,
) -> Result<bool> {
    let row = sql.query_one(
        sql!("identities/has_one"),
        &[&tenant_id, &identity_provider_id, &user_id],
    )?;
    row.only()
}

/// Makes the subject this person's, whose row is locked, and who has none at this provider.
pub fn bind(
    tx: &mut Tx<'_>,
    of: Subject<'_>,
    bound: Bound,
    email: &str,
    fault: Option<GroupsFault>,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(
        sql!("identities/insert"),
        &[
            &of.tenant_id,
            &bound.identity_id,
            &of.identity_provider_id,
            &of.subject,
            &bound.user_id,
            &email,
            &now,
            &fault,
        ],
    )?;
    Ok(())
}

/// The person signs in by it.
pub fn used(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    identity_id: Uuid,
    fault: Option<GroupsFault>,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(
        sql!("identities/use"),
        &[&tenant_id, &identity_id, &now, &fault],
    )?;
    Ok(())
}

/// A page of a person's identities.
pub fn list(
    sql: &mut impl Sql,
    person: &impl May<Admin, Person>,
    page: &Request,
) -> Result<Vec<Identity>> {
    let statement = list_sql!("identities/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &person.tenant_id(),
            &person.object_id(),
            &page.after,
            &page.rows(),
        ],
    )
}

/// Takes an identity from a person.
///
/// # Errors
/// `not-found`: the person has none of this id. `database-unavailable`.
pub fn unlink(
    tx: &mut Tx<'_>,
    person: &impl May<Admin, Person>,
    identity_id: Uuid,
    now: OffsetDateTime,
) -> Result<Ended> {
    let (tenant_id, user_id) = (person.tenant_id(), person.object_id());
    let row = tx
        .query_opt(
            sql!("identities/provider_of"),
            &[&tenant_id, &user_id, &identity_id],
        )?
        .ok_or_else(|| Error::not_found(NAME, identity_id))?;
    let provider_id: Uuid = row.only()?;
    let teams = team_memberships::end_of_source(tx, tenant_id, provider_id, Some(user_id), &[])?;
    // Whoever arrives as this person at this moment comes before or after.
    users::lock(tx, tenant_id, user_id)?;
    let deleted = tx.execute(
        sql!("identities/delete"),
        &[&tenant_id, &user_id, &identity_id],
    )?;
    if deleted == 0 {
        return Err(Error::not_found(NAME, identity_id));
    }
    let people = sessions::end_of_provider(tx, tenant_id, provider_id, Some(user_id), now)?;
    Ok(Ended { teams, people })
}
