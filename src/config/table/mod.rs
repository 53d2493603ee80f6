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
mod sign_in;
mod traces;
mod unbuilt;
mod webhooks;

use super::Vars;

/// One setting.
#[derive(Debug)]
pub(super) struct Setting {
    /// The environment variable.
    pub(super) name: &'static str,
    /// The type of its text.
    pub(super) kind: Kind,
    /// The default.
    pub(super) absent: Absent,
    /// Refused unless `SVC_DEV` is true.
    pub(super) development_only: bool,
    /// Required unless `SVC_DEV` is true.
    pub(super) required: bool,
    /// Never printed. It can also be given as `NAME_FILE` or as a systemd credential.
    pub(super) secret: bool,
    /// The setting that gives the same value in another form; only one of the two may be given.
    pub(super) variant_of: Option<&'static str>,
    /// Who reads it, and when.
    pub(super) reader: &'static str,
    /// Its meaning, in plain sentences.
    pub(super) meaning: &'static str,
    /// Its origin.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only a page of the repository shows it")
    )]
    pub(super) source: Source,
    /// Whether this version supports it.
    pub(super) state: State,
}

/// The origin of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The specification has name and meaning.
    Named,
    /// The specification has the meaning; the name is this project's.
    Meant,
    /// Name and meaning are this project's.
    Ours,
}

/// Whether this version supports a setting, or one of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It is supported.
    Built,
    /// The named feature is not built yet.
    NotBuilt(&'static str),
    /// The specification reserves it.
    Reserved,
}

/// The default of a setting.
#[derive(Debug, Clone, Copy)]
pub(super) enum Absent {
    /// This text, parsed as if it had been given.
    Value(&'static str),
    /// Described by this text.
    Described(&'static str),
    /// Described by this text, and computed from the environment and the mode; none if there is no
    /// default.
    Derived(&'static str, fn(&Vars, bool) -> Option<String>),
}

/// One value of a setting that has a list of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) text: &'static str,
    pub(super) state: State,
    pub(super) development_only: bool,
}

/// The format of a key in a file or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// An Ed25519 private key in PKCS#8 (RFC 8410).
    Ed25519,
    /// 32 bytes.
    Bytes32,
}

/// The type of the items of a comma-separated list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// `scheme://host[:port]`, as a browser writes it (RFC 6454).
    Origin,
    /// `host[:port]`.
    Registry,
    /// A relative path without `..`.
    RelativePath,
    /// A field key or its suffix: letters, digits, `-`, `_`.
    KeyPattern,
    /// `subsystem=level`.
    LevelPair,
    /// `NAME=ORIGIN`.
    ModelKey,
}

/// The type of a setting's text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// `true`, `false`, `1` or `0`.
    Boolean,
    /// A whole number within a range, in a unit.
    Integer {
        min: u64,
        max: u64,
        unit: &'static str,
    },
    /// One of a few words.
    Choice(&'static [Word]),
    /// A UUID in its hyphenated form.
    Uuid,
    /// An IP address.
    IpAddress,
    /// An `http` or `https` URL.
    HttpUrl,
    /// A `postgres` URL as libpq writes it.
    DatabaseUrl,
    /// An email.
    Email,
    /// A host name or an IP address.
    Host,
    /// `host[:port]`.
    HostAndPort,
    /// An absolute path.
    AbsolutePath,
    /// An absolute path of a file with a key that only its owner can read.
    KeyFile(KeyForm),
    /// A key in base64.
    KeyText(KeyForm),
    /// The name of an environment.
    EnvironmentName,
    /// An absolute path of a file of PEM certificates.
    CertificateFile,
    /// Visible ASCII characters, without a space.
    Word { min: usize, max: usize },
    /// Comma-separated HTTP headers, each `name=value`.
    Headers,
    /// A license key.
    LicenseKey,
    /// A comma-separated list.
    List(Item),
}

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

impl Setting {
    /// A supported setting that the server reads; the methods below change what differs.
    const fn new(name: &'static str, kind: Kind, source: Source, meaning: &'static str) -> Self {
        Self {
            name,
            kind,
            absent: Absent::Described("not set"),
            development_only: false,
            required: false,
            secret: false,
            variant_of: None,
            reader: "server",
            meaning,
            source,
            state: State::Built,
        }
    }

    const fn default_value(mut self, text: &'static str) -> Self {
        self.absent = Absent::Value(text);
        self
    }

    const fn default_described(mut self, text: &'static str) -> Self {
        self.absent = Absent::Described(text);
        self
    }

    const fn default_derived(
        mut self,
        text: &'static str,
        derive: fn(&Vars, bool) -> Option<String>,
    ) -> Self {
        self.absent = Absent::Derived(text, derive);
        self
    }

    const fn development_only(mut self) -> Self {
        self.development_only = true;
        self
    }

