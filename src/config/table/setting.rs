//! The row of a setting.

use crate::config::Vars;

/// One setting.
#[derive(Debug)]
pub(in crate::config) struct Setting {
    /// The environment variable.
    pub(in crate::config) name: &'static str,
    /// The type of its text.
    pub(in crate::config) kind: Kind,
    /// The default.
    pub(in crate::config) absent: Absent,
    /// Refused unless `SVC_DEV` is true.
    pub(in crate::config) development_only: bool,
    /// Required unless `SVC_DEV` is true.
    pub(in crate::config) required: bool,
    /// Never printed. It can also be given as `NAME_FILE` or as a systemd credential.
    pub(in crate::config) secret: bool,
    /// The setting that gives the same value in another form; only one of the two may be given.
    pub(in crate::config) variant_of: Option<&'static str>,
    /// Who reads it, and when.
    pub(in crate::config) reader: &'static str,
    /// Its meaning, in plain sentences.
    pub(in crate::config) meaning: &'static str,
    /// Its origin.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only a page of the repository shows it")
    )]
    pub(in crate::config) source: Source,
    /// Whether this version supports it.
    pub(in crate::config) state: State,
}

/// The origin of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum Source {
    /// The specification has name and meaning.
    Named,
    /// The specification has the meaning; the name is this project's.
    Meant,
    /// Name and meaning are this project's.
    Ours,
}

/// Whether this version supports a setting, or one of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum State {
    /// It is supported.
    Built,
    /// The named feature is not built yet.
    NotBuilt(&'static str),
    /// The specification reserves it.
    Reserved,
}

/// The default of a setting.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) enum Absent {
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
pub(in crate::config) struct Word {
    pub(in crate::config) text: &'static str,
    pub(in crate::config) state: State,
    pub(in crate::config) development_only: bool,
}

/// The format of a key in a file or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum KeyForm {
    /// An Ed25519 private key in PKCS#8 (RFC 8410).
    Ed25519,
    /// 32 bytes.
    Bytes32,
}

/// The type of the items of a comma-separated list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum Item {
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
pub(in crate::config) enum Kind {
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

impl Setting {
    /// A supported setting that the server reads; the methods below change what differs.
    pub(in crate::config) const fn new(
        name: &'static str,
        kind: Kind,
        source: Source,
        meaning: &'static str,
    ) -> Self {
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

    pub(in crate::config) const fn default_value(mut self, text: &'static str) -> Self {
        self.absent = Absent::Value(text);
        self
    }

    pub(in crate::config) const fn default_described(mut self, text: &'static str) -> Self {
        self.absent = Absent::Described(text);
        self
    }

    pub(in crate::config) const fn default_derived(
        mut self,
        text: &'static str,
        derive: fn(&Vars, bool) -> Option<String>,
    ) -> Self {
        self.absent = Absent::Derived(text, derive);
        self
    }

    pub(in crate::config) const fn development_only(mut self) -> Self {
        self.development_only = true;
        self
    }

    pub(in crate::config) const fn required_outside_development(mut self) -> Self {
        self.required = true;
        self
    }

    pub(in crate::config) const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    pub(in crate::config) const fn variant_of(mut self, name: &'static str) -> Self {
        self.variant_of = Some(name);
        self
    }

    pub(in crate::config) const fn read_by(mut self, reader: &'static str) -> Self {
        self.reader = reader;
        self
    }

    pub(in crate::config) const fn not_built(mut self, feature: &'static str) -> Self {
        self.state = State::NotBuilt(feature);
        self
    }

    /// The variable that gives a secret's file.
    pub(in crate::config) fn file_name(&self) -> String {
        format!("{}_FILE", self.name)
    }

    /// Whether a systemd credential of its name can give it: a secret, or a key file.
    pub(in crate::config) fn takes_credential(&self) -> bool {
        self.secret || matches!(self.kind, Kind::KeyFile(_))
    }
}

impl Word {
    pub(in crate::config) const fn built(text: &'static str) -> Self {
        Self {
            text,
            state: State::Built,
            development_only: false,
        }
    }

    pub(in crate::config) const fn reserved(text: &'static str) -> Self {
        Self {
            state: State::Reserved,
            ..Self::built(text)
        }
    }

    pub(in crate::config) const fn development_only(mut self) -> Self {
        self.development_only = true;
        self
    }
}

impl Absent {
    /// For the documents.
    pub(in crate::config) const fn text(self) -> &'static str {
        match self {
            Self::Value(text) | Self::Described(text) | Self::Derived(text, _) => text,
        }
    }
}

impl Kind {
    /// The type in words, for use after "must be" and in the documents.
    pub(in crate::config) fn shape(self) -> String {
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
    pub(in crate::config) const fn shape(self) -> &'static str {
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
