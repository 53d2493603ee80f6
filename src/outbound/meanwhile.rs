//! Something to do while an answer is waited for, on the thread that waits for it.
//!
//! Guarantees: it is done once, by whoever comes to it first: an exchange that has sent its request and begins to wait, or the
//! caller, after one that did not come so far or was not made. However long it takes, no deadline of the exchange
//! passes meanwhile: an answer that came in that time is read.
//!
//! Not here: what it gives, which waits in a channel.

use crossbeam_channel::{Receiver, bounded};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Something to do once. Clones are the same.
#[derive(Clone)]
pub struct Meanwhile(Arc<Inner>);

struct Inner {
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    took: OnceLock<Duration>,
}

impl Meanwhile {
    /// It is not done yet. What it gives can be received once it was.
    pub fn new<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> (Self, Receiver<T>) {
        let (give, given) = bounded(1);
        let work = move || {
            // Nobody takes it any more where the caller has broken off.
            let _ = give.send(work());
        };
        let inner = Inner {
            work: Mutex::new(Some(Box::new(work))),
            took: OnceLock::new(),
        };
        (Self(Arc::new(inner)), given)
    }

    /// Does it, unless that was begun before.
    pub fn run(&self) {
        let work = self.0.work.lock();
        let work = work.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            let began = Instant::now();
            work();
            let _ = self.0.took.set(began.elapsed());
        }
    }

    /// How long it took; nothing, before it was done.
    pub fn took(&self) -> Duration {
        self.0.took.get().copied().unwrap_or_default()
    }
}

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}
