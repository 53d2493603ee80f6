//! `openapi`: prints the API description, without a server or a database.

use super::{Outcome, terminal};
use crate::http::openapi;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  agent-runtime openapi > openapi.json
  agent-runtime openapi | jq '.paths | keys'

A running server has the same document at /openapi.json.";

/// Arguments of `openapi`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {}

/// Prints the document.
///
/// # Errors
/// stdout cannot be written.
pub fn run(_: &Arguments) -> Outcome {
    terminal::say(openapi::document(&crate::server::table(true, true)))
}
