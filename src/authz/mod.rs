//! May they? The only code that mints proofs.
//!
//! While no authorization server is set, section 1.1 rule 3 holds: whoever holds a token of the
//! tenant may do anything in it, and nothing outside it. An object of another tenant is not found.

mod board;
mod compare;
mod decide;
pub mod desired;
pub mod fga;
mod keeper;
pub mod model;
pub mod permissions;
mod stores;
mod sync;

pub use decide::{Asker, Stage};

use crate::authn::{Credential, PublicToken};
use crate::error::{Code, Error, Result};
use crate::proof::{Action, Authorized, Kind, Listing, May, Read};
use crate::store::runs::Run;
use crate::store::tenants::Tenant;
use crate::store::{Find, Store};
use time::OffsetDateTime;
use uuid::Uuid;

/// The caller may do `A` to the tenant of the credential.
///
/// # Errors
/// `permission-denied`.
pub fn on_tenant<A: Action>(asker: &Asker<'_>) -> Result<Authorized<Tenant, A>> {
    let tenant = Tenant {
        tenant_id: asker.caller.tenant_id,
    };
    Ok(Authorized::mint(tenant, asker.caller.clone()))
}

/// The caller may do `A` to the object, which is found in the caller's tenant.
///
/// # Errors
/// `not-found`, `permission-denied`, `database-unavailable`.
pub fn on_object<K: Find, A: Action>(asker: &Asker<'_>, id: Uuid) -> Result<Authorized<K, A>> {
    let row = K::find(&mut asker.store.session()?, asker.caller.tenant_id, id)?
        .ok_or_else(|| Error::not_found(K::NAME, id))?;
    Ok(Authorized::mint(row, asker.caller.clone()))
}

/// The caller may list the kind `K`.
///
/// # Errors
/// `permission-denied`.
pub fn listing<K: Kind>(asker: &Asker<'_>) -> Result<Listing<K>> {
    Ok(Listing::mint(asker.caller.clone(), None))
}

/// Somebody may read one run: with a bearer token, or with a public token that names the run.
#[derive(Debug)]
pub struct RunReader {
    run: Run,
    tenant_id: Uuid,
    ends_at: Option<OffsetDateTime>,
    token_id: Option<Uuid>,
}

impl RunReader {
    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run, when the proof is no longer needed.
    pub fn into_run(self) -> Run {
        self.run
    }

    /// When the credential ends: a stream ends with it.
    pub fn ends_at(&self) -> Option<OffsetDateTime> {
        self.ends_at
    }

    /// The bearer token, if it was one.
    pub fn token_id(&self) -> Option<Uuid> {
        self.token_id
    }
}

impl May<Read, Run> for RunReader {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run.id()
    }
}

/// A bearer token with read on the run, or a public token of the run.
///
/// # Errors
/// `not-found`, `permission-denied`, `database-unavailable`.
pub fn run_reader(store: &Store, credential: Credential, run_id: Uuid) -> Result<RunReader> {
    match credential {
        Credential::Bearer(known) => {
            let ends_at = known.expires_at;
            let token_id = Some(known.caller.token_id);
            let proof: Authorized<Run, Read> = on_object(&Asker::new(store, known.caller), run_id)?;
            Ok(RunReader {
                tenant_id: proof.tenant_id(),
                run: proof.into_row(),
                ends_at,
                token_id,
            })
        }
        Credential::Public(PublicToken {
            tenant_id,
            run_ids,
            expires_at,
        }) => {
            if !run_ids.contains(&run_id) {
                return Err(Error::new(
                    Code::PermissionDenied,
                    "This public run token is not for this run. Mint one that names it.",
                ));
            }
            let run = Run::find(&mut store.session()?, tenant_id, run_id)?
                .ok_or_else(|| Error::not_found(Run::NAME, run_id))?;
            Ok(RunReader {
                run,
                tenant_id,
                ends_at: Some(expires_at),
                token_id: None,
            })
        }
    }
}
