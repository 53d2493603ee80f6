//! Endpoints that begin to fail and that work again: one log record for each turn.
//!
//! Guarantees: a record is written once the attempt is committed, by the process that wrote the
//! attempt. Between two turns there is no other record, over all processes. A record has the host of the
//! endpoint alone: paths and queries of receivers often contain a secret.
//!
//! Not here: how long an endpoint has failed (`maintenance`), and each attempt
//! (`store::webhook_attempts`).

use super::made::Made;
use crate::error::Result;
use crate::store::Tx;
use crate::store::webhook_attempts::{self as rows, EndpointState};
use crate::uri;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What changed with an attempt.
#[derive(Debug)]
pub(super) struct Turn {
    endpoint_id: Uuid,
    host: String,
    /// The place of the attempt among those that end together.
    place: usize,
}

/// The turns that these attempts make if they are all written. Whoever makes one first keeps the others from it until the
/// end of the transaction.
pub(super) fn of(tx: &mut Tx<'_>, made: &[Made]) -> Result<Vec<Turn>> {
    let found = turns(&states(tx, made)?, made);
    if found.is_empty() {
        return Ok(found);
    }
    // In the order of their ids, as everybody locks them.
    for turn in &found {
        rows::lock_state(tx, turn.endpoint_id)?;
    }
    let mut still = turns(&states(tx, made)?, made);
    still.retain(|one| found.iter().any(|turn| turn.endpoint_id == one.endpoint_id));
    Ok(still)
}

fn states(tx: &mut Tx<'_>, made: &[Made]) -> Result<Vec<EndpointState>> {
    let (tenants, endpoints): (Vec<Uuid>, Vec<Uuid>) = made.iter().map(Made::endpoint).unzip();
    rows::endpoint_states(tx, &tenants, &endpoints)
}

/// The newest of the attempts at an endpoint decides.
fn turns(states: &[EndpointState], made: &[Made]) -> Vec<Turn> {
    let newest: BTreeMap<Uuid, usize> = made
        .iter()
        .enumerate()
        .map(|(place, one)| (one.endpoint().1, place))
        .collect();
    let turn = |(endpoint_id, place): (Uuid, usize)| {
        let failed = made.get(place)?.failed();
        let state = states.iter().find(|one| one.endpoint_id == endpoint_id)?;
        (state.is_failing != failed).then(|| Turn {
            endpoint_id,
            host: uri::host(&state.url),
            place,
        })
    };
    newest.into_iter().filter_map(turn).collect()
}

impl Turn {
    pub(super) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn tell(&self, log: &slog::Logger, made: &[Made]) {
        let Some(made) = made.get(self.place) else {
            return;
        };
        let log = log.new(slog::o!("tenantId" => made.endpoint().0.to_string(),
            "endpointId" => self.endpoint_id.to_string(), "host" => self.host.clone()));
        match made.reason() {
            Some(reason) => {
                slog::warn!(log, "A webhook endpoint began to fail"; "reason" => reason, "status" => made.status());
            }
            None => slog::info!(log, "A webhook endpoint works again"),
        }
    }
}
