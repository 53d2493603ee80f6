//! Who reads which roles a user has (section 4.2): the user themselves, or who decides about the tenant.

use super::{Asker, as_caller, on_tenant};
use crate::error::{Error, Result};
use crate::proof::{Admin, Authorized};
use crate::store::tenants::Tenant;
use crate::store::users::{self, User};
use uuid::Uuid;

/// Somebody may read a user's roles.
#[derive(Debug)]
pub struct GrantsReader {
    tenant_id: Uuid,
    user: User,
    project_id: Option<Uuid>,
}

impl GrantsReader {
    /// The tenant of both.
    pub fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    /// Whose roles.
    pub fn user(&self) -> &User {
        &self.user
    }

    /// The one project whose roles are read, where the caller's key is limited to it.
    pub fn project_id(&self) -> Option<Uuid> {
        self.project_id
    }
}

/// Users read their own roles, which is no decision; those of others take admin on the tenant, which
/// is asked before the user is looked up.
///
/// # Errors
/// `permission-denied`, `not-found`, and those of every check.
pub fn grants_reader(asker: &Asker<'_>, user_id: Uuid) -> Result<GrantsReader> {
    let caller = asker.caller();
    if user_id == caller.user_id {
        as_caller(asker)?;
    } else {
        let _: Authorized<Tenant, Admin> = on_tenant(asker)?;
    }
    let user = users::find(&mut asker.store.session()?, caller.tenant_id, user_id)?
        .ok_or_else(|| Error::not_found("user", user_id))?;
    Ok(GrantsReader {
        tenant_id: caller.tenant_id,
        user,
        project_id: caller.key.project_id.filter(|_| asker.enforces()),
    })
}
