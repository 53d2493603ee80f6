//! `license inspect` shows what a license key says and whether this build trusts it. `license sign`
//! makes one with the issuer's private key, which is in a file of the issuer.

use super::{Failure, Outcome, World, private_file, terminal};
use crate::config::TrustedKeys;
use crate::config::license::{self, Claims, FORMAT_VERSION, Term};
use crate::ids::rfc3339;
use clap::{Args, Subcommand};
use std::io::Read;
use std::path::PathBuf;
use time::{Duration, OffsetDateTime};
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  agent-runtime license inspect < license.key
  agent-runtime license sign --key issuer.pem --licensee \"Example Ltd\" --days 365 > license.key";

const INSPECT_EXAMPLES: &str = "\
Examples:
  agent-runtime license inspect < license.key
  agent-runtime license inspect --file /etc/agent-runtime/credentials/SVC_LICENSE_KEY --json

A license key is a secret, so it is read from a file or from standard input. Exits 1 if a server \
of this build would refuse it now.";

const SIGN_EXAMPLES: &str = "\
Examples:
  agent-runtime license sign --key issuer.pem --licensee \"Example Ltd\" --expires 2027-12-31T00:00:00Z
  agent-runtime license sign --key issuer.pem --licensee \"Example Ltd\" --days 365 > license.key

The private key is an Ed25519 key in PKCS#8 PEM, in a file that only its owner can read.";

/// The longest license key that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The commands on license keys.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// Show what a license key says
    Inspect(Inspect),
    /// Sign a license key
    Sign(Sign),
}

/// Arguments of `license inspect`.
#[derive(Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct Inspect {
    /// Read the key from this file instead of from standard input
    #[arg(long)]
    file: Option<PathBuf>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `license sign`.
#[derive(Args)]
#[command(after_help = SIGN_EXAMPLES)]
pub struct Sign {
    /// The file of the private key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The licensee
    #[arg(long)]
    licensee: String,
    /// When it expires (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time, required_unless_present = "days")]
    expires: Option<OffsetDateTime>,
    /// In how many days it expires
    #[arg(long, conflicts_with = "expires", value_parser = clap::value_parser!(u16).range(1..))]
    days: Option<u16>,
    /// For how many days after that servers still take it, with a warning
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    grace_days: u16,
    /// The license's id; a new one if left out
    #[arg(long)]
    id: Option<String>,
    /// What it covers beyond the server itself; may be repeated
    #[arg(long = "feature")]
    features: Vec<String>,
}

fn time(text: &str) -> Result<OffsetDateTime, String> {
    rfc3339::parse(text).ok_or_else(|| "a time such as 2027-12-31T00:00:00Z is needed".to_owned())
}

/// Runs one of the commands.
///
/// # Errors
/// The key is not valid, or cannot be made.
pub fn run(world: &World, command: &Command) -> Outcome {
    match command {
        Command::Inspect(arguments) => inspect(world, arguments),
        Command::Sign(arguments) => sign(world, arguments),
    }
}

fn inspect(world: &World, arguments: &Inspect) -> Outcome {
    let mut text = Zeroizing::new(String::new());
    let unreadable = |error| Failure::new(format!("The license key cannot be read: {error}."));
    match &arguments.file {
        Some(path) => std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)),
        None => std::io::stdin().take(MAX_BYTES).read_to_string(&mut text),
    }
    .map_err(unreadable)?;
    let now = world.clock.now();
    let found = license::inspect(text.trim(), &TrustedKeys::compiled_in(), now)
        .map_err(|fault| Failure::new(format!("This {fault}.")))?;
    let in_time = !matches!(found.term, Term::NotYet | Term::Expired);
    let claims = &found.claims;
    if arguments.json {
        terminal::say_json(&found)?;
    } else {
        let mut lines = vec![
            format!("id:       {}", claims.id),
            format!("licensee: {}", claims.licensee),
            format!("issued:   {}", rfc3339::text(claims.issued_at)),
            format!("expires:  {}", rfc3339::text(claims.expires_at)),
        ];
        if claims.grace_days > 0 {
            lines.push(format!(
                "taken until: {} (its grace)",
                rfc3339::text(claims.ends_at())
            ));
        }
        if !claims.features.is_empty() {
            lines.push(format!("features: {}", claims.features.join(", ")));
        }
        lines.push(match found.signature_valid {
            true => "signed by a key that this build trusts".to_owned(),
            false => {
                "NOT signed by a key that this build trusts: do not rely on any of this".to_owned()
            }
        });
        lines.push(term(found.term).to_owned());
        lines.extend(claims.warning(now));
        terminal::say(terminal::printable(&lines.join("\n")))?;
    }
    if found.signature_valid && in_time {
        Ok(())
    } else {
        Err(Failure::said())
    }
}

const fn term(term: Term) -> &'static str {
    match term {
        Term::NotYet => "dated in the future",
        Term::Valid => "in time",
        Term::EndsSoon => "ends soon",
        Term::Grace => "expired, and accepted during its grace",
        Term::Expired => "ended",
    }
}

fn sign(world: &World, arguments: &Sign) -> Outcome {
    let pem = private_file::read(&arguments.key)?
        .ok_or_else(|| Failure::new(format!("There is no {}.", arguments.key.display())))?;
    let now = world.clock.now();
    let expires_at = match (arguments.expires, arguments.days) {
        (Some(at), _) => at,
        (None, days) => now + Duration::days(days.unwrap_or(1).into()),
    };
    let claims = Claims {
        v: FORMAT_VERSION,
        id: match &arguments.id {
            Some(id) => id.clone(),
            None => world.clock.new_id().to_string(),
        },
        licensee: arguments.licensee.clone(),
        issued_at: now,
        expires_at,
        grace_days: arguments.grace_days,
        features: arguments.features.clone(),
    };
    let key = license::sign(&claims, &pem).map_err(|fault| {
        let fault = fault.to_string();
        let first = fault.chars().next().map(|c| c.to_uppercase().to_string());
        let rest: String = fault.chars().skip(1).collect();
        Failure::new(format!("{}{rest}.", first.unwrap_or_default()))
    })?;
    terminal::say(key)
}
