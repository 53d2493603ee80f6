//! SIGINT and SIGTERM as messages. The thread `signals` waits for them until the process ends.

use super::{Failure, Outcome};
use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Each signal to end, as it comes. The channel is short; further ones are dropped.
pub(super) fn endings() -> Outcome<Receiver<()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::new(format!("Signals cannot be received: {error}.")))?;
    let (sender, endings) = bounded(4);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for _ in signals.forever() {
                let _ = sender.try_send(());
            }
        })?;
    Ok(endings)
}
