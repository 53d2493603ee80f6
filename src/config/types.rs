//! Small types of settings.

use crate::secret::Secret;
use url::Url;

/// One of the operator's API keys.
#[derive(Debug, Clone)]
pub struct ModelKey {
    /// The name that providers refer to.
    pub name: String,
    /// The only origin that it may be sent to.
    pub origin: Origin,
    /// The key.
    pub key: Secret,
}

/// An exact origin, as browsers serialise it (RFC 6454): `scheme://host[:port]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(String);

impl Origin {
    /// Parses an `http` or `https` origin that is written exactly as a browser writes it.
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let exact = matches!(url.scheme(), "http" | "https")
            && !text.contains('*')
            && url.origin().ascii_serialization() == text;
        exact.then(|| Self(text.to_owned()))
    }

    /// The origin of a URL, if it is an `http` or `https` one.
    pub fn of(url: &Url) -> Option<Self> {
        matches!(url.scheme(), "http" | "https").then(|| Self(url.origin().ascii_serialization()))
    }

    /// Whether a browser keeps a cookie of this origin that is for secure ones: https, or http on a loopback host.
    pub fn keeps_secure_cookies(&self) -> bool {
        let host = self.0.strip_prefix("http://");
        host.is_none_or(|host| loopback_name(host).is_some())
    }

    /// The origin as a text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The name in a `host[:port]`, if it is one of the three that mean this host (section 1.3).
pub fn loopback_name(host: &str) -> Option<&'static str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let mut names = ["localhost", "127.0.0.1", "[::1]"].into_iter();
    names.find(|known| known.eq_ignore_ascii_case(name))
}

crate::texts! {
    // From the widest to the narrowest.
    /// Who may sign in with a bearer token of their own.
    #[schemars(rename = "TokenSignInSetting")]
    TokenSignIn {
        /// Everybody.
        On = "on",
        /// Tenant admins.
        Admins = "admins",
        /// Nobody.
        Off = "off",
    }
}

crate::texts! {
    /// When a provider's email counts.
    EmailTrust {
        /// When the provider says that it verified it.
        Claim = "claim",
        /// Always: at this provider nobody chooses an email of their own.
        Provider = "provider",
    }
}

/// The levels of section 1.5 of the specification, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `error`
    Error,
    /// `warn`
    Warn,
    /// `info`
    Info,
    /// `debug`
    Debug,
    /// `trace`
    Trace,
}

impl LogLevel {
    /// The level of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "error" => Self::Error,
            "warn" => Self::Warn,
            "info" => Self::Info,
            "debug" => Self::Debug,
            "trace" => Self::Trace,
            _ => return None,
        })
    }

    /// Its name.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How log records are written (section 1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Pretty on a terminal or in development mode, JSON otherwise.
    Auto,
    /// One JSON object a line.
    Json,
    /// For people.
    Pretty,
}

impl LogFormat {
    /// The format of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "auto" => Self::Auto,
            "json" => Self::Json,
            "pretty" => Self::Pretty,
            _ => return None,
        })
    }

    /// Its name.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Json => "json",
            Self::Pretty => "pretty",
        }
    }
}

/// Which hosts a tenant may choose (section 1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAccess {
    /// Everything, commands included.
    Local,
    /// Neither loopback nor cloud metadata endpoints nor commands.
    Deployed,
}

impl HostAccess {
    /// Its name.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Deployed => "deployed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_names_mean_this_host_whatever_their_port() {
        for host in [
            "localhost",
            "LOCALHOST:4000",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:4000",
        ] {
            assert!(loopback_name(host).is_some(), "{host}");
        }
        for host in [
            "",
            ":4000",
            "localhost.",
            "localhost:x",
            "a.localhost",
            "127.1",
            "127.0.0.2",
            "0.0.0.0",
            "::1",
            "[::]",
            "localhost:4000.example.com",
            "localhost:4000:1",
            "[::1",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(loopback_name(host), None, "{host}");
        }
        for (origin, keeps) in [
            ("https://a.example", true),
            ("http://localhost:4000", true),
            ("http://a.example", false),
        ] {
            assert_eq!(Origin::parse(origin).unwrap().keeps_secure_cookies(), keeps);
        }
    }

    #[test]
    fn an_origin_is_exact() {
        for text in [
            "https://app.example.com",
            "http://localhost:3000",
            "http://[::1]:8080",
            "https://xn--bcher-kva.example",
        ] {
            assert_eq!(Origin::parse(text).unwrap().text(), text);
        }
        for text in [
            "*",
            "null",
            "https://*.example.com",
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://app.example.com:443",
            "https://App.example.com",
            "https://user@app.example.com",
            "https://app.example.com?x",
            "ftp://app.example.com",
            "app.example.com",
            " https://app.example.com",
            "",
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }
}
