//! The thread `audit-keeper` makes partitions ahead. Where retention is on, it also purges old
//! decisions (specification section 8). It runs on every replica; a lock lets one purge at a time.
//!
//! A purge removes the start of a chain, in whole batches: old months as whole partitions, the rest
//! of the oldest month in chunks. Each step and its anchor are one transaction.

use super::{Retention, anchor};
use crate::error::{Error, Result};
use crate::ids::Clock;
use crate::store::audit::purge::{self, End};
use crate::store::audit::{self as rows, Outcome};
use crate::store::{Store, Tx, clock, partitions, sql_state};
use crossbeam_channel::Receiver;
use ed25519_dalek::SigningKey;
use postgres::error::SqlState;
use time::OffsetDateTime;

/// Batches deleted in one transaction, at most.
const CHUNK: i64 = 200;

/// How long decisions of this outcome are kept.
const fn days(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Allowed => 90,
        Outcome::Denied => 365,
    }
}

pub(super) struct Keeper {
    pub(super) store: Store,
    pub(super) clock: Clock,
    /// None: nothing is purged.
    pub(super) retention: Option<Retention>,
    /// Empty once the thread is to end.
    pub(super) wake: super::Wake,
    pub(super) log: slog::Logger,
}

impl Keeper {
    /// Runs until `woken` disconnects. The first round starts with the first message.
    pub(super) fn run(&self, woken: &Receiver<()>) {
        if woken.recv().is_err() {
            return;
        }
        let round = || self.round();
        partitions::keep(
            &self.clock,
            woken,
            round,
            || {},
            |error| self.complain(error),
        );
    }

    fn complain(&self, error: &Error) {
        if is_about_rights(error) {
            slog::error!(self.log, "This database role may not make or drop the audit's partitions. Have the owner of its tables do it, with attach_audit_partitions(date), or make this role the owner"; crate::log::ErrorValue(error));
        } else {
            crate::warn_unless!(self.store.is_away(), self.log, "Maintenance of the audit's tables failed; it will be retried"; crate::log::ErrorValue(error));
        }
    }

    fn round(&self) -> Result<()> {
        // Decisions carry this clock's time, so this clock decides which months need partitions.
        let today = self.clock.now().date();
        rows::attach_partitions(&mut self.store.session()?, today)?;
        let Some(Retention { key }) = &self.retention else {
            return Ok(());
        };
        let key = key.as_ref();
        let now = clock::earlier(&mut self.store.session()?, &self.clock)?;
        for outcome in Outcome::ALL {
            let before = now - time::Duration::days(days(outcome));
            self.drop_months(key, outcome, before)?;
            self.delete_rest(key, outcome, before)?;
        }
        Ok(())
    }

    fn drop_months(
        &self,
        key: Option<&SigningKey>,
        outcome: Outcome,
        before: OffsetDateTime,
    ) -> Result<()> {
        let months = purge::months(&mut self.store.session()?, outcome)?;
        for month in months {
            let end = partitions::end_of(month);
            if end > before {
                break;
            }
            let dropped = self.store.transact(|tx| {
                if !purge::lock(tx)? {
                    return Ok(None);
                }
                let ends = purge::ends(tx, outcome, end)?;
                for end in &ends {
                    self.anchor(tx, key, outcome, end)?;
                }
                purge::drop_month(tx, outcome, month)?;
                Ok(Some(ends.iter().map(|end| end.rows).sum::<i64>()))
            })?;
            let Some(count) = dropped else {
                return Ok(());
            };
            slog::info!(self.log, "Purged a month of access decisions"; "outcome" => outcome.text(), "month" => %month, "decisions" => count);
        }
        Ok(())
    }

    /// Purges from the oldest month that stays, in chunks.
    fn delete_rest(
        &self,
        key: Option<&SigningKey>,
        outcome: Outcome,
        before: OffsetDateTime,
    ) -> Result<()> {
        let writers = rows::writers(&mut self.store.session()?)?;
        let mut count = 0;
        for (slot, ..) in writers {
            loop {
                let deleted = self.store.transact(|tx| {
                    if !purge::lock(tx)? {
                        return Ok(None);
                    }
                    let Some((end, through)) = purge::chunk(tx, outcome, slot, before, CHUNK)?
                    else {
                        return Ok(None);
                    };
                    self.anchor(tx, key, outcome, &end)?;
                    purge::delete(tx, outcome, &end, through).map(Some)
                })?;
                let stopped = super::lock(&self.wake).is_none();
                match deleted {
                    Some(deleted) if !stopped => count += deleted,
                    _ => break,
                }
            }
        }
        if count > 0 {
            slog::info!(self.log, "Purged access decisions"; "outcome" => outcome.text(), "decisions" => count);
        }
        Ok(())
    }

    fn anchor(
        &self,
        tx: &mut Tx<'_>,
        key: Option<&SigningKey>,
        outcome: Outcome,
        end: &End,
    ) -> Result<()> {
        let before = purge::find_anchor(tx, end.slot, outcome)?;
        let anchor = anchor::make(key, outcome, before.as_ref(), end, &self.clock);
        purge::put_anchor(tx, &anchor)
    }
}

fn is_about_rights(error: &Error) -> bool {
    sql_state(error) == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}
