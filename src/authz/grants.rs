//! Who may read a user's roles (section 4.2): the user, or a tenant admin.

use super::target::Target;
use super::{Checker, as_caller};
use crate::error::{Error, Result};
use crate::proof::{Action, Admin, Kind};
use crate::store::users::{self, Person, User};
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
pub fn grants_reader(checker: &Checker<'_>, user_id: Uuid) -> Result<GrantsReader> {
    let caller = checker.caller();
    if user_id == caller.user_id {
        as_caller(checker)?;
    } else {
        checker.admit()?;
        let target = Target::tenant_for(caller.tenant_id, Person::NAME, user_id);
        checker.check(Admin::NAME, &target, None, None)?;
    }
    let user = users::find(&mut checker.store.session()?, caller.tenant_id, user_id)?
        .ok_or_else(|| Error::not_found("user", user_id))?;
    Ok(GrantsReader {
        tenant_id: caller.tenant_id,
        user,
        project_id: caller.key.project_id.filter(|_| checker.enforces()),
    })
}
