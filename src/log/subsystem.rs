//! The parts of the service that log, as one list. Code logs under no other name.

use super::level::Level;

/// A part of the service that writes records. A dotted name inherits its parent's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subsystem {
    /// Records that name no other subsystem.
    Root,
    /// Start, stop and the threads of the server.
    Server,
    /// Requests: routing, handlers, answers.
    Http,
    /// Connections and their limits.
    HttpDoor,
    /// Server-sent-event streams.
    HttpStream,
    /// Authentication.
    Authn,
    /// Authorization.
    Authz,
    /// The writer of decision records.
    Audit,
    /// The database: pool, statements.
    Store,
    /// Schema migrations.
    StoreMigrations,
    /// The job queue.
    Jobs,
    /// Runs.
    Runtime,
    /// The journal of a run's steps.
    RuntimeSteps,
    /// Model calls of a run.
    RuntimeModel,
    /// Tool calls of a run.
    RuntimeTools,
    /// Outbound connections.
    Outbound,
    /// Model providers.
    Model,
    /// Secrets and the services that wrap their keys.
    Secrets,
    /// Outbound webhooks.
    Webhooks,
    /// Spans for the collector of traces.
    Traces,
    /// Settings.
    Config,
    /// The commercial license.
    License,
    /// Development mode and its private database.
    Dev,
    /// The commands of the binary.
    Cli,
}

impl Subsystem {
    /// Every subsystem, in the order of its discriminant.
    pub const ALL: [Self; 24] = [
        Self::Root,
        Self::Server,
        Self::Http,
        Self::HttpDoor,
        Self::HttpStream,
        Self::Authn,
        Self::Authz,
        Self::Audit,
        Self::Store,
        Self::StoreMigrations,
        Self::Jobs,
        Self::Runtime,
        Self::RuntimeSteps,
        Self::RuntimeModel,
        Self::RuntimeTools,
        Self::Outbound,
        Self::Model,
        Self::Secrets,
        Self::Webhooks,
        Self::Traces,
        Self::Config,
        Self::License,
        Self::Dev,
        Self::Cli,
    ];

    /// The name in records and in `SVC_LOG_LEVELS`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Server => "server",
            Self::Http => "http",
            Self::HttpDoor => "http.door",
            Self::HttpStream => "http.stream",
            Self::Authn => "authn",
            Self::Authz => "authz",
            Self::Audit => "audit",
            Self::Store => "store",
            Self::StoreMigrations => "store.migrations",
            Self::Jobs => "jobs",
            Self::Runtime => "runtime",
            Self::RuntimeSteps => "runtime.steps",
            Self::RuntimeModel => "runtime.model",
            Self::RuntimeTools => "runtime.tools",
            Self::Outbound => "outbound",
            Self::Model => "model",
            Self::Secrets => "secrets",
            Self::Webhooks => "webhooks",
            Self::Traces => "traces",
            Self::Config => "config",
            Self::License => "license",
            Self::Dev => "dev",
            Self::Cli => "cli",
        }
    }

    /// The subsystem of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The level of the nearest entry of `levels` for this subsystem or a parent, else `default`.
    /// Of two entries for one name the later one counts.
    pub(super) fn level(self, default: Level, levels: &[(Self, Level)]) -> Level {
        let mut name = self.name();
        loop {
            let set = levels.iter().rev().find(|(at, _)| at.name() == name);
            if let Some((_, level)) = set {
                return *level;
            }
            match name.rsplit_once('.') {
                Some((parent, _)) => name = parent,
                None => return default,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole_ordered_and_every_parent_is_in_it() {
        for (index, subsystem) in Subsystem::ALL.into_iter().enumerate() {
            assert_eq!(subsystem as usize, index);
            assert_eq!(Subsystem::from_name(subsystem.name()), Some(subsystem));
            if let Some((parent, _)) = subsystem.name().rsplit_once('.') {
                assert!(Subsystem::from_name(parent).is_some(), "{parent}");
            }
        }
    }

    #[test]
    fn a_dotted_name_inherits_the_nearest_parents_level() {
        use Level::{Debug, Error, Info, Trace, Warn};
        use Subsystem as S;
        let levels = [
            (S::Runtime, Debug),
            (S::RuntimeSteps, Trace),
            (S::Http, Error),
            (S::HttpDoor, Warn),
            (S::Root, Trace),
        ];
        let table = [
            (S::Root, Trace),
            (S::Server, Info),
            (S::Runtime, Debug),
            (S::RuntimeSteps, Trace),
            (S::RuntimeModel, Debug),
            (S::Http, Error),
            (S::HttpDoor, Warn),
            (S::HttpStream, Error),
            // `model` is not a child of `runtime.model`.
            (S::Model, Info),
        ];
        for (subsystem, expected) in table {
            assert_eq!(subsystem.level(Info, &levels), expected, "{subsystem:?}");
        }
        assert_eq!(S::RuntimeSteps.level(Warn, &[]), Warn);
    }
}
