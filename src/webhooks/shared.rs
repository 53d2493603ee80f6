//! What every part of the webhooks shares.

use super::counts::Counts;
use super::ended::Ended;
use super::made::{Made, Waiter};
use super::options::Options;
use crate::ids::Clock;
use crate::outbound::{Outbound, Policy};
use crate::secrets::Secrets;
use crate::store::Store;
use crate::store::group_commit::GroupCommit;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) outbound: Outbound,
    pub(super) secrets: Secrets,
    pub(super) options: Options,
    pub(super) log: slog::Logger,
    pub(super) counts: Counts,
    pub(super) ended: Ended,
    /// Endpoints that an event was for of late, at most.
    pub(super) matched: AtomicUsize,
    pub(super) finishing: GroupCommit<(Made, Waiter)>,
    pub(super) queue: OnceLock<jobs::Handle>,
}

/// Outbound webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks(pub(super) Arc<Inner>);

impl Webhooks {
    /// Puts the parts together; starts nothing.
    pub fn new(
        store: Store,
        clock: Clock,
        outbound: Outbound,
        secrets: Secrets,
        options: Options,
        log: slog::Logger,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            outbound,
            secrets,
            options,
            log,
            counts: Counts::default(),
            ended: Ended::default(),
            matched: AtomicUsize::new(0),
            finishing: GroupCommit::default(),
            queue: OnceLock::new(),
        }))
    }

    /// Whether webhooks are sent at all: they are signed with secrets, so it takes a backend of secrets
    /// (specification section 6).
    pub fn is_on(&self) -> bool {
        self.0.secrets.is_on()
    }

    /// Which receivers may be reached.
    pub fn policy(&self) -> Policy {
        self.0.options.policy()
    }
}
