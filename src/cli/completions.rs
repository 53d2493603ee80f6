//! `completions`: the script with which a shell completes the command line. It is generated from
//! the tables that parse it. The packages contain these scripts.

use super::{Outcome, terminal};
use clap::{Args, Command};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  agent-runtime completions bash > ~/.local/share/bash-completion/completions/agent-runtime
  agent-runtime completions zsh > ~/.zfunc/_agent-runtime
  agent-runtime completions fish > ~/.config/fish/completions/agent-runtime.fish

The packages install them for every user already.";

/// Arguments of `completions`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell that completes
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a shell's script for this command line.
///
/// # Errors
/// stdout cannot be written.
pub fn print(arguments: &Arguments, mut command: Command) -> Outcome {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    terminal::write(String::from_utf8_lossy(&script))
}
