//! Connections to a key-management service and to where its tokens come from.
//!
//! What is sent here may be sent twice without harm, and is when a connection breaks under it.

use crate::outbound::{self, Kind, Outbound, Outgoing, Policy, Response, Timeouts};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Clients kept for the next call; more may be in use at once.
const MAX_IDLE: usize = 8;
/// The longest answer taken, in bytes: theirs have one or two kilobytes.
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
        // The one used last, so that the others grow old and are closed.
        let kept = self.idle().pop();
        let new = || self.outbound.client(Policy::Operator, timeouts(deadline));
        let mut client = kept.unwrap_or_else(new);
        let answer = match send(&mut client, outgoing, deadline) {
            // Most often a kept connection that the other side had just closed.
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
        total: left,
    }
}
