//! `dev`: the whole service on this machine with everything it needs. It adds a private PostgreSQL,
//! a tenant that persists, a token for each start, keys for secrets, an example agent with a tool, a scripted model
//! provider unless a real one is named, and OpenFGA if it is asked for.
//!
//! It listens on loopback and is the server of `serve` in development mode. This command sets a few
//! settings; all others come from the environment as usual.

mod browser;
mod example;
mod found;
mod home;
mod openfga;
mod settings;
mod tool;

pub(super) use found::Found;
pub(super) use home::Home;

use super::client::Server as Api;
use super::display::Display;
use super::notify::Manager;
use super::terminal::{Style, note, program, say};
use super::{Failure, Outcome, World, follow, run as start_run, serve, signals};
use crate::authn::bearer;
use crate::config::{self, Origin, Settings, Vars};
use crate::dev::cluster::{self, Cluster};
use crate::dev::provider::{Provider, Script, Step};
use crate::error::{Code, Error};
use crate::log::{self, Subsystem};
use crate::secret::Secret;
use crate::server::{Replaced, Seeds, Server};
use clap::Args;
use crossbeam_channel::{Receiver, select};
use example::{Example, Ground};
use home::Kept;
use serde_json::json;
use std::io::IsTerminal;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;
use tool::Tool;
use url::Url;

const EXAMPLES: &str = "\
Examples:
  agent-runtime dev                         serve on http://127.0.0.1:4000
  agent-runtime dev --demo                  and run the example agent once
  agent-runtime dev --demo --exit           run it once and stop
  agent-runtime dev --port 4100             serve on another port; 0 takes any that is free
  agent-runtime dev --data-dir ./dev        keep everything in ./dev; another directory is another server
  agent-runtime dev --authorization         check who may do what, with OpenFGA
  agent-runtime dev --authorization --openfga /opt/openfga/openfga
  agent-runtime dev --database-url postgres://localhost:5432/agents
  OPENAI_API_KEY=… agent-runtime dev --provider-url https://api.example.com/v1 --model NAME
  agent-runtime dev --provider-url http://127.0.0.1:11434/v1 --model llama3.2

An API key comes from the variable OPENAI_API_KEY, or as SVC_MODEL_KEYS says. Secrets and webhooks \
are on with the private database, under keys that dev keeps in its data directory and that no other server takes. With \
another database they are as the settings SVC_SECRETS_… say. To start afresh, stop it and remove that directory.";

const DEFAULT_PORT: u16 = 4000;
/// Ports that are tried after the default one.
const MORE_PORTS: u16 = 50;
/// The demonstration's message. The scripted provider calls a tool for it.
const QUESTION: &str = "What time is it?";
/// Pause between two words of the scripted provider.
const WORD_PACE: Duration = Duration::from_millis(25);

/// Arguments of `dev`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The port to listen on, 0 for any [default: 4000, or the next free one]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Where the database, the keys and the token are kept [default: $XDG_DATA_HOME/agent-runtime]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Turn authorization on: find OpenFGA or build it with Go, and start it
    #[arg(long)]
    authorization: bool,
    /// The binary of OpenFGA to start
    #[arg(long, value_name = "FILE", requires = "authorization")]
    openfga: Option<PathBuf>,
    /// Use this database instead of a private one; if its URL has a password, use SVC_DATABASE_URL
    #[arg(long, value_name = "URL", value_parser = without_password)]
    database_url: Option<String>,
    /// The base URL of an OpenAI-compatible model provider [default: OPENAI_BASE_URL, else a scripted one]
    #[arg(long, value_name = "URL", requires = "model")]
    provider_url: Option<String>,
    /// The provider's model for the example [default: OPENAI_MODEL]
    #[arg(long)]
    model: Option<String>,
    /// Run the example agent once, and print the command for it
    #[arg(long)]
    demo: bool,
    /// Do not open the console in a browser
    #[arg(long)]
    no_browser: bool,
    /// Stop after the demonstration [default if standard input is not a terminal]
    #[arg(long, requires = "demo")]
    exit: bool,
}

