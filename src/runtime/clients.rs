//! The connections of one run thread, kept between runs so that they are used again.

use super::options::Options;
use crate::outbound::{Client, Outbound, Peer, Policy, Switch, Timeouts};
use crate::tools;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One thread's clients.
pub(super) struct Clients {
    outbound: Outbound,
    policy: Policy,
    model_timeouts: Timeouts,
    model: Option<Client>,
    http: Option<Client>,
    pub(super) tools: tools::Clients,
}

impl Clients {
    fn new(outbound: &Outbound, options: &Options) -> Self {
        let http = tools::HttpClients::new(outbound.clone(), options.host_access);
        Self {
            outbound: outbound.clone(),
            policy: Policy::Tenant(options.host_access),
            model_timeouts: options.model_timeouts,
            model: None,
            http: None,
            tools: tools::Clients::new(http),
        }
    }

    /// For a call of a model within these limits, which the switch can cut.
    pub(super) fn model(&mut self, switch: &Switch, timeouts: Timeouts) -> &mut Client {
        let client = self.model.get_or_insert_with(|| {
            let policy = self.policy;
            let client = self.outbound.client_through_proxy(policy, timeouts);
            client.to(Peer::ModelProvider)
        });
        client.set_timeouts(timeouts);
        switch.cover(client.cancel_handle());
        client
    }

    /// For a request of a flow, which the switch can cut. Its timeouts are the caller's.
    pub(super) fn http(&mut self, switch: &Switch) -> &mut Client {
        let client = self.http.get_or_insert_with(|| {
            let (policy, timeouts) = (self.policy, self.model_timeouts);
            self.outbound.client(policy, timeouts)
        });
        switch.cover(client.cancel_handle());
        client
    }
}

/// Clients that no run uses now: as many as there were runs at once.
#[derive(Default)]
pub(super) struct Idle(Mutex<Vec<Clients>>);

impl Idle {
    pub(super) fn take(&self, outbound: &Outbound, options: &Options) -> Clients {
        let idle = self.lock().pop();
        idle.unwrap_or_else(|| Clients::new(outbound, options))
    }

    pub(super) fn give_back(&self, clients: Clients) {
        self.lock().push(clients);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Clients>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
