//! Why a command failed, for its exit code and for stderr.

use super::journal::is_journal;
use crate::config::Vars;

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    pub(super) code: u8,
    /// The message for stderr; empty if it was printed already.
    pub(super) message: String,
    /// Print the message for the journal, each line as an error.
    pub(super) journal: bool,
}

impl Failure {
    /// The command failed: exit code 1.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
            journal: false,
        }
    }

    /// The settings or the database refuse, and a restart would not help: exit code 78 (`EX_CONFIG`
    /// of sysexits.h). A service manager can so distinguish it from a failure that may pass.
    pub(super) fn for_good(self) -> Self {
        Self { code: 78, ..self }
    }

    /// The command line is wrong: exit code 2.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            message: message.into(),
            journal: false,
        }
    }

    /// The command did its work and found something that should not be: exit code 2.
    pub(super) fn found() -> Self {
        Self {
            code: 2,
            message: String::new(),
            journal: false,
        }
    }

    /// The same with the name of another setting.
    pub(super) fn about(mut self, named: &str, meant: &str) -> Self {
        self.message = self.message.replace(named, meant);
        self
    }

    /// The same in the journal's format, if stderr goes there.
    pub(super) fn heard_by(mut self, vars: &Vars) -> Self {
        self.journal = is_journal(vars);
        self
    }

    pub(super) fn text(self) -> String {
        let text = format!("agent-runtime: {}", self.message);
        if !self.journal {
            return text;
        }
        let lines: Vec<_> = text.lines().map(|line| format!("<3>{line}")).collect();
        lines.join("\n")
    }

    /// The same with a further sentence.
    pub(super) fn with(mut self, sentence: &str) -> Self {
        self.message = format!("{}\n{sentence}", self.message);
        self
    }

    /// The command failed and has printed why: exit code 1.
    pub(super) fn said() -> Self {
        Self::new("")
    }
}

impl From<crate::error::Error> for Failure {
    /// The whole error: whoever runs a command is the operator.
    fn from(error: crate::error::Error) -> Self {
        let mut text = error.message().to_owned();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            text = format!("{text}\n  because: {inner}");
            cause = inner.source();
        }
        Self::new(text)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(format!("{error}."))
    }
}

/// An error in one sentence for an operator: what failed, and its innermost cause.
pub(super) fn reason(error: &crate::error::Error) -> String {
    let mut cause = std::error::Error::source(error);
    let mut innermost = None;
    while let Some(inner) = cause {
        innermost = Some(inner.to_string());
        cause = inner.source();
    }
    match innermost {
        Some(text) if !error.message().contains(&text) => format!("{} ({text})", error.message()),
        _ => error.message().to_owned(),
    }
}
