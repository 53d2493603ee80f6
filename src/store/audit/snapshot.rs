//! The whole audit as it stood at one moment, read in pieces of bounded size: for the commands that
//! verify and export it. It has a connection of its own, without the limits of a request.

use super::purge::{Anchor, anchor};
use super::{Batch, Digest, Outcome, Row, digest, row};
use crate::error::{Error, Result};
use crate::sql;
use crate::store::Parameter;
use crate::store::connect::Manager;
use postgres::{IsolationLevel, Portal, Row as DatabaseRow, Transaction};
use std::collections::VecDeque;
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
    read: fn(&DatabaseRow) -> Result<T>,
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

fn batch(row: &DatabaseRow) -> Result<Batch> {
    Ok(Batch {
        outcome: outcome(row.try_get(0)?)?,
        first_position: row.try_get(1)?,
        last_position: row.try_get(2)?,
        row_count: row.try_get(3)?,
        decided_at: row.try_get(4)?,
        digest: digest(row, 5)?,
        previous_digest: digest(row, 6)?,
    })
}

fn outcome(text: &str) -> Result<Outcome> {
    Outcome::from_text(text).ok_or_else(|| Error::internal(format!("an outcome is {text}")))
}

impl Snapshot<'_> {
    /// The slots, in order.
    ///
    /// # Errors
    /// `database-unavailable`.
    pub fn heads(&mut self) -> Result<Vec<Head>> {
        let rows = self.0.query(sql!("audit/slots"), &[])?;
        rows.iter()
            .map(|row| {
                Ok(Head {
                    slot: row.try_get(0)?,
                    position: row.try_get(1)?,
                    decided_at: row.try_get(2)?,
                    digests: [digest(row, 3)?, digest(row, 4)?],
                })
            })
            .collect()
    }

    /// The anchors that purges left.
    ///
    /// # Errors
    /// `database-unavailable`.
    pub fn anchors(&mut self) -> Result<Vec<Anchor>> {
        let rows = self.0.query(sql!("audit/anchors"), &[])?;
        rows.iter().map(anchor).collect()
    }

    /// Something of a slot that is not there.
    ///
    /// # Errors
    /// `database-unavailable`.
    pub fn stray(&mut self) -> Result<Option<Stray>> {
        let row = self.0.query_opt(sql!("audit/stray_slot"), &[])?;
        row.map(|row| {
            Ok(Stray {
                slot: row.try_get(0)?,
                position: row.try_get(1)?,
                decided_at: row.try_get(2)?,
                outcome: outcome(row.try_get(3)?)?,
            })
        })
        .transpose()
    }

    /// The batches of a chain, in order.
    ///
    /// # Errors
    /// `database-unavailable`.
    pub fn batches(&mut self, slot: i32, outcome: Outcome) -> Result<Rows<Batch>> {
        self.rows(sql!("audit/batches_of"), &[&slot, &outcome.text()], batch)
    }

    /// The decisions of a chain, in order.
    ///
    /// # Errors
    /// `database-unavailable`.
    pub fn decisions(&mut self, slot: i32, outcome: Outcome) -> Result<Rows<Row>> {
        self.rows(sql!("audit/decisions_of"), &[&slot, &outcome.text()], row)
    }

    /// The decisions from then until before then, of one tenant or of all, oldest first.
    ///
    /// # Errors
    /// `database-unavailable`.
    pub fn between(
        &mut self,
        from: OffsetDateTime,
        to: OffsetDateTime,
        tenant_id: Option<Uuid>,
    ) -> Result<Rows<Row>> {
        self.rows(sql!("audit/export"), &[&from, &to, &tenant_id], row)
    }

    fn rows<T>(
        &mut self,
        statement: &str,
        parameters: &[Parameter<'_>],
        read: fn(&DatabaseRow) -> Result<T>,
    ) -> Result<Rows<T>> {
        Ok(Rows {
            portal: self.0.bind(statement, parameters)?,
            fetched: VecDeque::new(),
            is_done: false,
            read,
        })
    }
}

impl<T> Rows<T> {
    /// The next one, if there is one.
    ///
    /// # Errors
    /// `database-unavailable`.
    pub fn next(&mut self, snapshot: &mut Snapshot<'_>) -> Result<Option<T>> {
        if self.fetched.is_empty() && !self.is_done {
            let rows = snapshot.0.query_portal(&self.portal, FETCH)?;
            self.is_done = rows.is_empty();
            self.fetched.extend(rows);
        }
        let next = self.fetched.pop_front();
        next.as_ref().map(self.read).transpose()
    }
}
