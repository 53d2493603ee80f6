//! Claiming deliveries' jobs: each attempt begins in the statement that claims its job, with all that are
//! claimed at once. What says so is the job, which is under a lease from then on.
//!
//! Where an attempt cannot begin with the others, because its delivery is over, an earlier claim was
//! lost, or somebody changes its endpoint, its job comes alone, and the worker looks at it (`deliver`).

use super::at_once::Only;
use super::{Deliver, Inner, deliver};
use crate::error::Result;
use crate::store::webhook_attempts::{self as rows, Begun};
use std::any::Any;
use std::time::Instant;

/// An attempt that may be made, on its way to a thread.
pub(super) struct Ready {
    pub(super) begun: Begun,
    /// Before its job was claimed, or its lease extended.
    pub(super) since: Instant,
    /// It began where its event was emitted.
    pub(super) only: Option<Only>,
}

impl Ready {
    /// One whose job was claimed.
    pub(super) fn claimed(begun: Begun, since: Instant) -> Self {
        Self {
            begun,
            since,
            only: None,
        }
    }
}

/// Claims jobs and begins their attempts.
pub(super) fn claim(inner: &Inner, asked: &jobs::Asked<'_>) -> jobs::Result<Vec<jobs::Taken>> {
    begin(inner, asked).map_err(|error| jobs::Error::Claim(Box::new(error)))
}

fn begin(inner: &Inner, asked: &jobs::Asked<'_>) -> Result<Vec<jobs::Taken>> {
    let mut session = inner.store.session()?;
    let since = Instant::now();
    let within = deliver::within(inner);
    let claimed = rows::claim::<Deliver>(&mut session, asked, within, inner.clock.now())?;
    let taken = claimed.into_iter().map(|(row, begun)| {
        let ready = begun.map(|begun| Ready::claimed(begun, since));
        jobs::Taken {
            row,
            beside: ready.map(|ready| Box::new(ready) as Box<dyn Any + Send>),
        }
    });
    Ok(taken.collect())
}
