//! How many requests wait at once for what is no part of this deployment: name servers, key services,
//! receivers of webhooks, and model servers that are checked.
//!
//! Guarantees (`bulkheads`): half of the request threads at most, of which one tenant holds half. So a
//! tenant whose name servers do not answer leaves room for the others, where there are four request
//! threads at least.
//!
//! Not here: how long a request waits, and requests that wait for identity providers
//! ([`super::provider_calls`]).

use crate::concurrency_limit::{Limiter, LimiterByKey, Permit};
use uuid::Uuid;

/// The limits.
pub struct ExternalCalls {
    of_tenant: LimiterByKey<Uuid>,
    all: Limiter,
}

/// Room for one request, released when dropped.
pub struct ExternalPermit {
    _permits: [Permit; 2],
}

impl ExternalCalls {
    /// For a server with this many request threads.
    pub fn new(request_threads: usize) -> Self {
        let all = (request_threads / 2).max(1);
        Self {
            of_tenant: LimiterByKey::new((all / 2).max(1)),
            all: Limiter::new(all),
        }
    }

    /// A permit, after a brief wait where there is no room. The tenant's own comes first: whoever
    /// waits for it holds no room of others.
    pub fn acquire_briefly(&self, tenant_id: Uuid) -> Option<ExternalPermit> {
        let permits = [
            self.of_tenant.acquire_briefly(tenant_id)?,
            self.all.acquire_briefly()?,
        ];
        Some(ExternalPermit { _permits: permits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes permits until there is no room.
    fn take(calls: &ExternalCalls, tenant: u128) -> Vec<ExternalPermit> {
        std::iter::from_fn(|| calls.acquire_briefly(Uuid::from_u128(tenant))).collect()
    }

    #[test]
    fn no_tenant_takes_all_the_room() {
        let calls = ExternalCalls::new(16);
        let first = take(&calls, 1);
        assert_eq!(first.len(), 4);
        assert_eq!(take(&calls, 1).len(), 0);
        let second = take(&calls, 2);
        assert_eq!(second.len(), 4);
        assert_eq!(take(&calls, 3).len(), 0);
        drop(first);
        assert_eq!(take(&calls, 3).len(), 4);
    }

    #[test]
    fn where_there_are_few_threads_there_is_room_for_one() {
        for threads in [1, 2, 3] {
            assert_eq!(take(&ExternalCalls::new(threads), 1).len(), 1);
        }
        let of_four = ExternalCalls::new(4);
        let held = take(&of_four, 1);
        assert_eq!(held.len(), 1);
        assert_eq!(take(&of_four, 2).len(), 1);
    }
}
