//! The calls that a model provider takes at once: which run makes one, and which runs wait in line.
//!
//! Guarantees: no more runs make a call than the provider's row says, over all replicas, but for a run whose holder lost it in
//! the middle of a call. The line is in the order in which runs asked. A run that ended leaves nothing behind.
//!
//! Not here: parking a run that waits (`runs`), and the call (`model`).

use super::{Columns, Sql};
use crate::error::Result;
use crate::sql;
use crate::store::runs::Lease;
use time::OffsetDateTime;
use uuid::Uuid;

/// A provider that takes so many calls at once.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// The provider.
    pub model_provider_id: Uuid,
    /// How many calls it takes.
    pub at_once: u32,
}

impl Line {
    /// Asks for a call of a held run. Whether it may be made now; if not, the run is in line.
    pub fn take(self, sql: &mut impl Sql, lease: &Lease, now: OffsetDateTime) -> Result<bool> {
        let at_once = self.at_once();
        let row = sql.query_one(
            sql!("model_calls/take"),
            &[
                &lease.tenant_id(),
                &self.model_provider_id,
                &lease.run_id(),
                &lease.epoch(),
                &at_once,
                &now,
            ],
        )?;
        row.column("is_granted")
    }

    /// The call of a held run is over.
    pub fn give_back(self, sql: &mut impl Sql, lease: &Lease, now: OffsetDateTime) -> Result<()> {
        sql.query_one(
            sql!("model_calls/give_back"),
            &[
                &lease.tenant_id(),
                &self.model_provider_id,
                &lease.run_id(),
                &lease.epoch(),
                &self.at_once(),
                &now,
            ],
        )?;
        Ok(())
    }

    fn at_once(self) -> i32 {
        i32::try_from(self.at_once).unwrap_or(i32::MAX)
    }
}
