//! The operator's view of the authorization server: whether it serves, and whether a tenant's store
//! is the one that the database names, with this program's model. It changes nothing.
//!
//! Not here: comparing single tuples (`report`), and repairs (`reconciler`).

use super::stores;
use crate::authz::fga::{Client, Failure};
use crate::authz::model::Model;
use crate::store::authz::TenantStore;
use uuid::Uuid;

/// How a tenant's store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has this program's model.
    Right,
    /// Its model is an older one; the next start of a server brings it to this version.
    Older(i32),
    /// Its model is of a newer program, and stays.
    Newer(i32),
    /// Its model has this version and another text.
    Altered,
    /// The model is not there.
    NoModel,
    /// The store is not there.
    NoStore,
    /// There are several stores of its name.
    Several(usize),
}

/// How the store of a tenant is, which the database says is this one.
///
/// # Errors
/// Any [`Failure`] but those of a store or a model.
pub fn store(
    client: &Client,
    model: &Model,
    tenant_id: Uuid,
    tenant_store: &TenantStore,
) -> Result<State, Failure> {
    if !client.store_exists(&tenant_store.store_id)? {
        return Ok(State::NoStore);
    }
    let named = client.stores_named(&stores::name(tenant_id))?;
    if named.len() > 1 {
        return Ok(State::Several(named.len()));
    }
    if !client.model_exists(&stores::pinned(tenant_store))? {
        return Ok(State::NoModel);
    }
    Ok(match tenant_store.model_version.cmp(&model.version()) {
        std::cmp::Ordering::Less => State::Older(tenant_store.model_version),
        std::cmp::Ordering::Greater => State::Newer(tenant_store.model_version),
        std::cmp::Ordering::Equal if tenant_store.model_digest != model.digest() => State::Altered,
        std::cmp::Ordering::Equal => State::Right,
    })
}
