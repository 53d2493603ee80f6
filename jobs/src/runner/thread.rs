//! How every thread of a runner is started.

use crate::{Error, Result};
use crossbeam_channel::Sender;
use std::sync::Arc;

/// What every thread of a runner holds.
#[derive(Clone)]
pub(super) struct Alive {
    /// Dropped when the thread ends, however it ends.
    pub(super) _running: Sender<()>,
    /// Called with the name of a thread that ends by a panic.
    pub(super) lost: Lost,
}

pub(super) type Lost = Arc<dyn Fn(&str) + Send + Sync>;

impl Drop for Alive {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.lost)(std::thread::current().name().unwrap_or_default());
        }
    }
}

/// `alive` is dropped when the thread ends.
pub(super) fn start(
    name: String,
    stack_bytes: Option<usize>,
    alive: &Alive,
    run: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let alive = alive.clone();
    let mut builder = std::thread::Builder::new().name(name);
    if let Some(bytes) = stack_bytes {
        builder = builder.stack_size(bytes);
    }
    let body = move || {
        run();
        drop(alive);
    };
    builder.spawn(body).map(drop).map_err(Error::Thread)
}
