//! Verifies the chains. It recomputes each digest from the decisions, and finds the first batch of
//! each chain that was changed, removed or inserted.
//!
//! `docs/audit.md` says what this cannot prove. Above all, whoever may write all these tables can
//! forge a whole chain.

use super::anchor;
use super::chain::digest;
use crate::error::Result;
use crate::ids::rfc3339;
use crate::store::audit::pages::micros;
use crate::store::audit::purge::Anchor;
use crate::store::audit::snapshot::{self, Head, Rows, Snapshot};
use crate::store::audit::{Batch, Digest, Outcome, Row};
use crate::store::connect::Manager;
use ed25519_dalek::VerifyingKey;
use serde::Serialize;
use time::OffsetDateTime;

/// Decisions between two calls of `progress`.
const PROGRESS: u64 = 10_000;
/// Decisions in one batch, at most; a writer makes smaller ones. The bound limits memory.
const ROWS_MOST: usize = 100_000;

/// What was done to a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A decision or a batch was changed.
    Changed,
    /// A decision or a batch was removed.
    Removed,
    /// A decision or a batch was inserted.
    Inserted,
    /// An anchor has no valid signature, or none at all where a key is trusted.
    AnchorNotSigned,
}

/// The first fault of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// What was done.
    pub kind: Kind,
    /// The writer's slot.
    pub slot: i32,
    /// Which of the slot's chains.
    pub outcome: Outcome,
    /// The first position concerned.
    pub first_position: i64,
    /// The last position concerned.
    pub last_position: i64,
    /// When the first of these decisions was made, if known.
    #[serde(with = "rfc3339")]
    pub from: OffsetDateTime,
    /// When the last was made, if known.
    #[serde(with = "rfc3339")]
    pub to: OffsetDateTime,
    /// The fault in one sentence.
    pub finding: String,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Decisions verified.
    pub decisions: u64,
    /// Batches verified.
    pub batches: u64,
    /// Chains verified.
    pub chains: u64,
    /// Chains whose start was purged.
    pub anchors: u64,
    /// Those of them whose anchor nobody signed. Whether a purge removed that start, or somebody who may write
    /// the tables, cannot be told of them.
    pub unsigned_anchors: u64,
    /// The first fault of each chain that has one.
    pub faults: Vec<Fault>,
}

/// Verifies all chains in one snapshot. An anchor must be signed by one of `trusted`. If that is empty,
/// it is signed by the key that it names, or is counted as unsigned. `progress` gets the number of
/// decisions so far.
///
/// # Errors
/// `database-unavailable`; `internal` if a table cannot be read.
pub fn verify(
    manager: &Manager,
    trusted: &[VerifyingKey],
    mut progress: impl FnMut(u64),
) -> Result<Report> {
    snapshot::read(manager, |snapshot| {
        let mut report = Report::default();
        let anchors = snapshot.anchors()?;
        let heads = snapshot.heads()?;
        report.anchors = anchors.len() as u64;
        let unsigned = anchors.iter().filter(|anchor| anchor.seal.is_none());
        report.unsigned_anchors = unsigned.count() as u64;
        report.faults.extend(badly_signed(&anchors, trusted));
        report.faults.extend(missing_slot(&heads));
        for head in &heads {
            for outcome in Outcome::ALL {
                let mut chain = Chain::begin(snapshot, head, outcome, &anchors)?;
                let fault = chain.verify(snapshot, &mut report, &mut progress)?;
                report.faults.extend(fault);
                report.chains += 1;
            }
        }
        if let Some(stray) = snapshot.stray()? {
            report.faults.push(Fault {
                kind: Kind::Inserted,
                slot: stray.slot,
                outcome: stray.outcome,
                first_position: stray.position,
                last_position: stray.position,
                from: stray.decided_at,
                to: stray.decided_at,
                finding: "no writer has this slot, or the writer's row was removed".to_owned(),
            });
        }
        Ok(report)
    })
}

fn badly_signed(anchors: &[Anchor], trusted: &[VerifyingKey]) -> Vec<Fault> {
    // Without a key of the operator's an anchor may be unsigned, which proves nothing in itself.
    let is_demanded = |anchor: &Anchor| anchor.seal.is_some() || !trusted.is_empty();
    let bad = anchors
        .iter()
        .filter(|anchor| is_demanded(anchor) && !anchor::is_signed(anchor, trusted));
    bad.map(|anchor| Fault {
        kind: Kind::AnchorNotSigned,
        slot: anchor.slot,
        outcome: anchor.outcome,
        first_position: 1,
        last_position: anchor.through_position,
        from: OffsetDateTime::UNIX_EPOCH,
        to: anchor.purged_at,
        finding: match anchor.seal {
            Some(_) => "the anchor of a purge is not signed by the audit's key",
            None => {
                "the anchor of a purge is not signed: there was no key yet, or decisions were removed and this was put in their place"
            }
        }
        .to_owned(),
    })
    .collect()
}

/// Slots are numbered without gaps, and their rows are never deleted.
fn missing_slot(heads: &[Head]) -> Option<Fault> {
    let (slot, head) = (1..).zip(heads).find(|(slot, head)| head.slot != *slot)?;
    Some(Fault {
        kind: Kind::Removed,
        slot,
        outcome: Outcome::Allowed,
        first_position: 1,
        last_position: 1,
        from: OffsetDateTime::UNIX_EPOCH,
        to: head.decided_at,
        finding: "the row of this slot's writer was removed".to_owned(),
    })
}

/// One chain while it is read.
struct Chain<'a> {
    head: &'a Head,
    outcome: Outcome,
    batches: Rows<Batch>,
    rows: Rows<Row>,
    /// A decision that was read too early: it belongs to a later batch.
    ahead: Option<Row>,
    /// Digest of the batch before.
    digest: Digest,
    position: i64,
    decided_at: OffsetDateTime,
}

