//! How serious a record is.

/// The level of a record. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is wrong, and the service goes on.
    Warn,
    /// For operators.
    Info,
    /// For developers.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    /// Every level, least verbose first.
    pub const ALL: [Self; 5] = [
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// The level's name in settings and records.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The priority in the journal and in syslog (RFC 5424, section 6.2.1).
    pub(super) const fn priority(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warn => 4,
            Self::Info => 6,
            Self::Debug | Self::Trace => 7,
        }
    }

    /// The record's `severity`.
    pub(super) const fn severity(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warn => "WARNING",
            Self::Info => "INFO",
            Self::Debug | Self::Trace => "DEBUG",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.text() == text)
    }
}

impl From<slog::Level> for Level {
    fn from(level: slog::Level) -> Self {
        match level {
            slog::Level::Critical | slog::Level::Error => Self::Error,
            slog::Level::Warning => Self::Warn,
            slog::Level::Info => Self::Info,
            slog::Level::Debug => Self::Debug,
            slog::Level::Trace => Self::Trace,
        }
    }
}
