//! The ways out of one run thread, kept between turns so that connections are.

use super::Inner;
use super::running::Switch;
use crate::outbound::{Client, Policy, Timeouts};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a tool may take to accept a connection.
const TOOL_CONNECT: Duration = Duration::from_secs(10);

/// One thread's clients.
#[derive(Default)]
pub(super) struct Clients {
    model: Option<Client>,
    /// With the deadline that it was made for.
    tool: Option<(u32, Client)>,
}

/// Clients that no turn uses now: as many as there were turns at once.
#[derive(Default)]
pub(super) struct Idle(Mutex<Vec<Clients>>);

impl Idle {
    pub(super) fn take(&self) -> Clients {
        self.lock().pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, clients: Clients) {
        self.lock().push(clients);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Clients>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients {
    /// For a call of a model, which the switch can cut.
    pub(super) fn model(&mut self, inner: &Inner, switch: &Switch) -> &mut Client {
        let policy = Policy::Tenant(inner.options.host_access);
        let client = self
            .model
            .get_or_insert_with(|| inner.outbound.client(policy, inner.options.model_timeouts));
        switch.cover(client.cancel_handle());
        client
    }

    /// For a call of a tool with its own deadline, which the switch can cut.
    pub(super) fn tool(&mut self, inner: &Inner, switch: &Switch, timeout_ms: u32) -> &mut Client {
        if self
            .tool
            .as_ref()
            .is_some_and(|(made_for, _)| *made_for != timeout_ms)
        {
            self.tool = None;
        }
        let (_, client) = self.tool.get_or_insert_with(|| {
            let total = Duration::from_millis(u64::from(timeout_ms));
            let timeouts = Timeouts {
                connect: total.min(TOOL_CONNECT),
                first_byte: total,
                total,
            };
            let policy = Policy::Tenant(inner.options.host_access);
            (timeout_ms, inner.outbound.client(policy, timeouts))
        });
        switch.cover(client.cancel_handle());
        client
    }
}
