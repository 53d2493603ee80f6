//! Output for people and programs. Text from others (a model, a tool, a server) reaches the
//! terminal without control characters.

use super::{Failure, Outcome};
use crate::config::Vars;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

/// The style of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    colours: bool,
}

impl Style {
    /// For what goes to stdout.
    pub(super) fn of_stdout(vars: &Vars) -> Self {
        Self {
            colours: std::io::stdout().is_terminal() && !vars.no_color(),
        }
    }

    /// For what goes to stderr.
    pub(super) fn of_stderr(vars: &Vars) -> Self {
        Self {
            colours: std::io::stderr().is_terminal() && !vars.no_color(),
        }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.painted("2", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.painted("31", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.painted("32", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.painted("33", text)
    }

    fn painted(self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Writes a line to stdout.
pub(super) fn say(line: impl Display) -> Outcome {
    write(format_args!("{line}\n"))
}

/// Writes a line with the name of a value, and the value.
pub(super) fn say_line(style: Style, name: &str, value: &str) -> Outcome {
    say(format_args!("{} {value}", style.dim(&format!("{name:12}"))))
}

/// Writes to stdout and flushes.
pub(super) fn write(text: impl Display) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(text.to_string().as_bytes())
        .and_then(|()| out.flush())
        .map_err(unwritable)
}

/// Why stdout cannot be written.
#[allow(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
pub(super) fn unwritable(error: std::io::Error) -> Failure {
    match error.kind() {
        // The reader has closed the pipe (`| head`).
        ErrorKind::BrokenPipe => Failure::said(),
        _ => Failure::new(format!("Nothing can be written to stdout: {error}.")),
    }
}

/// Overwrites the last line of a terminal on stderr: progress.
pub(super) fn progress(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "\r\x1b[K{text}");
}

/// Writes a value as JSON, on one line.
pub(super) fn say_json(value: &impl serde::Serialize) -> Outcome {
    let text = serde_json::to_string(value).map_err(|error| Failure::new(error.to_string()))?;
    say(text)
}

/// Writes a line to stderr. A failure cannot be reported.
pub(super) fn note(line: impl Display) {
    let _ = std::io::stderr()
        .lock()
        .write_all(format!("{line}\n").as_bytes());
}

/// Overwrites the last line on stderr, on a terminal.
pub(super) fn note_over(line: impl Display) {
    let _ = std::io::stderr()
        .lock()
        .write_all(format!("\r\x1b[K{line}").as_bytes());
}

/// How this program was called, for commands that the output suggests.
pub(super) fn program() -> String {
    let called = std::env::args_os().next();
    let called = called.as_deref().and_then(std::ffi::OsStr::to_str);
    printable(called.unwrap_or("agent-runtime"))
}

/// A foreign text made safe for a terminal: newlines and tabs stay, other control characters are
/// removed.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        assert_eq!(
            printable("a\x1b[2J\r\nb\tc\u{9b}"),
            "a\u{fffd}[2J\u{fffd}\nb\tc\u{fffd}"
        );
    }
}
