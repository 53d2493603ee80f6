//! The subcommands, nothing else: each is a file in `src/cli`.

use agent_runtime::cli;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  agent-runtime dev --demo             try everything out, on this machine alone
  agent-runtime check-config           see what the server would read, and what is wrong
  agent-runtime serve                  serve, as a service manager starts it
  agent-runtime run assistant \"Hello\"  run an agent and watch it

Exit codes: 0 done, 1 failed, 2 wrong command line; of serve also 78, a restart would not help.";

/// Runs agents durably, and streams their progress over HTTP.
#[derive(Parser)]
#[command(name = "agent-runtime", version, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve, with the settings of the environment
    Serve(cli::serve::Arguments),
    /// Serve on this machine alone, with a database and an example of its own
    Dev(cli::dev::Arguments),
    /// Run an agent, and watch its run
    Run(cli::run::Arguments),
    /// Watch a run
    Follow(cli::follow::Arguments),
    /// Make what an installed service needs: database, keys, settings
    Setup(cli::setup::Arguments),
    /// Bring the database's schema up to this version
    Migrate(cli::migrate::Arguments),
    /// Back up the databases, while servers serve
    Backup(cli::backup::Arguments),
    /// Put a backup back
    Restore(cli::restore::Arguments),
    /// Show every setting, and everything that is wrong
    CheckConfig(cli::settings::CheckArguments),
    /// Look at all that a server needs, and say what is wrong
    Doctor(cli::doctor::Arguments),
    /// Print what is known of every setting
    Settings(cli::settings::Arguments),
    /// Make a further tenant
    #[command(subcommand)]
    Tenant(cli::tenant::Command),
    /// Compare permissions with the authorization server, or repair them there
    #[command(subcommand)]
    Authz(cli::authz::Command),
    /// Wrap the keys of secrets anew
    #[command(subcommand)]
    Secrets(cli::secrets::Command),
    /// Look at a license key, or sign one
    #[command(subcommand)]
    License(cli::license::Command),
    /// Verify the record of access decisions, or export it
    #[command(subcommand)]
    Audit(cli::audit::Command),
    /// Print the OpenAPI document
    Openapi(cli::openapi::Arguments),
    /// Print what completes the command line in a shell
    Completions(cli::completions::Arguments),
    /// Write the manual pages, for the build of packages
    #[command(hide = true)]
    ManualPages(cli::manual::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let world = cli::World::here();
    cli::exit(match arguments.command {
        Command::Serve(arguments) => cli::serve::run(&world, &arguments),
        Command::Dev(arguments) => cli::dev::run(&world, &arguments),
        Command::Run(arguments) => cli::run::run(&world, &arguments),
        Command::Follow(arguments) => cli::follow::run(&world, &arguments),
        Command::Setup(arguments) => cli::setup::run(&world, &arguments),
        Command::Migrate(arguments) => cli::migrate::run(&world, &arguments),
        Command::Backup(arguments) => cli::backup::run(&world, &arguments),
        Command::Restore(arguments) => cli::restore::run(&world, &arguments),
        Command::CheckConfig(arguments) => cli::settings::check(&world, &arguments),
        Command::Doctor(arguments) => cli::doctor::run(&world, &arguments),
        Command::Settings(arguments) => cli::settings::print(&arguments),
        Command::Tenant(command) => cli::tenant::run(&world, &command),
        Command::Authz(command) => cli::authz::run(&world, &command),
        Command::Secrets(command) => cli::secrets::run(&world, &command),
        Command::License(command) => cli::license::run(&world, &command),
        Command::Audit(command) => cli::audit::run(&world, &command),
        Command::Openapi(arguments) => cli::openapi::run(&arguments),
        Command::Completions(arguments) => {
            cli::completions::print(&arguments, Arguments::command())
        }
        Command::ManualPages(arguments) => cli::manual::write(&arguments, Arguments::command()),
    })
}
