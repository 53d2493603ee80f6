//! Threads that the process needs for as long as it runs.
//!
//! If such a thread ends by a panic, its part of the work stops without a word, for ever. So the panic is remembered: the
//! watchdog fails, and the service manager restarts the process. The panic hook has logged the panic itself.
//!
//! Not here: threads that are replaced (the door's request threads), and threads of one task.

use std::io;
use std::sync::OnceLock;
use std::thread::JoinHandle;

/// The first thread that ended by a panic.
static LOST: OnceLock<String> = OnceLock::new();

/// Starts a thread that the process needs. `stack_bytes`: the system's default if there is none.
///
/// # Errors
/// The system gives no thread.
pub fn start<T: Send + 'static>(
    name: impl Into<String>,
    stack_bytes: Option<usize>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let name = name.into();
    let guard = Guard(name.clone());
    let mut builder = std::thread::Builder::new().name(name);
    if let Some(bytes) = stack_bytes {
        builder = builder.stack_size(bytes);
    }
    builder.spawn(move || {
        let _guard = guard;
        work()
    })
}

/// A thread of the process ended by a panic.
pub fn lose(name: &str) {
    // The first one is enough.
    let _ = LOST.set(name.to_owned());
}

/// The first thread that ended by a panic, if one did.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

struct Guard(String);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lose(&self.0);
        }
    }
}
