//! The whole audit in one snapshot, read in pieces of bounded size, for the commands that verify
//! and export it. It uses a connection of its own, without the limits of a request.

use super::purge::Anchor;
use super::{Batch, Digest, Outcome, Row, digest, digests};
use super::{Columns, FromRow};
use crate::error::Result;
use crate::store::Parameter;
use crate::store::connect::Manager;
use crate::{from_row, sql};
use postgres::{IsolationLevel, Portal, Row as DatabaseRow, Transaction};
use std::collections::VecDeque;
use std::marker::PhantomData;
use time::OffsetDateTime;
use uuid::Uuid;

/// Rows fetched at once.
const FETCH: i32 = 1000;

/// A command takes its time, and its reader may.
///
/// A purge that drops a month is not undone for whoever began before it: its rows are gone at once,
/// its anchor is not seen. So the tables are held before the moment is chosen, which is at the first
/// query: the purge has ended by then, or waits. In the order in which a purge takes them.
const BEGIN: &str = "set local statement_timeout = 0;
set local idle_in_transaction_session_timeout = 0;
set local lock_timeout = '30s';
lock table audit_decisions, audit_batches in access share mode";

/// One moment of the audit.
pub struct Snapshot<'a>(Transaction<'a>);

/// Rows that are read piece by piece.
pub struct Rows<T> {
    portal: Portal,
    fetched: VecDeque<DatabaseRow>,
    is_done: bool,
    read: PhantomData<fn() -> T>,
}

/// What a slot says of its chains.
#[derive(Debug, Clone)]
pub struct Head {
    /// Which.
    pub slot: i32,
    /// Of its last decision.
    pub position: i64,
    /// Of its last decision.
    pub decided_at: OffsetDateTime,
    /// Of the last batch of each chain, in the order of [`Outcome::ALL`].
    pub digests: [Digest; 2],
}

/// A row or batch whose slot no writer had.
#[derive(Debug, Clone)]
pub struct Stray {
    /// Which.
    pub slot: i32,
    /// Its place.
    pub position: i64,
    /// When.
    pub decided_at: OffsetDateTime,
    /// Which chain.
    pub outcome: Outcome,
}

/// Reads the audit as it stands now.
///
/// # Errors
/// Those of `work`; `database-unavailable`, also where a purge takes longer than it can be waited
/// for.
pub fn read<T>(manager: &Manager, work: impl FnOnce(&mut Snapshot<'_>) -> Result<T>) -> Result<T> {
    let mut client = manager.client()?;
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()?;
    transaction.batch_execute(BEGIN)?;
    work(&mut Snapshot(transaction))
}

impl FromRow for Batch {
    fn from_row(row: &DatabaseRow) -> Result<Self> {
        Ok(Self {
            outcome: row.column("outcome")?,
            first_position: row.column("first_position")?,
            last_position: row.column("last_position")?,
            row_count: row.column("row_count")?,
            decided_at: row.column("decided_at")?,
            digest: digest(row, "digest")?,
            previous_digest: digest(row, "previous_digest")?,
        })
    }
}

impl FromRow for Head {
    fn from_row(row: &DatabaseRow) -> Result<Self> {
        Ok(Self {
            slot: row.column("slot")?,
            position: row.column("position")?,
            decided_at: row.column("decided_at")?,
            digests: digests(row)?,
        })
    }
}

from_row!(Stray {
    slot,
    position,
    decided_at,
    outcome
});

impl Snapshot<'_> {
    /// The slots, in order.
    pub fn heads(&mut self) -> Result<Vec<Head>> {
        let rows = self.0.query(sql!("audit/slots"), &[])?;
        rows.iter().map(Head::from_row).collect()
    }

    /// The anchors that purges left.
    pub fn anchors(&mut self) -> Result<Vec<Anchor>> {
        let rows = self.0.query(sql!("audit/anchors"), &[])?;
        rows.iter().map(Anchor::from_row).collect()
    }

    /// Something of a slot that is not there.
    pub fn stray(&mut self) -> Result<Option<Stray>> {
        let row = self.0.query_opt(sql!("audit/stray_slot"), &[])?;
        row.as_ref().map(Stray::from_row).transpose()
    }

    /// The batches of a chain, in order.
    pub fn batches(&mut self, slot: i32, outcome: Outcome) -> Result<Rows<Batch>> {
        self.rows(sql!("audit/batches_of"), &[&slot, &outcome])
    }

    /// The decisions of a chain, in order.
    pub fn decisions(&mut self, slot: i32, outcome: Outcome) -> Result<Rows<Row>> {
        self.rows(sql!("audit/decisions_of"), &[&slot, &outcome])
    }

    /// The decisions from then until before then, of one tenant or of all, oldest first.
    pub fn between(
        &mut self,
        from: OffsetDateTime,
        to: OffsetDateTime,
        tenant_id: Option<Uuid>,
    ) -> Result<Rows<Row>> {
        self.rows(sql!("audit/export"), &[&from, &to, &tenant_id])
    }

    fn rows<T>(&mut self, statement: &str, parameters: &[Parameter<'_>]) -> Result<Rows<T>> {
        Ok(Rows {
            portal: self.0.bind(statement, parameters)?,
            fetched: VecDeque::new(),
            is_done: false,
            read: PhantomData,
        })
    }
}

impl<T: FromRow> Rows<T> {
    /// The next one, if there is one.
    pub fn next(&mut self, snapshot: &mut Snapshot<'_>) -> Result<Option<T>> {
        if self.fetched.is_empty() && !self.is_done {
            let rows = snapshot.0.query_portal(&self.portal, FETCH)?;
            self.is_done = rows.is_empty();
            self.fetched.extend(rows);
        }
        let next = self.fetched.pop_front();
        next.as_ref().map(T::from_row).transpose()
    }
}
