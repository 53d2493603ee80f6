//! Connections to a key-management service and to its token endpoint.
//!
//! Every request here may be sent twice without harm, and is when its connection breaks.

use crate::outbound::{self, Kind, Outbound, Outgoing, Peer, Policy, Response, Timeouts};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Idle clients kept; more may be in use.
const MAX_IDLE: usize = 8;
/// The longest answer accepted, in bytes; usual ones have one or two kilobytes.
pub(super) const ANSWER_CAP_BYTES: u64 = 64 * 1024;

pub(super) struct Connections {
    outbound: Outbound,
    idle: Mutex<Vec<outbound::Client>>,
}

impl Connections {
    pub(super) fn new(outbound: &Outbound) -> Self {
        Self {
            outbound: outbound.clone(),
            idle: Mutex::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<outbound::Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and reads the whole answer, whatever its status.
    pub(super) fn send(
        &self,
        outgoing: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Response, outbound::Failure> {
        // The one used last, so that the others idle and are closed.
        let kept = self.idle().pop();
        let new = || {
            let client = self.outbound.client(Policy::Operator, timeouts(deadline));
            client.to(Peer::KeyManagement)
        };
        let mut client = kept.unwrap_or_else(new);
        let answer = match send(&mut client, outgoing, deadline) {
            // Most often the other side had just closed an idle connection.
            Err(failure) if failure.kind() == Kind::Reset => send(&mut client, outgoing, deadline),
            answer => answer,
        }?;
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(client);
        }
        Ok(answer)
    }
}

fn send(
    client: &mut outbound::Client,
    outgoing: &Outgoing<'_>,
    deadline: Instant,
) -> Result<Response, outbound::Failure> {
    client.set_timeouts(timeouts(deadline));
    client.send(outgoing)
}

fn timeouts(deadline: Instant) -> Timeouts {
    let left = deadline.saturating_duration_since(Instant::now());
    Timeouts {
        connect: left,
        first_byte: left,
        idle: None,
        total: left,
    }
}
