//! The hash chain over the decisions of one writer. The digest of a batch covers every field of
//! every decision in it, their positions, and the digest of the batch before.
//!
//! [`PREFIX`] fixes the format. Another format gets another version there: the second one covers what kind of credential each
//! decision was made for. A batch is of that format if one of its decisions has a kind, so those of programs before it are
//! still of the first, and taking a kind away changes a digest like any other change.

use crate::ids::made_at;
use crate::store::audit::pages::micros;
use crate::store::audit::{Batch, Digest, Outcome, Row, Slot};
use crate::store::tokens::CredentialKind;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

/// The formats, without and with kinds of credentials.
const PREFIX: [&[u8]; 2] = [
    b"agent-runtime audit batch 1\n",
    b"agent-runtime audit batch 2\n",
];

/// The digest of a batch of these decisions, in the order of their positions.
pub(super) fn digest(slot: i32, outcome: Outcome, previous: &Digest, rows: &[&Row]) -> Digest {
    let mut hash = Sha256::new();
    let has_kinds = rows.iter().any(|row| row.credential_kind.is_some());
    hash.update(PREFIX[usize::from(has_kinds)]);
    hash.update(previous);
    hash.update(slot.to_be_bytes());
    text(&mut hash, outcome.text());
    hash.update((rows.len() as u64).to_be_bytes());
    for row in rows {
        feed(&mut hash, row);
        if has_kinds {
            let kind = row.credential_kind.map(CredentialKind::text);
            optional(&mut hash, kind, text);
        }
    }
    hash.finalize().into()
}

fn text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

fn optional<T>(hash: &mut Sha256, value: Option<T>, feed: impl Fn(&mut Sha256, T)) {
    match value {
        None => hash.update([0]),
        Some(value) => {
            hash.update([1]);
            feed(hash, value);
        }
    }
}

fn feed(hash: &mut Sha256, row: &Row) {
    hash.update(row.position.to_be_bytes());
    hash.update(micros(row.decided_at).to_be_bytes());
    hash.update(row.id);
    hash.update(row.tenant_id);
    for field in [
        &row.actor_subject,
        &row.action,
        &row.resource,
        &row.reason,
        &row.stage,
    ] {
        text(hash, field);
    }
    hash.update(row.duration_us.to_be_bytes());
    for field in [
        &row.failing_part,
        &row.check_user,
        &row.check_relation,
        &row.check_object,
        &row.store_id,
        &row.model_id,
        &row.trace_id,
        &row.route,
        &row.client_address,
    ] {
        optional(hash, field.as_deref(), text);
    }
    for id in [row.request_id, row.key_id, row.run_id] {
        optional(hash, id, |hash, id| hash.update(id));
    }
}

