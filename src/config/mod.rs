//! The settings: the environment, checked once at the start.
//!
//! - [`load`] returns the typed [`Settings`], or all faults together; the server does not start
//!   with any.
//! - [`load_for_upkeep`] returns them for commands that need less than a server.
//! - [`check`] returns the same result as a report: each setting with its value and source, secrets
//!   redacted (`check-config`).
//! - [`render`] writes the settings part of `--help`, the sample environment file, the manual page
//!   and `docs/settings.md`.
//!
//! Everything comes from one table (`table`). A setting that one part uses is read there, by its name ([`Values`]).
//! The environment is read in one place
//! ([`Vars::from_environment`]). A fault never repeats a value, and no secret reaches a report or a
//! `Debug` text. Specification: sections 1.3, 1.4, 1.5 and 8.
//!
//! Not here: connecting to anything, and generating what is not given (ids, tokens, keys).

mod assemble;
mod env_file;
mod fault;
mod files;
pub mod identity_providers;
pub mod license;
mod parse;
mod read;
pub mod render;
mod report;
mod settings;
mod table;
mod types;
mod values;
mod vars;

use crate::ids::Clock;
pub use env_file::EnvFile;
pub use fault::Fault;
pub use license::TrustedKeys;
pub(crate) use parse::{boolean, is_environment_name};
pub use report::{Report, ReportRow};
pub use settings::{
    ForwardProxy, Http, Kms, Log, Outbound, PublicTokenKey, Secrets, Settings, SignIn, Tenant,
};
pub use types::{
    EmailTrust, HostAccess, LogFormat, LogLevel, ModelKey, Origin, TokenSignIn, loopback_name,
};
pub use values::Values;
pub use vars::Vars;

/// The content of a key file that is for development only: the settings of a server outside
/// development refuse it.
pub fn development_key(key: &[u8; 32]) -> zeroize::Zeroizing<Vec<u8>> {
    zeroize::Zeroizing::new([parse::DEVELOPMENT_KEY, key].concat())
}

/// The settings, with the license keys that this build trusts.
///
/// # Errors
/// All faults. The caller prints them and exits 1.
pub fn load(vars: &Vars, clock: &Clock) -> Result<Settings, Vec<Fault>> {
    load_trusting(vars, clock, &TrustedKeys::compiled_in())
}

/// As [`load`], with the license keys that a test trusts. The service itself never calls it.
///
/// # Errors
/// All faults.
pub fn load_trusting(
    vars: &Vars,
    clock: &Clock,
    trusted: &TrustedKeys,
) -> Result<Settings, Vec<Fault>> {
    let reading = read::read(vars, clock, trusted);
    if reading.faults.is_empty() {
        Ok(assemble::assemble(reading))
    } else {
        Err(reading.faults)
    }
}

/// The settings for maintaining the databases. Only those of the database and the authorization
/// server must be right. Any other faulty setting counts as not given and is returned as a warning.
/// So a backup needs neither a valid license nor the server's keys.
///
/// # Errors
/// All faults of those settings.
pub fn load_for_upkeep(vars: &Vars, clock: &Clock) -> Result<(Settings, Vec<Fault>), Vec<Fault>> {
    const NEEDED: [&str; 3] = ["SVC_DEV", "SVC_DATABASE_", "SVC_AUTHZ_"];
    let mut reading = read::read(vars, clock, &TrustedKeys::compiled_in());
    let (faults, forgiven): (Vec<_>, Vec<_>) = std::mem::take(&mut reading.faults)
        .into_iter()
        .partition(|fault| NEEDED.iter().any(|name| fault.setting.starts_with(name)));
    if !faults.is_empty() {
        return Err(faults);
    }
    reading.forgive(vars, &forgiven);
    Ok((assemble::assemble(reading), forgiven))
}

/// The settings as `check-config` shows them.
pub fn check(vars: &Vars, clock: &Clock) -> Report {
    check_trusting(vars, clock, &TrustedKeys::compiled_in())
}

/// As [`check`], with the license keys that a test trusts. The service itself never calls it.
pub fn check_trusting(vars: &Vars, clock: &Clock, trusted: &TrustedKeys) -> Report {
    report::of(read::read(vars, clock, trusted))
}

#[cfg(test)]
pub(crate) mod generated;
#[cfg(test)]
mod tests;
