//! Files that are lost while their database still exists. Without the keys of secrets, sealed
//! values cannot be opened. With another tenant's id, a server would start an empty tenant beside
//! the existing one.
//!
//! Guarantees: neither is made anew if the database holds what belongs to the lost one, unless the
//! operator insists.
//!
//! Not here: a database on another host, which setup cannot ask.

use super::Paths;
use super::databases::{self, Request};
use super::keys;
use super::tenant::Tenant;
use crate::cli::{Failure, Outcome};
use crate::config::EnvFile;
use std::path::PathBuf;

/// The missing files that belong to a database.
pub(super) struct Lost {
    keys: Vec<PathBuf>,
    tenant_id: bool,
}

impl Lost {
    pub(super) fn find(paths: &Paths, settings: &EnvFile, with_secrets: bool) -> Self {
        Self {
            keys: match with_secrets {
                true => keys::missing_of_secrets(paths, settings),
                false => Vec::new(),
            },
            tenant_id: !keys::has(settings, "SVC_TENANT_ID"),
        }
    }

    /// Asks the database for its content if something is missing.
    ///
    /// # Errors
    /// It holds what belongs to the missing files, or cannot be asked.
    pub(super) fn check(
        self,
        request: &Request,
        database: &str,
        paths: &Paths,
        new_keys: bool,
    ) -> Outcome<Tenant> {
        if self.keys.is_empty() && !self.tenant_id {
            return Ok(Tenant::None);
        }
        let holds = databases::look_into(request, database)?;
        if let (Some(key), true) = (self.keys.first(), holds.sealed > 0 && !new_keys) {
            return Err(Failure::new(format!(
                "{} is missing, and the database {database} holds {} sealed values, which no other \
                 key opens. Put the key back from your copy, or name the one you use in {}, and \
                 run this again. With --new-keys setup makes a new one, and those values are \
                 lost.",
                key.display(),
                holds.sealed,
                paths.env_file.display()
            )));
        }
        match (self.tenant_id, holds.tenants, holds.tenant_ids.as_slice()) {
            (false, ..) | (true, 0, _) => Ok(Tenant::None),
            (true, 1, [tenant_id]) => Ok(Tenant::Existing(*tenant_id, database.to_owned())),
            (true, tenants, ids) => {
                let ids: Vec<_> = ids.iter().map(|id| format!("\n  {id}")).collect();
                Err(Failure::new(format!(
                    "The database {database} holds {tenants} tenants, and {} does not say which is \
                     this server's own: set SVC_TENANT_ID there and run this again. The first of \
                     them:{}",
                    paths.env_file.display(),
                    ids.concat()
                )))
            }
        }
    }
}
