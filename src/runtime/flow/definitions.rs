//! The definitions of flows that this process has read, so that a run that is taken up reads and checks none again.
//!
//! Guarantees: a version of a flow never changes, nor does what it names, so what is kept is never wrong. At most
//! [`BYTES_KEPT`] of definitions are kept, counted as their authors wrote them.

use super::limits::FlowLimits;
use crate::error::{Code, Error, Result};
use crate::flows::definition::check;
use crate::flows::definition::tree::Definition;
use crate::store::Sql;
use crate::store::flow_versions::{self, Use, UseKind};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// A hundred of the longest that are taken, and thousands of usual ones.
const BYTES_KEPT: usize = 25 * 1024 * 1024;

/// A version of a flow.
pub(super) struct Known {
    pub(super) definition: Arc<Definition>,
    uses: Vec<Use>,
    bytes: usize,
}

impl Known {
    #[cfg(test)]
    pub(super) fn of_tests(definition: Definition) -> Arc<Self> {
        Arc::new(Self {
            definition: Arc::new(definition),
            uses: Vec::new(),
            bytes: 0,
        })
    }

    /// What the version names of this kind: names, rows, and versions where they are named.
    pub(super) fn uses(&self, kind: UseKind) -> Vec<&Use> {
        let uses = self.uses.iter();
        uses.filter(|used| used.kind == kind).collect()
    }
}

/// Tenant, project, flow id, version.
type Key = (Uuid, Uuid, String, String);

/// What this process has read.
pub(in crate::runtime) struct Definitions {
    /// What their runs may take.
    pub(super) limits: FlowLimits,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    versions: HashMap<Key, Arc<Known>>,
    bytes: usize,
}

impl Definitions {
    pub(in crate::runtime) fn new(limits: FlowLimits) -> Self {
        Self {
            limits,
            kept: Mutex::default(),
        }
    }

    /// The version of a project's flow. `None`: the project has no such version.
    ///
    /// # Errors
    /// The database's; `conflict`, when the database holds a definition that this program does not take.
    pub(super) fn of(
        &self,
        sql: &mut impl Sql,
        (tenant_id, project_id): (Uuid, Uuid),
        (flow_id, version): (&str, &str),
    ) -> Result<Option<Arc<Known>>> {
        let key = (
            tenant_id,
            project_id,
            flow_id.to_owned(),
            version.to_owned(),
        );
        if let Some(known) = self.lock().versions.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let project = (tenant_id, project_id);
        let Some(pinned) = flow_versions::definition_of(sql, project, flow_id, version)? else {
            return Ok(None);
        };
        let definition = check(&pinned.definition).map_err(|faults| {
            let first = faults.first().map(|fault| fault.message.as_str());
            let first = first.unwrap_or_default();
            let said = format!("The flow {flow_id} {version} is not taken any more: {first}");
            Error::new(Code::Conflict, said)
        })?;
        let known = Arc::new(Known {
            definition: Arc::new(definition),
            uses: pinned.uses,
            bytes: pinned.definition.to_string().len(),
        });
        let mut kept = self.lock();
        if kept.bytes + known.bytes > BYTES_KEPT {
            *kept = Kept::default();
        }
        kept.bytes += known.bytes;
        if let Some(twice) = kept.versions.insert(key, Arc::clone(&known)) {
            kept.bytes -= twice.bytes;
        }
        Ok(Some(known))
    }

    /// The definition of a version. `None`: the project has no such version.
    ///
    /// # Errors
    /// Those of [`Definitions::of`].
    pub(in crate::runtime) fn definition(
        &self,
        sql: &mut impl Sql,
        project: (Uuid, Uuid),
        version: (&str, &str),
    ) -> Result<Option<Arc<Definition>>> {
        let known = self.of(sql, project, version)?;
        Ok(known.map(|known| Arc::clone(&known.definition)))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
