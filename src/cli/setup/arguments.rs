//! What the command takes.

use crate::cli::deployment;
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  agent-runtime setup --license-file license.key
  agent-runtime setup --dry-run                    print what would be done, change nothing
  agent-runtime setup --license-file license.key --start
  agent-runtime setup --json | jq '.steps[] | select(.state != \"kept\")'

Run it as root, on the host of PostgreSQL, and again whenever you are in doubt: it keeps what \
exists and every setting that you gave. It creates role and database over PostgreSQL's local \
socket, keys under /etc/agent-runtime/credentials, and missing settings in \
/etc/agent-runtime/agent-runtime.env. Nothing is started without --start.

Exit codes: 0 done, 1 not done (the message says why), 2 wrong command line.";

/// Arguments of `setup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// PostgreSQL's superuser: a user of this host and the role of that name
    #[arg(long, value_name = "NAME", default_value = "postgres")]
    pub(super) database_superuser: String,
    /// The directory of PostgreSQL's socket
    #[arg(long, value_name = "DIR", default_value = "/var/run/postgresql")]
    pub(super) socket: PathBuf,
    /// PostgreSQL's port, which is part of the socket's name
    #[arg(long, default_value_t = 5432)]
    pub(super) port: u16,
    /// The database to create
    #[arg(long, value_name = "NAME", default_value = "agent_runtime", value_parser = name)]
    pub(super) database: String,
    /// The user that the service runs as; its role has the same name
    #[arg(long, value_name = "NAME", default_value = deployment::USER, value_parser = name)]
    pub(super) user: String,
    /// Do not configure the companion package's OpenFGA
    #[arg(long)]
    pub(super) no_openfga: bool,
    /// Make new keys of secrets, although the database holds values that only the lost ones open
    #[arg(long)]
    pub(super) new_keys: bool,
    /// Install the license key of this file
    #[arg(long, value_name = "FILE")]
    pub(super) license_file: Option<PathBuf>,
    /// Start the service at the end, and enable it at boot
    #[arg(long)]
    pub(super) start: bool,
    /// Install the files under this directory instead of /
    #[arg(long, value_name = "DIR", conflicts_with = "start")]
    pub(super) root: Option<PathBuf>,
    /// Print what would be done, and change nothing
    #[arg(long, conflicts_with = "start")]
    pub(super) dry_run: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Create roles and databases, for the setup that started this one
    #[arg(long, hide = true)]
    pub(super) as_superuser: bool,
}

/// A name that PostgreSQL accepts and an operator can type.
pub(super) fn name(text: &str) -> Result<String, String> {
    match (1..=63).contains(&text.len()) && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err("1 to 63 bytes without control characters are needed".to_owned()),
    }
}