fn without_password(text: &str) -> Result<String, String> {
    match Url::parse(text) {
        Ok(url) if url.password().is_none() && !text.contains("password=") => Ok(text.to_owned()),
        Ok(_) => Err(
            "other users can read command lines: put a URL with a password into SVC_DATABASE_URL"
                .to_owned(),
        ),
        Err(_) => Err("a URL such as postgres://localhost:5432/name is needed".to_owned()),
    }
}

/// The example's model provider and model.
struct Model {
    base_url: String,
    name: Option<String>,
    key_name: Option<&'static str>,
    /// The scripted provider, which runs as long as this value lives; none if a real one is named.
    scripted: Option<Provider>,
}

/// Serves until Ctrl-C, or until the demonstration is over.
///
/// # Errors
/// Something that it needs is missing or does not start, or the demonstration failed.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let home = Home::named_or_found(arguments.data_dir.as_deref(), &world.vars)?;
    let home = home.ok_or_else(|| {
        Failure::new("There is no home directory: set HOME or XDG_DATA_HOME, or name a directory with --data-dir.")
    })?;
    let mut kept = home.open(&world.clock)?;
    let port = port(arguments.port)?;
    let model = model(&world.vars, arguments)?;
    let vars = vars(&world.vars, &home, &model)?.with("SVC_HTTP_PORT", port.to_string());
    // Check the settings before anything is started.
    super::load(&vars, &world.clock)?;
    let endings = signals::endings()?;
    let openfga = arguments
        .authorization
        .then(|| openfga::program(&vars, arguments.openfga.as_deref(), &endings))
        .transpose()?;
    let (vars, cluster) = with_database(world, arguments, vars, &home)?;
    home.make()?;
    let vars = match &cluster {
        Some(_) => {
            home.make_keys()?;
            settings::with_secrets(vars, &home)
        }
        // Others may use that database, and nobody else has these keys.
        None => vars,
    };
    let openfga = openfga.map(|program| openfga::start(&program, &home));
    let openfga = openfga.transpose()?;
    let vars = match &openfga {
        Some(openfga) => vars.with("SVC_AUTHZ_API_URL", openfga.url()),
        None => vars,
    };
    let mut settings = super::load(&vars, &world.clock)?;
    let log = serve::open_log(&vars, &settings, &world.clock)?;
    log::install_panic_hook(&log);
    let tool = Tool::start(kept.tool_port, &world.clock)?;
    let opened = &mut settings.outbound.host_access_origins;
    opened.extend(own_origins(&model, &tool));
    let seeds = seeds(&settings, &kept)?;
    let token = seeds.token.clone();
    let server = serve::start(&settings, seeds, &world.clock, &log)?;
    kept.url = Some(format!("http://{}", server.local_addr()));
    kept.authorization_url
        .clone_from(&settings.authorization_url);
    kept.tool_port = Some(tool.port());
    let dev = Dev {
        world,
        arguments,
        settings: &settings,
        home: &home,
        model: &model,
        tool: &tool,
        endings: &endings,
        is_private: cluster.is_some(),
    };
    let outcome = dev.serve(&server, &kept, token);
    let stopped = stop(server, &settings, &endings);
    drop((tool, model, openfga));
    if cluster.is_some() {
        note("Stopping PostgreSQL.");
    }
    drop(cluster);
    outcome.and(stopped)
}

/// The settings with a database: the one that was named, else the private one, which is started.
fn with_database(
    world: &World,
    arguments: &Arguments,
    vars: Vars,
    home: &Home,
) -> Outcome<(Vars, Option<Cluster>)> {
    const DATABASE: &str = "SVC_DATABASE_URL";
    match &arguments.database_url {
        Some(_) if vars.gives(DATABASE) => Err(Failure::usage(format!(
            "The database is given twice: by --database-url and by {DATABASE}."
        ))),
        Some(url) => Ok((vars.with(DATABASE, url), None)),
        None if vars.gives(DATABASE) => Ok((vars, None)),
        None => {
            let cluster = cluster(world, home)?;
            Ok((vars.with(DATABASE, cluster.url()), Some(cluster)))
        }
    }
}

