//! Reads a secret from a person at a terminal, which shows nothing of it.
//!
//! Guarantees: the terminal shows again what is typed when the line was read, and also when a signal ends the command
//! meanwhile, such as that of Ctrl-C. Ctrl-Z and Ctrl-\ do nothing: the one would leave the shell a terminal that shows
//! nothing, the other a memory dump with the secret.
//!
//! Not here: a secret that comes from a file or through a pipe.

use super::terminal;
use super::{Failure, Outcome};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::{BufRead, Read, stdin};
use zeroize::Zeroizing;

/// A character of the terminal that none stands for (`_POSIX_VDISABLE`).
const NO_CHARACTER: u8 = 0;

/// Asks on stderr, and reads a line of at most so many bytes from the terminal on stdin.
///
/// # Errors
/// The terminal cannot be set, or nothing can be read.
pub(super) fn read(ask: &str, most: u64) -> Outcome<Zeroizing<String>> {
    let fault =
        |error: std::io::Error| Failure::new(format!("The terminal cannot be read: {error}."));
    let shows = tcgetattr(stdin()).map_err(|errno| fault(errno.into()))?;
    let hidden = Hidden::begin(shows).map_err(fault)?;
    terminal::note(ask);
    let mut text = Zeroizing::new(String::with_capacity(
        usize::try_from(most).unwrap_or_default(),
    ));
    let read = stdin().lock().take(most).read_line(&mut text);
    drop(hidden);
    read.map_err(fault)?;
    Ok(text)
}

/// As long as it lives, the terminal shows nothing that is typed but the end of a line.
struct Hidden {
    shows: Termios,
}

impl Hidden {
    fn begin(shows: Termios) -> std::io::Result<Self> {
        restore_on_signals(shows.clone())?;
        let mut hides = shows.clone();
        hides.local_modes.remove(LocalModes::ECHO);
        hides.local_modes.insert(LocalModes::ECHONL);
        for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            hides.special_codes[code] = NO_CHARACTER;
        }
        tcsetattr(stdin(), OptionalActions::Flush, &hides)?;
        Ok(Self { shows })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.shows);
    }
}

/// The thread `terminal` waits until the process ends: a handler that was set once takes a signal's default away for good.
fn restore_on_signals(shows: Termios) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new()
        .name("terminal".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                let _ = tcsetattr(stdin(), OptionalActions::Now, &shows);
                let _ = emulate_default_handler(signal);
            }
        })?;
    Ok(())
}