impl<'a> Chain<'a> {
    fn begin(
        snapshot: &mut Snapshot<'_>,
        head: &'a Head,
        outcome: Outcome,
        anchors: &[Anchor],
    ) -> Result<Self> {
        let anchor = anchors
            .iter()
            .find(|anchor| (anchor.slot, anchor.outcome) == (head.slot, outcome));
        Ok(Self {
            head,
            outcome,
            batches: snapshot.batches(head.slot, outcome)?,
            rows: snapshot.decisions(head.slot, outcome)?,
            ahead: None,
            digest: anchor.map_or([0; 32], |anchor| anchor.digest),
            position: anchor.map_or(0, |anchor| anchor.through_position),
            decided_at: OffsetDateTime::UNIX_EPOCH,
        })
    }

    fn verify(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        report: &mut Report,
        progress: &mut impl FnMut(u64),
    ) -> Result<Option<Fault>> {
        while let Some(batch) = self.batches.next(snapshot)? {
            report.batches += 1;
            if let Some(fault) = self.misplaced(&batch) {
                return Ok(Some(fault));
            }
            let mut own = Vec::new();
            while own.len() < ROWS_MOST
                && let Some(row) = self.row_through(snapshot, batch.last_position)?
            {
                report.decisions += 1;
                if report.decisions.is_multiple_of(PROGRESS) {
                    progress(report.decisions);
                }
                if row.position < batch.first_position {
                    return Ok(Some(self.row_fault(&row)));
                }
                own.push(row);
            }
            if let Some(fault) = self.differs(&batch, &own) {
                return Ok(Some(fault));
            }
            self.digest = batch.digest;
            self.position = batch.last_position;
            self.decided_at = batch.decided_at;
        }
        if let Some(row) = self.row_through(snapshot, i64::MAX)? {
            return Ok(Some(self.row_fault(&row)));
        }
        let index = usize::from(self.outcome == Outcome::Denied);
        if self.head.digests[index] != self.digest {
            let finding = "the end of the chain is not what its writer wrote last";
            return Ok(Some(self.fault(Kind::Removed, self.head.position, finding)));
        }
        Ok(None)
    }

    /// The next decision up to this position.
    fn row_through(&mut self, snapshot: &mut Snapshot<'_>, last: i64) -> Result<Option<Row>> {
        if self.ahead.is_none() {
            self.ahead = self.rows.next(snapshot)?;
        }
        Ok(self.ahead.take_if(|row| row.position <= last))
    }

    fn misplaced(&self, batch: &Batch) -> Option<Fault> {
        let inserted = |finding| Fault {
            from: batch.decided_at,
            to: batch.decided_at,
            ..self.span(
                Kind::Inserted,
                batch.first_position,
                batch.last_position,
                finding,
            )
        };
        if batch.first_position <= self.position || batch.last_position > self.head.position {
            return Some(inserted("a batch stands where its writer wrote none"));
        }
        if batch.previous_digest != self.digest {
            let mut fault = self.span(
                Kind::Removed,
                self.position + 1,
                batch.last_position,
                "this batch does not follow the one before it: batches between them were removed, or one of the two was changed or inserted",
            );
            fault.to = batch.decided_at;
            return Some(fault);
        }
        None
    }

    fn differs(&self, batch: &Batch, own: &[Row]) -> Option<Fault> {
        let rows: Vec<&Row> = own.iter().collect();
        let same =
            digest(self.head.slot, self.outcome, &batch.previous_digest, &rows) == batch.digest;
        let first = own.first().map(|row| row.position);
        let last = own.last().map(|row| (row.position, micros(row.decided_at)));
        let described = first == Some(batch.first_position)
            && last == Some((batch.last_position, micros(batch.decided_at)))
            && i32::try_from(own.len()) == Ok(batch.row_count);
        if same && described {
            return None;
        }
        let count = own.len();
        let written = usize::try_from(batch.row_count).unwrap_or(0);
        let (kind, finding) = match count.cmp(&written) {
            _ if same => (Kind::Changed, "the batch's own row was changed".to_owned()),
            std::cmp::Ordering::Less => (
                Kind::Removed,
                format!(
                    "{} of its {written} decisions were removed",
                    written - count
                ),
            ),
            std::cmp::Ordering::Greater => (
                Kind::Inserted,
                format!("{} decisions were inserted into it", count - written),
            ),
            std::cmp::Ordering::Equal => (
                Kind::Changed,
                "its decisions, or its digest, were changed".to_owned(),
            ),
        };
        let mut fault = self.span(kind, batch.first_position, batch.last_position, &finding);
        fault.from = own.first().map_or(batch.decided_at, |row| row.decided_at);
        fault.to = batch.decided_at;
        Some(fault)
    }

    fn row_fault(&self, row: &Row) -> Fault {
        Fault {
            from: row.decided_at,
            to: row.decided_at,
            ..self.span(
                Kind::Inserted,
                row.position,
                row.position,
                "a decision stands in no batch: it was inserted, or its batch was removed",
            )
        }
    }

    fn fault(&self, kind: Kind, last_position: i64, finding: &str) -> Fault {
        Fault {
            to: self.head.decided_at,
            ..self.span(kind, self.position + 1, last_position, finding)
        }
    }

    fn span(&self, kind: Kind, first_position: i64, last_position: i64, finding: &str) -> Fault {
        Fault {
            kind,
            slot: self.head.slot,
            outcome: self.outcome,
            first_position,
            last_position,
            from: self.decided_at,
            to: self.decided_at,
            finding: finding.to_owned(),
        }
    }
}