/// The exact origins of the example's parts that this process serves itself: they listen on loopback, which
/// `SVC_HOST_ACCESS=deployed` refuses, on ports that change. A provider that was named is not among them.
fn own_origins(model: &Model, tool: &Tool) -> Vec<Origin> {
    let provider = model.scripted.as_ref().map(Provider::base_url);
    let urls = provider.into_iter().chain([tool.url()]);
    let parsed = urls.filter_map(|url| Url::parse(&url).ok());
    parsed.filter_map(|url| Origin::of(&url)).collect()
}

fn seeds(settings: &Settings, kept: &Kept) -> Outcome<Seeds> {
    Ok(Seeds {
        tenant_id: settings.tenant.id.unwrap_or(kept.tenant_id),
        user_id: settings.tenant.seed_user_id.unwrap_or(kept.user_id),
        token: match &settings.tenant.seed_token {
            Some(token) => token.clone(),
            None => bearer::mint()?,
        },
        replaces: Replaced::All,
        email: settings.tenant.seed_user_email.clone(),
    })
}

fn stop(server: Server, settings: &Settings, endings: &Receiver<()>) -> Outcome {
    let within = settings.http.shutdown_timeout;
    serve::stop(server, within, endings, &Manager::of(&Vars::default()))
}

/// The provider that was named, or a scripted one.
fn model(vars: &Vars, arguments: &Arguments) -> Outcome<Model> {
    let named = arguments
        .provider_url
        .as_deref()
        .or(vars.text("OPENAI_BASE_URL"));
    let name = arguments
        .model
        .as_deref()
        .or(vars.text("OPENAI_MODEL"))
        .map(str::to_owned);
    let Some(base_url) = named else {
        let step = Step::default().between(WORD_PACE);
        let provider = Provider::start(Script {
            then: step,
            ..Script::default()
        })?;
        return Ok(Model {
            base_url: provider.base_url(),
            name: None,
            key_name: None,
            scripted: Some(provider),
        });
    };
    if name.is_none() {
        return Err(Failure::usage(
            "OPENAI_BASE_URL names a model provider: name its model with --model or OPENAI_MODEL.",
        ));
    }
    Ok(Model {
        base_url: base_url.to_owned(),
        name,
        key_name: vars.text("OPENAI_API_KEY").map(|_| "OPENAI_API_KEY"),
        scripted: None,
    })
}

/// The environment for the server.
fn vars(given: &Vars, home: &Home, model: &Model) -> Outcome<Vars> {
    let mut vars = given.clone();
    // Warnings only on the screen; SVC_LOG_LEVEL=info shows the rest.
    if vars.raw("SVC_LOG_LEVEL").is_none() {
        vars = vars.with("SVC_LOG_LEVEL", "warn");
    }
    vars = settings::of_server(&vars, home);
    if let Some(key) = model.key_name {
        let origin = Url::parse(&model.base_url).ok();
        let origin = origin.as_ref().and_then(Origin::of).ok_or_else(|| {
            Failure::usage(format!("{} is not an http or https URL.", model.base_url))
        })?;
        let listed = vars.text("SVC_MODEL_KEYS").unwrap_or_default().to_owned();
        let own = format!("{key}={}", origin.text());
        if !listed
            .split(',')
            .any(|pair| pair.trim().starts_with(&format!("{key}=")))
        {
            let all = match listed.as_str() {
                "" => own,
                listed => format!("{listed},{own}"),
            };
            vars = vars.with("SVC_MODEL_KEYS", all);
        }
    }
    Ok(vars)
}

