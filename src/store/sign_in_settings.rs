//! What a tenant sets about signing in. It may only be stricter than the server, and reaches sessions that are open.
//!
//! Not here: what the server says (`config`), and where both are applied (`authn`).

use super::identity_providers::ManagedBy;
use super::open_sessions::Moment;
use super::tenants::{self, Tenant};
use super::{Columns, Sql, Tx, sessions};
use crate::config::TokenSignIn;
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, May};
use crate::{from_row, sql};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// Within this time an admin has to have signed in through a provider before tokens are refused.
pub const ADMIN_CAME_WITHIN: Duration = Duration::from_secs(24 * 3600);

/// What a tenant sets.
#[derive(Debug, Clone)]
pub struct SignInSettings {
    /// Who may sign in with a token.
    pub token_sign_in: TokenSignIn,
    /// After how many minutes without use a session ends; none: as the server says.
    pub session_idle_minutes: Option<i32>,
    /// After how many hours a session ends; none: as the server says.
    pub session_hours: Option<i32>,
    /// Who set it last; none: nobody, and the rest is what the server says.
    pub changed_by: Option<Uuid>,
    /// When it was set last.
    pub changed_at: Option<OffsetDateTime>,
}

from_row!(SignInSettings {
    token_sign_in,
    session_idle_minutes,
    session_hours,
    changed_by,
    changed_at
});

impl Default for SignInSettings {
    fn default() -> Self {
        Self {
            token_sign_in: TokenSignIn::On,
            session_idle_minutes: None,
            session_hours: None,
            changed_by: None,
            changed_at: None,
        }
    }
}

/// What the tenant sets. It runs for anybody who signs in.
pub fn find(sql: &mut impl Sql, tenant_id: Uuid) -> Result<SignInSettings> {
    let held = sql.fetch_optional(sql!("sign_in_settings/find"), &[&tenant_id])?;
    Ok(held.unwrap_or_default())
}

/// Sets it. `managed_by`: whose providers serve. What is allowed less ends or shortens the sessions that are open, for good;
/// what was allowed less until now has done so, whatever is allowed more from here on.
///
/// # Errors
/// `conflict`: tokens are to be refused, and no admin has signed in through a provider of late. `database-unavailable`.
pub fn put(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    caller: &Caller,
    new: &SignInSettings,
    managed_by: ManagedBy,
    moment: Moment,
) -> Result<SignInSettings> {
    let (tenant_id, now) = (may.tenant_id(), moment.now());
    tenants::lock(tx, tenant_id)?;
    let held = find(tx, tenant_id)?;
    if new.token_sign_in > held.token_sign_in {
        let since = now - ADMIN_CAME_WITHIN;
        let row = tx.query_one(
            sql!("sign_in_settings/admin_came_by_provider"),
            &[&tenant_id, &since, &managed_by],
        )?;
        if !row.only::<bool>()? {
            return Err(Error::new(
                Code::Conflict,
                "No admin of the tenant has signed in through an identity provider within 24 hours. Sign in through one first, so that nobody is locked out.",
            ));
        }
    }
    while sessions::shorten(tx, Some(tenant_id), moment)? {}
    tx.execute(
        sql!("sign_in_settings/put"),
        &[
            &tenant_id,
            &new.token_sign_in,
            &new.session_idle_minutes,
            &new.session_hours,
            &caller.user_id,
            &now,
        ],
    )?;
    while sessions::shorten(tx, Some(tenant_id), moment)? {}
    find(tx, tenant_id)
}
