//! How many requests wait for identity providers at once.
//!
//! Guarantees (`bulkheads`): half of the request threads at most, of which one provider holds half and one tenant three
//! quarters. So a provider that hangs leaves room for the others of its tenant, and a tenant whose providers all hang for
//! those of other tenants, where there are four request threads at least, and eight. These requests are counted apart from
//! those that wait for other parts: anybody may begin a sign-in.
//!
//! Not here: how long a request waits for a provider (`oidc`).

use crate::concurrency_limit::{Limiter, LimiterByKey, Permit};
use uuid::Uuid;

/// The limits.
pub struct ProviderCalls {
    of_provider: LimiterByKey<Uuid>,
    of_tenant: LimiterByKey<Uuid>,
    all: Limiter,
}

/// Room for one request, released when dropped.
pub struct ProviderPermit {
    _permits: [Permit; 3],
}

impl ProviderCalls {
    /// For a server with this many request threads.
    pub fn new(request_threads: usize) -> Self {
        let all = (request_threads / 2).max(1);
        Self {
            of_provider: LimiterByKey::new((all / 2).max(1)),
            of_tenant: LimiterByKey::new((all * 3 / 4).max(1)),
            all: Limiter::new(all),
        }
    }

    /// A permit, after a brief wait where there is no room. The provider's own comes first: whoever waits for it holds no
    /// room of others.
    pub fn acquire_briefly(
        &self,
        tenant_id: Uuid,
        identity_provider_id: Uuid,
    ) -> Option<ProviderPermit> {
        let permits = [
            self.of_provider.acquire_briefly(identity_provider_id)?,
            self.of_tenant.acquire_briefly(tenant_id)?,
            self.all.acquire_briefly()?,
        ];
        Some(ProviderPermit { _permits: permits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes permits until there is no room.
    fn take(calls: &ProviderCalls, tenant: u128, provider: u128) -> Vec<ProviderPermit> {
        let next = || calls.acquire_briefly(Uuid::from_u128(tenant), Uuid::from_u128(provider));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn no_provider_and_no_tenant_takes_all_the_room() {
        let calls = ProviderCalls::new(16);
        let first = take(&calls, 1, 10);
        assert_eq!(first.len(), 4);
        let second = take(&calls, 1, 11);
        assert_eq!(second.len(), 2);
        assert_eq!(take(&calls, 1, 12).len(), 0);
        let other = take(&calls, 2, 20);
        assert_eq!(other.len(), 2);
        assert_eq!(take(&calls, 3, 30).len(), 0);
        drop((first, second));
        assert_eq!(take(&calls, 3, 30).len(), 4);
    }

    #[test]
    fn where_there_are_few_threads_there_is_room_for_one() {
        for threads in [1, 2, 3] {
            assert_eq!(take(&ProviderCalls::new(threads), 1, 10).len(), 1);
        }
        // A second provider of another tenant; and of the same one.
        let (of_four, of_eight) = (ProviderCalls::new(4), ProviderCalls::new(8));
        let held = (take(&of_four, 1, 10), take(&of_eight, 1, 10));
        assert_eq!((held.0.len(), held.1.len()), (1, 2));
        assert_eq!(take(&of_four, 2, 20).len(), 1);
        assert_eq!(take(&of_eight, 1, 11).len(), 1);
    }
}