/// The private PostgreSQL, in the data directory.
fn cluster(world: &World, home: &Home) -> Outcome<Cluster> {
    let options = log::Options {
        format: log::Format::Pretty {
            colours: std::io::stderr().is_terminal() && !world.vars.no_color(),
        },
        ..log::Options::default()
    };
    let log = log::open(&options, world.clock.clone(), std::io::stderr());
    note("Starting PostgreSQL.");
    Cluster::start(cluster::Options {
        data_dir: home.path().to_owned(),
        durable: true,
        bin_dir: None,
        search_path: world.vars.raw("PATH").map(ToOwned::to_owned),
        runtime_dir: world.vars.text("XDG_RUNTIME_DIR").map(PathBuf::from),
        log: log::subsystem(&log, Subsystem::Dev),
    })
    .map_err(|failure| Failure::new(failure.to_string()))
}

/// The requested port, or the first free one from the default on.
fn port(asked: Option<u16>) -> Outcome<u16> {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    match asked {
        Some(port) if port == 0 || free(port) => return Ok(port),
        Some(port) => {
            return Err(Failure::new(format!(
                "Port {port} is taken by another program, or may not be used. Name another one with --port; 0 takes any that is free."
            )));
        }
        None => {}
    }
    let found = (DEFAULT_PORT..=DEFAULT_PORT + MORE_PORTS).find(|port| free(*port));
    let port = found.ok_or_else(|| {
        Failure::new(format!(
            "No port from {DEFAULT_PORT} on is free. Name one with --port; 0 takes any."
        ))
    })?;
    if port != DEFAULT_PORT {
        note(format_args!(
            "Port {DEFAULT_PORT} is taken: listening on {port} instead."
        ));
    }
    Ok(port)
}

/// A running server with its surroundings.
struct Dev<'a> {
    world: &'a World,
    arguments: &'a Arguments,
    settings: &'a Settings,
    home: &'a Home,
    model: &'a Model,
    tool: &'a Tool,
    endings: &'a Receiver<()>,
    /// Whether the database is the private one in the data directory.
    is_private: bool,
}

