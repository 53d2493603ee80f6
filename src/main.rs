//! The list of subcommands. Each is a file in `src/cli`.

use agent_runtime::cli;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  agent-runtime dev --demo             try everything on this machine
  agent-runtime check-config           show what the server would read, and what is wrong
  agent-runtime serve                  serve, as a service manager starts it
  agent-runtime run assistant \"Hello\"  run an agent and watch it
  agent-runtime runs --status failed   list the runs that failed

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
    /// Run the server with the settings of the environment
    Serve(cli::serve::Arguments),
    /// Run a development server with its own database and an example agent
    Dev(cli::dev::Arguments),
    /// Run an agent or a flow, and watch the run
    Run(cli::run::Arguments),
    /// Watch a run
    Follow(cli::follow::Arguments),
    /// List agents, show one, or push one from a file
    Agents(cli::agents::Arguments),
    /// List tools, show one, or push one from a file
    Tools(cli::tools::Arguments),
    /// List model providers, or check one
    ModelProviders(cli::model_providers::Arguments),
    /// List runs, show one, or cancel one
    Runs(cli::runs::Arguments),
    /// List conversations, or erase one
    Conversations(cli::conversations::Arguments),
    /// Sum what model calls used and cost
    Usage(cli::usage::Arguments),
    /// List webhook endpoints and their deliveries, or send one again
    Webhooks(cli::webhooks::Arguments),
    /// List environments and their variables, or put a variable
    Environments(cli::environments::Arguments),
    /// Try guardrails on a text
    Guardrails(cli::guardrails::Arguments),
    /// Show the guardrails of the tenant or of a project, or put them
    Policies(cli::policies::Arguments),
    /// List approvals, or show one
    Approvals(cli::approvals::Arguments),
    /// Approve what waits for a person
    Approve(cli::approvals::Approve),
    /// Reject what waits for a person
    Reject(cli::approvals::Reject),
    /// List flows
    Flows(cli::flows::Arguments),
    /// Check the definition of a flow, or give it to a server
    #[command(subcommand)]
    Flow(cli::flow::Command),
    /// Keep a key for a server
    Login(cli::login::Login),
    /// Forget the key for a server
    Logout(cli::login::Logout),
    /// Create what an installed service needs: database, keys, settings
    Setup(cli::setup::Arguments),
    /// Migrate the database's schema to this version
    Migrate(cli::migrate::Arguments),
    /// Back up the databases while servers run
    Backup(cli::backup::Arguments),
    /// Restore a backup
    Restore(cli::restore::Arguments),
    /// Show every setting and every fault
    CheckConfig(cli::settings::CheckArguments),
    /// Check everything that a server needs
    Doctor(cli::doctor::Arguments),
    /// Document every setting
    Settings(cli::settings::Arguments),
    /// Create a further tenant
    #[command(subcommand)]
    Tenant(cli::tenant::Command),
    /// Print a code with which a person signs in, once
    SignInCode(cli::sign_in_code::Arguments),
    /// Compare the authorization server with the database, or repair it
    #[command(subcommand)]
    Authz(cli::authz::Command),
    /// Say where secrets may be sent, or rewrap their data keys
    #[command(subcommand)]
    Secrets(cli::secrets::Command),
    /// Show a license key, or sign one
    #[command(subcommand)]
    License(cli::license::Command),
    /// Verify the record of access decisions, export it, or show one
    #[command(subcommand)]
    Audit(cli::audit::Command),
    /// Print the OpenAPI document
    Openapi(cli::openapi::Arguments),
    /// Print a shell's completion script
    Completions(cli::completions::Arguments),
    /// Write the manual pages, for building packages
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
        Command::Agents(arguments) => cli::agents::run(&world, &arguments),
        Command::Tools(arguments) => cli::tools::run(&world, &arguments),
        Command::ModelProviders(arguments) => cli::model_providers::run(&world, &arguments),
        Command::Runs(arguments) => cli::runs::run(&world, &arguments),
        Command::Conversations(arguments) => cli::conversations::run(&world, &arguments),
        Command::Usage(arguments) => cli::usage::run(&world, &arguments),
        Command::Webhooks(arguments) => cli::webhooks::run(&world, &arguments),
        Command::Environments(arguments) => cli::environments::run(&world, &arguments),
        Command::Guardrails(arguments) => cli::guardrails::run(&world, &arguments),
        Command::Policies(arguments) => cli::policies::run(&world, &arguments),
        Command::Approvals(arguments) => cli::approvals::run(&world, &arguments),
        Command::Approve(arguments) => cli::approvals::approve(&world, &arguments),
        Command::Reject(arguments) => cli::approvals::reject(&world, &arguments),
        Command::Flows(arguments) => cli::flows::run(&world, &arguments),
        Command::Flow(command) => cli::flow::run(&world, &command),
        Command::Login(arguments) => cli::login::login(&world, &arguments),
        Command::Logout(arguments) => cli::login::logout(&world, &arguments),
        Command::Setup(arguments) => cli::setup::run(&world, &arguments),
        Command::Migrate(arguments) => cli::migrate::run(&world, &arguments),
        Command::Backup(arguments) => cli::backup::run(&world, &arguments),
        Command::Restore(arguments) => cli::restore::run(&world, &arguments),
        Command::CheckConfig(arguments) => cli::settings::check(&world, &arguments),
        Command::Doctor(arguments) => cli::doctor::run(&world, &arguments),
        Command::Settings(arguments) => cli::settings::print(&arguments),
        Command::Tenant(command) => cli::tenant::run(&world, &command),
        Command::SignInCode(arguments) => cli::sign_in_code::run(&world, &arguments),
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
