//! Up to which position everything that happened to approvals is known.
//!
//! Guarantees: a position is passed only once nothing before it can come any more. So a client that comes back with one misses
//! nothing (`store::approvals::log` says why that is known).

use crate::store::approvals::log::Logged;
use std::time::Instant;

/// Positions that may still come.
#[derive(Debug)]
pub(super) struct Gap {
    /// They are not beyond this one.
    pub(super) to: i64,
    /// The transactions that took them began before this one.
    pub(super) transaction: i64,
    /// How long they are waited for, whatever transactions are under way: longer than one stays open after it took a position.
    /// Only a transaction that takes none, such as an operator's, lasts longer.
    pub(super) until: Instant,
}

impl Gap {
    /// Nothing comes any more: all that began before are over.
    pub(super) fn is_over(&self, oldest_transaction: i64) -> bool {
        oldest_transaction >= self.transaction || Instant::now() > self.until
    }
}

/// Everything up to a position, and what is waited for after it.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) position: i64,
    gap: Option<Gap>,
}

impl Settled {
    pub(super) fn at(position: i64) -> Self {
        Self {
            position,
            gap: None,
        }
    }

    /// Goes on over rows that follow, by position, and says over how many.
    pub(super) fn pass(&mut self, rows: &[Logged]) -> usize {
        let mut passed = 0;
        for row in rows {
            let is_next = row.position == self.position + 1;
            let gap = self.gap.as_ref().filter(|gap| row.position <= gap.to);
            if !is_next && !gap.is_some_and(|gap| gap.is_over(row.oldest_transaction)) {
                break;
            }
            self.position = row.position;
            passed += 1;
        }
        if self.gap.as_ref().is_some_and(|gap| gap.to <= self.position) {
            self.gap = None;
        }
        passed
    }

    /// Something is missing that is not waited for yet.
    pub(super) fn misses(&self, rows: &[Logged], passed: usize) -> bool {
        passed < rows.len() && self.gap.is_none()
    }

    pub(super) fn wait_for(&mut self, gap: Gap) {
        self.gap = Some(gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::approvals::log::Happened;
    use std::time::Duration;
    use time::OffsetDateTime;
    use uuid::Uuid;

    fn rows(positions: &[i64], oldest_transaction: i64) -> Vec<Logged> {
        let row = |position: &i64| Logged {
            tenant_id: Uuid::nil(),
            position: *position,
            kind: Happened::Opened,
            at: OffsetDateTime::UNIX_EPOCH,
            approval_id: Uuid::nil(),
            project_id: Uuid::nil(),
            run_id: Uuid::nil(),
            required_role: "standard".to_owned(),
            title: "Pay".to_owned(),
            assigned_to: None,
            expires_at: OffsetDateTime::UNIX_EPOCH,
            oldest_transaction,
        };
        positions.iter().map(row).collect()
    }

    fn gap(to: i64, transaction: i64) -> Gap {
        Gap {
            to,
            transaction,
            until: Instant::now() + Duration::from_secs(3600),
        }
    }

    #[test]
    fn what_is_missing_is_waited_for_as_long_as_a_transaction_may_last() {
        let mut settled = Settled::at(4);
        let mut missing = gap(7, 103);
        assert!(!missing.is_over(102));
        let Some(over) = Instant::now().checked_sub(Duration::from_millis(1)) else {
            panic!("the machine has just started");
        };
        missing.until = over;
        settled.wait_for(missing);
        assert_eq!(settled.pass(&rows(&[7], 102)), 1);
    }

    #[test]
    fn what_is_missing_holds_up_what_follows_until_it_comes() {
        let mut settled = Settled::at(4);
        let first = rows(&[5, 7], 100);
        assert_eq!(settled.pass(&first), 1);
        assert!(settled.misses(&first, 1));
        settled.wait_for(gap(7, 103));
        let still = rows(&[7, 8], 102);
        assert_eq!(settled.pass(&still), 0);
        assert!(!settled.misses(&still, 0), "it is waited for already");
        assert_eq!(settled.pass(&rows(&[6, 7, 8], 102)), 3);
        assert_eq!(settled.position, 8);
    }

    #[test]
    fn what_cannot_come_any_more_is_passed_and_nothing_else() {
        let mut settled = Settled::at(4);
        settled.wait_for(gap(7, 103));
        // Position 8 was taken later, by a transaction that may be under way.
        let after = rows(&[7, 9], 103);
        assert_eq!(settled.pass(&after), 1);
        assert_eq!(settled.position, 7);
        assert!(settled.misses(&after, 1));
    }
}