impl Dev<'_> {
    /// Why the server did not become ready, with advice if the private database is the cause.
    fn refused(&self, error: Error) -> Failure {
        let is_its_own = self.is_private && error.code() == Code::Conflict;
        let mut failure = Failure::from(error);
        if is_its_own {
            failure.message.push_str(&format!(
                "\n  The database is the one in {}. If another build of this program made it, move that directory away, or name another directory with --data-dir.",
                self.home.path().display()
            ));
        }
        failure
    }

    fn serve(&self, server: &Server, kept: &Kept, token: Secret) -> Outcome {
        select! {
            recv(server.ready()) -> said => match said {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(self.refused(error)),
                Err(_) => return Err(Failure::new("The server ended before it was ready.")),
            },
            recv(self.endings) -> _ => return Ok(()),
        }
        self.home.keep(kept, &token)?;
        let url = kept.url.as_deref().unwrap_or_default();
        let api = Api::new(url, token)?;
        let example = example::load(
            &mut api.client(),
            &Ground {
                provider_url: &self.model.base_url,
                api_key_name: self.model.key_name,
                model: self.model.name.as_deref(),
                tool_url: &self.tool.url(),
            },
        )?;
        self.greet(url, &example)?;
        if self.settings.http.console && !self.arguments.no_browser && !self.arguments.exit {
            browser::open(&self.world.vars, &format!("{url}/console/"));
        }
        if self.arguments.demo {
            let outcome = self.demonstrate(&api, &example);
            if self.arguments.exit || !std::io::stdin().is_terminal() {
                return outcome;
            }
            if let Err(failure) = outcome {
                super::exit(Err(failure));
            }
            say(format_args!("\nServing on {url}. Ctrl-C stops everything."))?;
        }
        let _ = self.endings.recv();
        Ok(())
    }

    /// Prints where everything is, and what to try.
    fn greet(&self, url: &str, example: &Example) -> Outcome {
        let style = Style::of_stdout(&self.world.vars);
        let model = match self.model.name {
            Some(_) => format!("{} at {}", example.model, self.model.base_url),
            None => "scripted, without a model (see --provider-url)".to_owned(),
        };
        let header = self.home.authorization_path();
        let token = self.home.token_path();
        let console = match self.settings.http.console {
            true => format!("{url}/console/"),
            false => "off (SVC_CONSOLE)".to_owned(),
        };
        let rows = [
            ("Console", console),
            ("API", url.to_owned()),
            ("Reference", format!("{url}/docs")),
            ("Token", token.display().to_string()),
            ("Data", self.home.path().display().to_string()),
            ("Model", model),
            ("Access", self.access()),
            ("Secrets", self.secrets().to_owned()),
        ];
        say(format_args!("\n{}", style.bold("agent-runtime dev")))?;
        for (name, value) in rows {
            say(format_args!(
                "  {}{value}",
                style.dim(&format!("{name:<11}"))
            ))?;
        }
        say(format_args!("\n{}", style.bold("Try")))?;
        for line in [
            self.command(example),
            format!("curl -H @{} {url}/v1/runs", header.display()),
            format!(
                "export AGENT_RUNTIME_URL={url} AGENT_RUNTIME_TOKEN_FILE={}",
                token.display()
            ),
        ] {
            say(format_args!("  {line}"))?;
        }
        if !self.arguments.demo {
            say(format_args!("\n{}", style.dim("Ctrl-C stops everything.")))?;
        }
        Ok(())
    }

    fn access(&self) -> String {
        match &self.settings.authorization_url {
            Some(url) => format!("authorization is on, by OpenFGA at {url}"),
            None => "authorization is off: every token may do everything (see --authorization)"
                .to_owned(),
        }
    }

    fn secrets(&self) -> &'static str {
        match self.settings.secrets {
            config::Secrets::Off => "off, and so are webhooks (see SVC_SECRETS_BACKEND)",
            _ => "on, and so are webhooks",
        }
    }

    /// The command that does what the demonstration does.
    fn command(&self, example: &Example) -> String {
        let option = match &self.arguments.data_dir {
            Some(_) => format!(" --data-dir {}", self.home.path().display()),
            None => String::new(),
        };
        format!("{} run{option} {} \"{QUESTION}\"", program(), example.name)
    }

    /// Runs the example once, as `run` does.
    fn demonstrate(&self, api: &Api, example: &Example) -> Outcome {
        let style = Style::of_stdout(&self.world.vars);
        say(format_args!(
            "\n{} {}",
            style.bold("Demonstration"),
            style.dim(&format!(
                "agent-runtime run {} \"{QUESTION}\"",
                example.name
            ))
        ))?;
        let display = Display::new(&self.world.vars, false);
        let body = json!({"agentId": example.agent_id, "message": QUESTION});
        let run_id = start_run::start(api, &mut api.client(), ("/v1/runs", &body), &display)?;
        let seen = follow::watch(api, run_id, display, self.endings, true)?;
        if seen.outcome().is_ok() {
            let url = api.url();
            say(format_args!("\n{}", style.bold("What happened")))?;
            say(if seen.tools > 0 {
                "  The agent asked the model, called its tool over HTTP, told the model the answer, and the\n  \
                 text above was streamed. Each step was journaled: a crash would have lost none of it."
            } else {
                "  The agent asked the model, which called no tool, and the text above was streamed. The step\n  \
                 was journaled: a crash would have lost nothing of it."
            })?;
            say(format_args!("\n{}", style.bold("Next")))?;
            say(format_args!(
                "  open {url}/docs\n  curl -H @{} {url}/v1/runs/{run_id}/progress",
                self.home.authorization_path().display()
            ))?;
        }
        seen.outcome()
    }
}
