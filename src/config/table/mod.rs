//! The settings table. Every setting is one value here. Parsing, `check-config`, `--help`, the
//! sample environment file, the manual page and `docs/settings.md` all come from it.
//!
//! To add a setting: one entry in one of the lists below, and one line in `assemble.rs` that uses
//! its value. A test refuses a built setting that nothing uses.
//!
//! A setting whose feature is not built yet has its whole meaning and its parser here, in state
//! [`State::NotBuilt`]. Giving it is refused by name, so that it is never silently ignored.

mod limits;
mod secrets;
mod server;
pub(super) mod setting;
mod sign_in;
mod traces;
mod unbuilt;
mod webhooks;

pub(super) use setting::{Absent, Item, KeyForm, Kind, Setting, State, Word};

/// Settings that belong together, with their heading.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) settings: &'static [Setting],
}

/// The table.
pub(super) static TABLE: &[Section] = &[
    Section {
        title: "The server",
        settings: server::SERVER,
    },
    Section {
        title: "Database",
        settings: limits::DATABASE,
    },
    Section {
        title: "Tenant and tokens",
        settings: server::TENANT,
    },
    Section {
        title: "Logging",
        settings: server::LOGGING,
    },
    Section {
        title: "Traces",
        settings: traces::TRACES,
    },
    Section {
        title: "Limits of the front door",
        settings: limits::DOOR,
    },
    Section {
        title: "Runs and model providers",
        settings: limits::RUNS,
    },
    Section {
        title: "Outbound connections",
        settings: server::OUTBOUND,
    },
    Section {
        title: "Webhooks",
        settings: webhooks::WEBHOOKS,
    },
    Section {
        title: "Authorization and audit",
        settings: unbuilt::AUTHORIZATION,
    },
    Section {
        title: "Sign-in and sessions",
        settings: sign_in::SIGN_IN,
    },
    Section {
        title: "Secrets",
        settings: secrets::SECRETS,
    },
    Section {
        title: "Packs and their registries",
        settings: unbuilt::PACKS,
    },
];

/// Every setting, in the table's order.
pub(super) fn settings() -> impl Iterator<Item = &'static Setting> {
    TABLE.iter().flat_map(|section| section.settings)
}

/// The setting of this name.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_begin_with_the_prefix() {
        let mut seen = BTreeSet::new();
        for setting in settings() {
            assert!(setting.name.starts_with("SVC_"), "{}", setting.name);
            assert!(seen.insert(setting.name.to_owned()), "{}", setting.name);
            if setting.secret {
                assert!(seen.insert(setting.file_name()), "{}", setting.name);
            }
        }
    }

    #[test]
    fn variants_name_each_other_s_partner() {
        let pairs: Vec<_> = settings()
            .filter_map(|s| s.variant_of.map(|other| (s.name, other)))
            .collect();
        assert_eq!(pairs.len(), 2);
        for (name, other) in pairs {
            assert!(find(other).is_some(), "{name} names {other}");
        }
    }

    #[test]
    fn meanings_are_sentences() {
        for setting in settings() {
            let meaning = setting.meaning;
            assert!(
                meaning.ends_with('.') && meaning.is_ascii(),
                "{}",
                setting.name
            );
            assert!(!meaning.contains("  "), "{}", setting.name);
        }
    }
}
