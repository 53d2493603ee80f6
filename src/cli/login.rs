//! `login`, `logout`: the key with which the other commands ask a server, kept in a file that only its owner can read.
//!
//! Guarantees: a key or a code comes from standard input or a file, never from the command line, and a terminal does not show
//! it. A key is kept only once the server has taken it.

use super::client::{Server, base_of};
use super::kept_keys::KeptKeys;
use super::{Failure, Outcome, World, hidden_line, private_file, terminal};
use crate::outbound::Method;
use crate::secret::Secret;
use clap::Args;
use serde_json::{Value, json};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use zeroize::Zeroizing;

const LOGIN_EXAMPLES: &str = "\
Examples:
  agent-runtime login --enrol --url https://agents.example.com      with the code that an admin gave you
  agent-runtime login --url https://agents.example.com              with a key that you have
  agent-runtime login --url https://agents.example.com --file key   from a file that only you can read

The code or the key is read from standard input, or from --file; a terminal does not show it. A code is turned into a key of yours, once. The key is kept \
in ~/.config/agent-runtime/keys, in a file that only you can read, and the other commands use it for that server. If it is the \
only one, they ask that server without --url, unless a token is given to them.";

const LOGOUT_EXAMPLES: &str = "\
Examples:
  agent-runtime logout
  agent-runtime logout --url https://agents.example.com --revoke

Forgets the key for the server. With --revoke the key ends at the server, too.";

/// The longest key or code, in bytes.
const MAX_BYTES: u64 = 4096;

/// Arguments of `login`.
#[derive(Args)]
#[command(after_help = LOGIN_EXAMPLES)]
pub struct Login {
    /// The server's URL
    #[arg(long)]
    url: String,
    /// Turn an enrolment code into a key
    #[arg(long)]
    enrol: bool,
    /// The name of the new key, with --enrol [default: command line]
    #[arg(long, requires = "enrol")]
    name: Option<String>,
    /// Read the code or the key from this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print who signed in as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `logout`.
#[derive(Args)]
#[command(after_help = LOGOUT_EXAMPLES)]
pub struct Logout {
    /// The server's URL [default: the one for which there is a key]
    #[arg(long)]
    url: Option<String>,
    /// End the key at the server, too
    #[arg(long)]
    revoke: bool,
}

fn keys(world: &World) -> Outcome<KeptKeys> {
    KeptKeys::find(&world.vars)
        .ok_or_else(|| Failure::usage("There is no place for a key: set HOME or XDG_CONFIG_HOME."))
}

/// Keeps a key.
///
/// # Errors
/// The server cannot be asked or refuses, or the file cannot be written.
pub fn login(world: &World, arguments: &Login) -> Outcome {
    let keys = keys(world)?;
    let base = base_of(&arguments.url)?;
    let given = given(arguments)?;
    let key = match arguments.enrol {
        true => enrol(&base, &given, arguments.name.as_deref())?,
        false => given,
    };
    if arguments.enrol {
        // It is kept whatever comes: a code is taken once.
        keys.keep(&base, &key)?;
    }
    let me = Server::new(&base, key.clone())?
        .client()
        .get("/v1/identity/me")?;
    let path = keys.keep(&base, &key)?.display().to_string();
    if arguments.json {
        return terminal::say_json(&json!({
            "url": base, "userId": me["id"], "displayName": me["displayName"], "keyFile": path,
        }));
    }
    let name = me["displayName"].as_str().unwrap_or_default();
    terminal::say(format_args!(
        "Signed in at {base} as {}. The key is in {path}.",
        terminal::printable(name)
    ))
}

/// The code or the key.
fn given(arguments: &Login) -> Outcome<Secret> {
    let text = match &arguments.file {
        Some(file) => private_file::read(file)?
            .ok_or_else(|| Failure::new(format!("There is no file {}.", file.display())))?,
        None => {
            if std::io::stdin().is_terminal() {
                let ask = match arguments.enrol {
                    true => "Paste the enrolment code, which is not shown, then Enter:",
                    false => "Paste the key, which is not shown, then Enter:",
                };
                hidden_line::read(ask, MAX_BYTES)?
            } else {
                let mut text = Zeroizing::new(String::new());
                std::io::stdin().take(MAX_BYTES).read_to_string(&mut text)?;
                text
            }
        }
    };
    match text.trim() {
        "" => Err(Failure::usage(
            "There is no code or key on standard input. See: agent-runtime login --help",
        )),
        text => Ok(Secret::new(text)),
    }
}

/// Turns a code into a key.
fn enrol(base: &str, code: &Secret, name: Option<&str>) -> Outcome<Secret> {
    let body = json!({"code": code.expose(), "name": name.unwrap_or("command line")});
    let server = Server::anonymous(base)?;
    let minted = server
        .client()
        .send(Method::POST, "/v1/identity/enrolments", Some(&body), &[])?;
    match minted["token"].as_str() {
        Some(token) => Ok(Secret::new(token)),
        None => Err(Failure::new("The server's answer has no key.")),
    }
}

/// Forgets a key.
///
/// # Errors
/// There is none, or the server does not end it.
pub fn logout(world: &World, arguments: &Logout) -> Outcome {
    let keys = keys(world)?;
    let named = arguments.url.as_deref().map(base_of).transpose()?;
    let base = named.or_else(|| keys.only_server()).ok_or_else(|| {
        Failure::usage("There is no key, or there are several. Name the server with --url.")
    })?;
    if arguments.revoke
        && let Some(key) = keys.read(&base)?
    {
        revoke(&base, key)?;
    }
    match keys.forget(&base)? {
        true => terminal::say(format_args!("The key for {base} is forgotten.")),
        false => Err(Failure::new(format!("There is no key for {base}."))),
    }
}

fn revoke(base: &str, key: Secret) -> Outcome {
    let mut client = Server::new(base, key)?.client();
    let me: Value = client.get("/v1/identity/me")?;
    let id = me["credential"]["id"].as_str().unwrap_or_default();
    client.send(Method::DELETE, &format!("/v1/tokens/{id}"), None, &[])?;
    Ok(())
}
