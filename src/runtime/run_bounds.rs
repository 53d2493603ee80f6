//! Bounds on how many runs there are: below one root, and of one tenant that have not ended.
//!
//! A count reads an index entry for each run, so it is not made for each run that begins. After a count, a process lets an
//! eighth of what is left begin before it counts again. So up to eight processes together stay within the bound, but for the
//! runs that are written while one of them counts, and for the first hundred of a root or a tenant that a process sees.
//! Nothing is locked or written: runs of one tenant do not wait for each other.
//!
//! Not here: what a refused child is to its parent (`steps::child`), and what a refused start is to its caller (`api`).

use crate::error::Result;
use crate::store::runs::Counted;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The share of what is left that a process begins before it counts again.
const SHARE: u64 = 8;

/// Runs of a root or a tenant that a process has not seen begin before it counts, at most.
const UNCOUNTED: u64 = 100;

/// For how long a bound that was reached stays so, without another count.
const REACHED: Duration = Duration::from_secs(1);

/// Roots and tenants that are kept count of, at most. With more, one of them begins anew.
const KEPT: usize = 10_000;

/// The bounds.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Runs below one root.
    pub below_root: u64,
    /// Runs of a tenant that have not ended.
    pub unfinished: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            below_root: 100_000,
            unfinished: 1_000_000,
        }
    }
}

/// A bound that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// So many runs are below the root.
    BelowRoot(u64),
    /// So many of the tenant's runs have not ended.
    Unfinished(u64),
}

impl std::fmt::Display for Reached {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BelowRoot(most) => write!(
                out,
                "The run at the top may have {most} runs below it, and no more begin"
            ),
            Self::Unfinished(most) => write!(
                out,
                "The tenant may have {most} runs that have not ended, and no more begin until some have ended or are \
                 cancelled"
            ),
        }
    }
}

/// What this process knows of the numbers of runs.
pub(super) struct RunBounds {
    limits: RunLimits,
    roots: Mutex<HashMap<Uuid, Known>>,
    tenants: Mutex<HashMap<Uuid, Known>>,
    refused: [AtomicU64; 2],
}

/// Of one root or tenant.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// So many may begin before the next count.
    left: u64,
    /// So many were refused then.
    refused: Option<(u64, Instant)>,
}

impl RunBounds {
    pub(super) fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            roots: Mutex::default(),
            tenants: Mutex::default(),
            refused: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// Whether so many runs may begin: of a tenant, and below a root unless they are roots. `count` is asked for numbers
    /// that are not known.
    pub(super) fn reached(
        &self,
        (tenant_id, root_id): (Uuid, Option<Uuid>),
        wanted: usize,
        mut count: impl FnMut(Counted, u64) -> Result<u64>,
    ) -> Result<Option<Reached>> {
        let wanted = wanted as u64;
        if let Some(root_id) = root_id {
            let most = self.limits.below_root;
            let of = Counted::Below(tenant_id, root_id);
            if !take(&self.roots, root_id, (wanted, most), || count(of, most))? {
                self.refused[0].fetch_add(wanted, Ordering::Relaxed);
                return Ok(Some(Reached::BelowRoot(most)));
            }
        }
        let most = self.limits.unfinished;
        let of = Counted::Unfinished(tenant_id);
        if !take(&self.tenants, tenant_id, (wanted, most), || count(of, most))? {
            self.refused[1].fetch_add(wanted, Ordering::Relaxed);
            return Ok(Some(Reached::Unfinished(most)));
        }
        Ok(None)
    }

    /// Runs that were refused: below roots, and of tenants.
    pub(super) fn refused(&self) -> [u64; 2] {
        self.refused
            .each_ref()
            .map(|refused| refused.load(Ordering::Relaxed))
    }
}

/// Takes so many of one that may have `most`. Nobody waits for a count: the map is not locked meanwhile.
fn take(
    known: &Mutex<HashMap<Uuid, Known>>,
    id: Uuid,
    (wanted, most): (u64, u64),
    count: impl FnOnce() -> Result<u64>,
) -> Result<bool> {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut all = lock();
        if all.len() >= KEPT && !all.contains_key(&id) {
            let any = all.keys().next().copied();
            any.and_then(|any| all.remove(&any));
        }
        let one = all.entry(id).or_insert(Known {
            left: UNCOUNTED.min(most / SHARE),
            refused: None,
        });
        if one.left >= wanted {
            one.left -= wanted;
            return Ok(true);
        }
        let is_fresh = |(refused, at): (u64, Instant)| refused <= wanted && at.elapsed() < REACHED;
        if one.refused.is_some_and(is_fresh) {
            return Ok(false);
        }
    }
    let room = most.saturating_sub(count()?);
    let has_room = wanted <= room;
    let found = match has_room {
        true => Known {
            left: (room / SHARE).saturating_sub(wanted),
            refused: None,
        },
        false => Known {
            left: 0,
            refused: Some((wanted, Instant::now())),
        },
    };
    lock().insert(id, found);
    Ok(has_room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Begins runs one by one until one is refused. Says how many began, and how often they were counted.
    fn filled(most: u64, there: u64) -> (u64, u64) {
        let bounds = RunBounds::new(RunLimits {
            below_root: most,
            unfinished: u64::MAX,
        });
        let (begun, counts) = (Cell::new(0), Cell::new(0));
        let count = |of: Counted, _| {
            let is_of_root = matches!(of, Counted::Below(..));
            counts.set(counts.get() + u64::from(is_of_root));
            Ok(if is_of_root { there + begun.get() } else { 0 })
        };
        let of = (Uuid::from_u128(1), Some(Uuid::from_u128(2)));
        while bounds.reached(of, 1, count).unwrap().is_none() {
            begun.set(begun.get() + 1);
        }
        let refused = bounds.reached(of, 1, count).unwrap();
        assert_eq!(refused, Some(Reached::BelowRoot(most)));
        assert_eq!(bounds.refused(), [2, 0]);
        (begun.get(), counts.get())
    }

    #[test]
    fn a_bound_is_kept_and_rarely_counted() {
        for most in [1, 10, 1000] {
            assert_eq!(filled(most, 0).0, most);
        }
        let (begun, counts) = filled(100_000, 0);
        assert_eq!(begun, 100_000);
        assert!(counts < 100, "{counts} counts for {begun} runs");
    }

    #[test]
    fn what_others_began_counts_too() {
        assert_eq!(filled(1000, 400).0, 600);
        // The first ones are not counted.
        assert_eq!(filled(1000, 1000).0, UNCOUNTED);
    }

    #[test]
    fn many_at_once_begin_together_or_not_at_all() {
        let bounds = RunBounds::new(RunLimits {
            below_root: u64::MAX,
            unfinished: 50,
        });
        let tenant = (Uuid::from_u128(1), None);
        let at = |there| move |_: Counted, _: u64| Ok(there);
        assert_eq!(
            bounds.reached(tenant, 60, at(0)).unwrap(),
            Some(Reached::Unfinished(50))
        );
        assert_eq!(bounds.reached(tenant, 40, at(0)).unwrap(), None);
        assert_eq!(
            bounds.reached(tenant, 11, at(40)).unwrap(),
            Some(Reached::Unfinished(50))
        );
        let other = (Uuid::from_u128(3), None);
        assert_eq!(bounds.reached(other, 50, at(0)).unwrap(), None);
    }
}
