//! Makes the operator's identity providers in the database those of the file, at each start.
//!
//! Not here: reading the file (`config`), and the rows (`store::operator_providers`).

use crate::authz::desired_tuples::{Object, mark};
use crate::config::identity_providers::OperatorProvider;
use crate::error::Result;
use crate::http::context::Shared;
use crate::store::operator_providers::{self, Followed};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Follows the file; without one, retires what a file named before.
pub(super) fn follow(shared: &Shared, log: &slog::Logger) -> Result<()> {
    let file = shared.authn.sign_in().operator_providers.as_ref();
    let mut named: BTreeMap<Uuid, Vec<&OperatorProvider>> = BTreeMap::new();
    for provider in file.iter().flat_map(|file| &file.0) {
        named.entry(provider.tenant_id).or_default().push(provider);
    }
    let ids: Vec<Uuid> = named.keys().copied().collect();
    let standing = operator_providers::tenants(&mut shared.store.session()?, &ids)?;
    for tenant_id in ids.iter().filter(|id| !standing.contains(id)) {
        slog::warn!(log, "SVC_IDENTITY_PROVIDERS_PATH names a tenant that is not here. Make it (agent-runtime tenant create), or correct the file";
            "tenantId" => %tenant_id);
    }
    for tenant_id in standing {
        let of_tenant = named.get(&tenant_id).map_or(&[][..], Vec::as_slice);
        let followed = follow_tenant(shared, tenant_id, of_tenant)?;
        for team in &followed.unknown_teams {
            slog::warn!(log, "SVC_IDENTITY_PROVIDERS_PATH names a team that the tenant does not have. Make it, or correct the file; its groups count from the start after that";
                "tenantId" => %tenant_id, "team" => team);
        }
        if followed.has_changed {
            slog::info!(log, "The identity providers of the operator's file were taken over";
                "tenantId" => %tenant_id, "identityProviders" => of_tenant.len());
        }
    }
    Ok(())
}

/// The marks are told to the authorization server by whoever keeps permissions in step, or asks next.
fn follow_tenant(shared: &Shared, tenant_id: Uuid, file: &[&OperatorProvider]) -> Result<Followed> {
    let now = shared.clock.now();
    shared.store.transact(|tx| {
        let followed = operator_providers::follow(tx, tenant_id, file, now)?;
        let teams: Vec<Object> = followed.teams.iter().copied().map(Object::Team).collect();
        mark(tx, tenant_id, &teams)?;
        Ok(followed)
    })
}
