//! What the command takes.

use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  agent-runtime restore --dry-run /var/backups/agent-runtime/2027-01-31
  systemctl stop agent-runtime
  agent-runtime restore --replace /var/backups/agent-runtime/2027-01-31

The databases are those of SVC_DATABASE_URL and SVC_AUTHZ_DATABASE_URL. Nobody else may use the \
first meanwhile. The authorization server must run: it is synchronized at the end, whatever the \
ages of the two dumps. Without the second setting, or with --without-openfga, it is rebuilt from \
the first database.

After an interruption, run it again with --replace; until then no server uses the database.";

/// Arguments of `restore`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The backup's directory
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    /// Verify the backup, print what would be done, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Replace the databases' content; only content of the runtime or OpenFGA is ever replaced
    #[arg(long)]
    pub(super) replace: bool,
    /// Restore even if keys of the backup's secrets are missing or different
    #[arg(long)]
    pub(super) without_keys: bool,
    /// Do not restore the authorization server's dump
    #[arg(long)]
    pub(super) without_openfga: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}