/// Numbers the decisions after the last position of `slot`, and makes one batch for each outcome
/// and month. Returns the slot as it is afterwards.
pub(super) fn stamp(slot: &Slot, rows: &mut [&mut Row]) -> (Slot, Vec<Batch>) {
    let mut after = slot.clone();
    for row in rows.iter_mut() {
        // PostgreSQL keeps microseconds. If the clock was set back, the time of the last decision
        // counts.
        let at = micros(row.decided_at).max(micros(after.decided_at));
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1000);
        after.decided_at = at.unwrap_or(after.decided_at);
        after.position += 1;
        row.slot = slot.slot;
        row.position = after.position;
        row.decided_at = after.decided_at;
        // By its id a decision is found at its time.
        row.id = made_at(row.id, row.decided_at);
    }
    let month = |row: &Row| (row.decided_at.year(), row.decided_at.month());
    let mut batches = Vec::new();
    for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
        let own = rows.iter().map(|row| &**row);
        let own: Vec<&Row> = own.filter(|row| row.outcome == outcome).collect();
        for group in own.chunk_by(|one, next| month(one) == month(next)) {
            let previous = after.digests[index];
            let digest = digest(slot.slot, outcome, &previous, group);
            let (first, last) = (group[0], group[group.len() - 1]);
            batches.push(Batch {
                outcome,
                first_position: first.position,
                last_position: last.position,
                row_count: i32::try_from(group.len()).unwrap_or(i32::MAX),
                decided_at: last.decided_at,
                digest,
                previous_digest: previous,
            });
            after.digests[index] = digest;
        }
    }
    (after, batches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Decision, Stage};
    use crate::ids::Clock;
    use std::time::Duration;
    use uuid::Uuid;

    fn rows(outcomes: &[Outcome]) -> Vec<Row> {
        let clock = Clock::system();
        let decision = |outcome| Decision {
            tenant_id: Uuid::from_u128(1),
            actor_subject: "user:a".to_owned(),
            action: "read".to_owned(),
            resource: "project:b".to_owned(),
            outcome,
            reason: "because".to_owned(),
            stage: Stage::Model,
            failing_part: None,
            check: None,
            duration: Duration::from_micros(5),
            request_id: None,
            trace_id: None,
            key_id: None,
            credential_kind: None,
            route: None,
            run_id: None,
            client_address: None,
        };
        let make = |outcome: &Outcome| decision(*outcome).into_row(&clock);
        outcomes.iter().map(make).collect()
    }

    fn stamped(slot: &Slot, rows: &mut [Row]) -> (Slot, Vec<Batch>) {
        stamp(slot, &mut rows.iter_mut().collect::<Vec<_>>())
    }

    fn slot() -> Slot {
        Slot {
            slot: 3,
            epoch: 1,
            position: 10,
            decided_at: OffsetDateTime::UNIX_EPOCH,
            digests: [[0; 32]; 2],
        }
    }

    #[test]
    fn each_outcome_has_its_chain_over_common_positions() {
        use Outcome::{Allowed, Denied};
        let mut rows = rows(&[Allowed, Denied, Allowed]);
        let (after, batches) = stamped(&slot(), &mut rows);
        assert_eq!(after.position, 13);
        let places: Vec<_> = batches
            .iter()
            .map(|b| (b.outcome, b.first_position, b.last_position, b.row_count))
            .collect();
        assert_eq!(places, [(Allowed, 11, 13, 2), (Denied, 12, 12, 1)]);
        assert_eq!(after.digests, [batches[0].digest, batches[1].digest]);
        let mut more = rows.clone();
        let (_, next) = stamped(&after, &mut more);
        assert_eq!(next[0].previous_digest, batches[0].digest);
        assert!(more[0].decided_at >= rows[2].decided_at);
    }

    #[test]
    fn no_batch_spans_two_months_and_time_never_goes_back() {
        let mut rows = rows(&[Outcome::Denied; 3]);
        let at = |text| crate::ids::rfc3339::parse(text).unwrap();
        rows[0].decided_at = at("2026-01-31T23:59:59.999Z");
        rows[1].decided_at = at("2026-02-01T00:00:00Z");
        rows[2].decided_at = at("2026-01-31T00:00:00Z");
        let (_, batches) = stamped(&slot(), &mut rows);
        assert_eq!(batches.len(), 2);
        assert_eq!((batches[0].row_count, batches[1].row_count), (1, 2));
        assert_eq!(rows[2].decided_at, rows[1].decided_at);
        for row in &rows {
            let made = crate::ids::time_of(row.id).unwrap();
            let late = row.decided_at - made;
            assert!(!late.is_negative() && late < time::Duration::MILLISECOND);
        }
        assert_ne!(rows[1].id, rows[2].id);
    }

    #[test]
    fn the_digest_sees_each_change() {
        let mut rows = rows(&[Outcome::Allowed]);
        stamped(&slot(), &mut rows);
        let digest_of = |row: &Row| digest(3, Outcome::Allowed, &[0; 32], &[row]);
        let before = digest_of(&rows[0]);
        let changes: [fn(&mut Row); 8] = [
            |row| row.credential_kind = Some(CredentialKind::Token),
            |row| row.credential_kind = Some(CredentialKind::Session),
            |row| row.reason.push(' '),
            |row| row.route = Some(String::new()),
            |row| row.trace_id = Some(String::new()),
            |row| row.run_id = Some(Uuid::nil()),
            |row| row.position += 1,
            |row| row.duration_us += 1,
        ];
        let mut seen = vec![before];
        for change in changes {
            let mut changed = rows[0].clone();
            change(&mut changed);
            seen.push(digest_of(&changed));
        }
        seen.push(digest(4, Outcome::Allowed, &[0; 32], &[&rows[0]]));
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