    const fn required_outside_development(mut self) -> Self {
        self.required = true;
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    const fn variant_of(mut self, name: &'static str) -> Self {
        self.variant_of = Some(name);
        self
    }

    const fn read_by(mut self, reader: &'static str) -> Self {
        self.reader = reader;
        self
    }

    const fn not_built(mut self, feature: &'static str) -> Self {
        self.state = State::NotBuilt(feature);
        self
    }

    /// The variable that gives a secret's file.
    pub(super) fn file_name(&self) -> String {
        format!("{}_FILE", self.name)
    }

    /// Whether a systemd credential of its name can give it: a secret, or a key file.
    pub(super) fn takes_credential(&self) -> bool {
        self.secret || matches!(self.kind, Kind::KeyFile(_))
    }
}

impl Word {
    const fn built(text: &'static str) -> Self {
        Self {
            text,
            state: State::Built,
            development_only: false,
        }
    }

    const fn reserved(text: &'static str) -> Self {
        Self {
            state: State::Reserved,
            ..Self::built(text)
        }
    }

    const fn development_only(mut self) -> Self {
        self.development_only = true;
        self
    }
}

impl Absent {
    /// For the documents.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Value(text) | Self::Described(text) | Self::Derived(text, _) => text,
        }
    }
}

impl Kind {
    /// The type in words, for use after "must be" and in the documents.
    pub(super) fn shape(self) -> String {
        match self {
            Self::Boolean => "one of true, false, 1, 0".to_owned(),
            Self::Integer { min, max, unit } => {
                let unit = if unit.is_empty() {
                    String::new()
                } else {
                    format!(" ({unit})")
                };
                format!("a whole number from {min} to {max}{unit}")
            }
            Self::Choice(words) => {
                let words: Vec<_> = words.iter().map(|word| word.text).collect();
                if words.len() == 1 {
                    format!("the word {}", words[0])
                } else {
                    format!("one of {}", words.join(", "))
                }
            }
            Self::Uuid => "a UUID, as in 01234567-89ab-7cde-8f01-23456789abcd".to_owned(),
            Self::IpAddress => "an IP address, as in 127.0.0.1 or ::1".to_owned(),
            Self::HttpUrl => {
                "an http or https URL without user name, password, query and fragment".to_owned()
            }
            Self::DatabaseUrl => {
                "a URL such as postgres://user:password@host:5432/database?sslmode=verify-full"
                    .to_owned()
            }
            Self::Email => "an email, as in ada@example.com".to_owned(),
            Self::Host => "a host name or an IP address, without a port".to_owned(),
            Self::HostAndPort => "a host, with :port if it has one".to_owned(),
            Self::AbsolutePath => "an absolute path".to_owned(),
            Self::KeyFile(KeyForm::Ed25519) => {
                "an absolute path of a file that holds an Ed25519 private key (PKCS#8 PEM) and \
                 that its owner alone can read (mode 0600 or stricter)"
                    .to_owned()
            }
            Self::KeyFile(KeyForm::Bytes32) => {
                "an absolute path of a file of exactly 32 bytes that its owner alone can read \
                 (mode 0600 or stricter)"
                    .to_owned()
            }
            Self::KeyText(KeyForm::Ed25519) => {
                "base64 of an Ed25519 private key in PKCS#8, PEM or DER".to_owned()
            }
            Self::KeyText(KeyForm::Bytes32) => "base64 of exactly 32 bytes".to_owned(),
            Self::EnvironmentName => {
                "1 to 100 letters, digits, dots, hyphens and underscores, a letter \
                                      or digit first"
                    .to_owned()
            }
            Self::CertificateFile => "an absolute path of a file of PEM certificates".to_owned(),
            Self::Word { min, max } => {
                format!("{min} to {max} visible ASCII characters without a space")
            }
            Self::Headers => {
                "a comma-separated list of name=value, each a header that the service \
                              does not set itself, each name once, other characters than visible \
                              ASCII, comma and % in a value percent-encoded"
                    .to_owned()
            }
            Self::LicenseKey => "a license key, which begins with svc_lk_".to_owned(),
            Self::List(item) => format!("a comma-separated list of {}", item.shape()),
        }
    }
}

impl Item {
    /// The type of each item, in the plural.
    const fn shape(self) -> &'static str {
        match self {
            Self::Origin => {
                "exact origins as a browser sends them (scheme://host[:port], lower case, no \
                 default port, no path, no wildcard)"
            }
            Self::Registry => "registry hosts, each with :port if it has one",
            Self::RelativePath => "relative paths without ..",
            Self::KeyPattern => "field keys made of letters, digits, - and _",
            Self::LevelPair => {
                "subsystem=level pairs, as in http=warn,runtime.steps=debug, each subsystem once"
            }
            Self::ModelKey => {
                "NAME=ORIGIN pairs, as in OPENAI_API_KEY=https://api.example.com, each name once"
            }
        }
    }
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
