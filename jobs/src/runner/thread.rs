//! How every thread of a runner is started.

use crate::{Error, Result};
use crossbeam_channel::Sender;

/// `alive` is dropped when the thread ends, however it ends.
pub(super) fn start(
    name: String,
    stack_bytes: Option<usize>,
    alive: &Sender<()>,
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
