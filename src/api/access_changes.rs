//! Changes of who may do what.

use crate::authz::desired_tuples::{Object, mark};
use crate::error::Result;
use crate::http::context::Cx;
use crate::proof::Caller;
use crate::store::Tx;

/// Changes who may do what with these objects, and answers once the authorization server knows of it,
/// also where nothing was left to change: a repeated change may be one that was not applied yet.
pub(super) fn change_access<T>(
    cx: &Cx<'_>,
    caller: &Caller,
    objects: &[Object],
    work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
) -> Result<T> {
    let changed = cx.transact(|tx| {
        let changed = work(tx)?;
        mark(tx, caller.tenant_id, objects)?;
        Ok(changed)
    })?;
    cx.apply_permissions(caller.tenant_id, objects)?;
    Ok(changed)
}
