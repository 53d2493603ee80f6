//! A snapshot of the environment, read in one place. Everything else takes a [`Vars`]: tests build
//! theirs from pairs, and nothing depends on when a variable is read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Every variable of the environment at one moment. `Debug` shows only the names.
#[derive(Clone, Default)]
pub struct Vars(BTreeMap<OsString, OsString>);

impl Vars {
    /// The environment of this process, now.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the place that reads the environment"
    )]
    pub fn from_environment() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// An environment with only these pairs.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    /// The same with one variable set, for a command-line flag or for a value of `dev`.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Whether a variable of this service is set.
    pub fn has_settings(&self) -> bool {
        self.has_any("SVC_")
    }

    /// Every variable.
    pub fn pairs(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// A variable, unchanged.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that is UTF-8 and not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.raw(name)?.to_str().filter(|text| !text.is_empty())
    }

    /// Names that begin with this.
    pub(super) fn names_with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = String> + 'a {
        self.0
            .keys()
            .map(|name| name.to_string_lossy().into_owned())
            .filter(move |name| name.starts_with(prefix))
    }

    /// Whether the user asked for no colours (`NO_COLOR`, set and not empty).
    pub fn no_color(&self) -> bool {
        self.raw("NO_COLOR").is_some_and(|value| !value.is_empty())
    }

    /// Where systemd put this unit's credentials.
    pub(super) fn credentials_directory(&self) -> Option<PathBuf> {
        self.absolute("CREDENTIALS_DIRECTORY")
    }

    /// The first of the state directories that systemd made for this unit.
    pub(super) fn state_directory(&self) -> Option<PathBuf> {
        let first = self.text("STATE_DIRECTORY")?.split(':').next()?;
        Some(PathBuf::from(first)).filter(|path| path.is_absolute())
    }

    /// Where this user's programs keep their data: `$XDG_DATA_HOME`, else `~/.local/share`
    /// (XDG base directory specification).
    pub fn user_data_directory(&self) -> Option<PathBuf> {
        self.absolute("XDG_DATA_HOME")
            .or_else(|| self.absolute("HOME").map(|home| home.join(".local/share")))
    }

    /// Where this user's programs keep their configuration: `$XDG_CONFIG_HOME`, else `~/.config`.
    pub fn user_config_directory(&self) -> Option<PathBuf> {
        self.absolute("XDG_CONFIG_HOME")
            .or_else(|| self.absolute("HOME").map(|home| home.join(".config")))
    }

    /// Where this user's programs keep what can be made again: `$XDG_CACHE_HOME`, else `~/.cache`.
    pub fn user_cache_directory(&self) -> Option<PathBuf> {
        self.absolute("XDG_CACHE_HOME")
            .or_else(|| self.absolute("HOME").map(|home| home.join(".cache")))
    }

    /// Whether a setting is given: as a variable, as a file, or as a credential of the unit.
    pub fn gives(&self, setting: &str) -> bool {
        let credentials = super::files::Credentials(self.credentials_directory());
        self.raw(setting).is_some()
            || self.raw(&format!("{setting}_FILE")).is_some()
            || credentials.find(setting).is_some()
    }

    /// Whether a variable that begins with this is set.
    pub fn has_any(&self, prefix: &str) -> bool {
        self.names_with_prefix(prefix).next().is_some()
    }

    /// Device and inode of the stream that systemd connected to its journal (`JOURNAL_STREAM`,
    /// systemd.exec(5)). A process further down may have another stream in its place.
    pub fn journal_stream(&self) -> Option<(u64, u64)> {
        let (device, inode) = self.text("JOURNAL_STREAM")?.split_once(':')?;
        Some((device.parse().ok()?, inode.parse().ok()?))
    }

    /// The socket that systemd wants to be told on that the service is ready (`sd_notify`). One
    /// that begins with `@` is in the abstract namespace.
    pub fn notify_socket(&self) -> Option<&OsStr> {
        self.raw("NOTIFY_SOCKET").filter(|path| !path.is_empty())
    }

    /// How often at least systemd wants a sign of life, if from this process (`sd_watchdog`).
    pub fn watchdog_interval(&self) -> Option<Duration> {
        let pid = self.text("WATCHDOG_PID");
        if pid.is_some_and(|pid| pid.parse() != Ok(std::process::id())) {
            return None;
        }
        let interval_us = self.text("WATCHDOG_USEC")?.parse().ok()?;
        Some(Duration::from_micros(interval_us)).filter(|interval| !interval.is_zero())
    }

    fn absolute(&self, name: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.raw(name)?)).filter(|path| path.is_absolute())
    }
}

impl std::fmt::Debug for Vars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value() {
        let vars = Vars::from_pairs([("SVC_SEED_TOKEN", "hunter2hunter2hunter2")]);
        assert_eq!(format!("{vars:?}"), r#"{"SVC_SEED_TOKEN"}"#);
    }

    #[test]
    fn the_watchdog_is_for_its_process() {
        let vars = Vars::from_pairs([("WATCHDOG_USEC", "3000000")]);
        assert_eq!(vars.watchdog_interval(), Some(Duration::from_secs(3)));
        let own = std::process::id().to_string();
        let vars = vars.with("WATCHDOG_PID", own);
        assert_eq!(vars.watchdog_interval(), Some(Duration::from_secs(3)));
        assert_eq!(vars.with("WATCHDOG_PID", "0").watchdog_interval(), None);
    }

    #[test]
    fn the_journal_s_stream_is_two_numbers() {
        let of = |text: &str| Vars::from_pairs([("JOURNAL_STREAM", text)]).journal_stream();
        assert_eq!(of("8:12345"), Some((8, 12345)));
        for text in ["", "8", "8:", "8:x", "-1:2", "1:2:3"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_state_directory_counts() {
        let vars = Vars::from_pairs([("STATE_DIRECTORY", "/var/lib/a:/var/lib/b")]);
        assert_eq!(vars.state_directory(), Some(PathBuf::from("/var/lib/a")));
        assert_eq!(vars.with("STATE_DIRECTORY", "a").state_directory(), None);
    }

    #[test]
    fn colours_follow_no_color() {
        assert!(!Vars::from_pairs([("NO_COLOR", "")]).no_color());
        assert!(Vars::from_pairs([("NO_COLOR", "1")]).no_color());
    }
}
