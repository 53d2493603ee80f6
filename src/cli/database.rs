//! The database, for commands that work on it beside the servers.
//!
//! Guarantees: its schema is this version's. Not here: what brings it there (`migrate`).

use super::{Failure, Outcome};
use crate::config::Settings;
use crate::store;
use crate::store::{Store, connect::Manager, migrations};
use slog::Logger;

/// Opens it.
///
/// # Errors
/// It cannot be reached, or its schema has another version.
pub(super) fn open(settings: &Settings, log: Logger) -> Outcome<Store> {
    let options = store::Options::from_settings(settings);
    let plan = migrations::plan(&mut Manager::new(&options)?.client()?)?;
    if !plan.refusals.is_empty() || !plan.pending.is_empty() {
        return Err(Failure::new(
            "The database's schema is not this version's. See: agent-runtime migrate --check",
        ));
    }
    Ok(Store::open(&options, log)?)
}
