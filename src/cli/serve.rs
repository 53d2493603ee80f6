//! `serve`: the server with the settings of the environment.
//!
//! stdout gets what an operator must read once (the id of a new tenant, in development its token).
//! The log goes to stderr.

use super::notify::Manager;
use super::{Failure, Outcome, World, journal, private_file, signals, terminal};
use crate::authn::bearer;
use crate::config::{Settings, Vars, render};
use crate::error::{Code, Error};
use crate::ids::{self, Clock};
use crate::log::{self, Subsystem};
use crate::secret::Secret;
use crate::server::{Options, Replaced, Seeds, Server};
use clap::Args;
use crossbeam_channel::{Receiver, bounded, never, select, tick};
use slog::{Logger, info, warn};
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  SVC_DEV=1 agent-runtime serve                  development, with the database on localhost
  systemctl start agent-runtime                  in production
  agent-runtime check-config && agent-runtime serve

SIGTERM and Ctrl-C stop it in order; a second one ends it immediately.

Exit codes: 0 stopped in order, 1 failed, 2 wrong command line, 78 the settings or the database \
refuse it, and a restart would not help. A database that is unreachable or read-only is waited \
for.";

/// Arguments of `serve`.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub struct Arguments {}

fn long_help() -> String {
    format!("{EXAMPLES}\n\n{}", render::help())
}

/// Serves until a signal ends it.
///
/// # Errors
/// A setting is wrong, the server cannot start, or its stop was cut off.
pub fn run(world: &World, _: &Arguments) -> Outcome {
    serve(world).map_err(|failure| failure.heard_by(&world.vars))
}

fn serve(world: &World) -> Outcome {
    let settings = world.settings().map_err(Failure::for_good)?;
    let log = open_log(&world.vars, &settings, &world.clock).map_err(Failure::for_good)?;
    log::install_panic_hook(&log);
    let endings = signals::endings()?;
    warn_of_no_authorization(&settings, &log);
    let seeds = seeds(&settings, &world.clock)?;
    let server = start(&settings, seeds.clone(), &world.clock, &log)?;
    let manager = Manager::of(&world.vars);
    let within = settings.http.shutdown_timeout;
    let keep = || keep_token(&settings, &seeds, &log);
    match until_signal(&server, &endings, &manager, keep) {
        Ok(()) => stop(server, within, &endings, &manager),
        Err(failure) => {
            // Why it never became ready matters more than how it ended.
            let _ = stop(server, within, &endings, &manager);
            Err(failure)
        }
    }
}

/// The logger of these settings, with the warnings about them.
pub(super) fn open_log(vars: &Vars, settings: &Settings, clock: &Clock) -> Outcome<Logger> {
    let patterns = settings.log.redact_keys.join(",");
    let (options, problems) = log::Options::parse(log::Given {
        level: Some(settings.log.level.text()),
        levels: Some(&settings.log.levels),
        format: Some(settings.log.format.text()),
        redact_keys: Some(&patterns),
        dev: settings.development,
        terminal: std::io::stderr().is_terminal(),
        journal: journal::is_journal(vars),
        no_color: vars.no_color(),
    })
    .map_err(|faults| {
        let lines: Vec<String> = faults
            .iter()
            .map(|fault| format!("{}: {}", name(fault.setting), fault.message))
            .collect();
        Failure::new(lines.join("\n"))
    })?;
    let log = log::open(&options, clock.clone(), std::io::stderr());
    let own = log::subsystem(&log, Subsystem::Config);
    for problem in &problems {
        warn!(own, "SVC_LOG_LEVELS: {}", problem);
    }
    for warning in &settings.warnings {
        warn!(own, "{}", warning);
    }
    Ok(log)
}

const fn name(setting: log::Setting) -> &'static str {
    match setting {
        log::Setting::Level => "SVC_LOG_LEVEL",
        log::Setting::Levels => "SVC_LOG_LEVELS",
        log::Setting::Format => "SVC_LOG_FORMAT",
        log::Setting::RedactKeys => "SVC_LOG_REDACT_KEYS",
    }
}

/// Section 1.1: whoever holds a token may do anything in its tenant then, and production must turn authorization on.
fn warn_of_no_authorization(settings: &Settings, log: &Logger) {
    if settings.development || settings.authorization_url.is_some() {
        return;
    }
    let own = log::subsystem(log, Subsystem::Authz);
    warn!(
        own,
        "SVC_AUTHZ_API_URL is not set: whoever holds a token may do anything in its tenant. In production, set it to the URL of the authorization server"
    );
}

/// The tenant that this start creates or finds.
fn seeds(settings: &Settings, clock: &Clock) -> Outcome<Seeds> {
    let tenant = &settings.tenant;
    let tenant_id = tenant.id.unwrap_or_else(|| clock.new_id());
    if tenant.id.is_none() {
        terminal::say(format_args!(
            "tenant: {tenant_id} (a new one; set SVC_TENANT_ID to it to keep it)"
        ))?;
    }
    let (token, replaces) = match &tenant.seed_token {
        Some(token) => (token.clone(), Replaced::All),
        None => {
            let token = bearer::mint()?;
            let replaces = match settings.development {
                true => {
                    terminal::say(format_args!("token:  {}", token.expose()))?;
                    Replaced::All
                }
                false => Replaced::Only(token_before(settings)?),
            };
            (token, replaces)
        }
    };
    Ok(Seeds {
        tenant_id,
        user_id: tenant.seed_user_id.unwrap_or_else(|| first_user(tenant_id)),
        token,
        replaces,
        email: tenant.seed_user_email.clone(),
    })
}

/// The first user of a tenant whose settings name none. It is the same at every start and on every
/// replica, so no start creates a second one.
pub(super) fn first_user(tenant_id: Uuid) -> Uuid {
    ids::derived(&[b"agent-runtime seed user", tenant_id.as_bytes()])
}

/// Where a seed token that a start made is found, outside development.
fn token_path(settings: &Settings) -> PathBuf {
    settings.state_directory.join("seed-token")
}

/// The token that an earlier start left in the state directory, which is made if it is not there.
fn token_before(settings: &Settings) -> Outcome<Option<Secret>> {
    let directory = &settings.state_directory;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| {
            Failure::new(format!(
                "SVC_STATE_DIR: {} cannot be made: {error}.",
                directory.display()
            ))
        })?;
    let text = private_file::read(&token_path(settings))?;
    Ok(text.map(|text| Secret::new(text.as_str())))
}

/// Writes the token that this start made to the state directory, in place of the one before. It is never logged. The
/// database has it by now. A start that ends between the two leaves a token that nobody knows, and that no later start ends.
fn keep_token(settings: &Settings, seeds: &Seeds, log: &Logger) -> Outcome {
    let Replaced::Only(_) = seeds.replaces else {
        return Ok(());
    };
    let path = token_path(settings);
    let text = zeroize::Zeroizing::new(format!("{}\n", seeds.token.expose()));
    private_file::write(&path, &text, private_file::IfExists::Replace)?;
    let own = log::subsystem(log, Subsystem::Server);
    info!(own, "A seed token was made: see the file"; "path" => %path.display());
    Ok(())
}

/// Starts the server.
pub(super) fn start(
    settings: &Settings,
    seeds: Seeds,
    clock: &Clock,
    log: &Logger,
) -> Outcome<Server> {
    let options = Options::from_settings(settings, seeds).map_err(never_ready)?;
    let server = Server::start(options, clock, log)?;
    let own = log::subsystem(log, Subsystem::Server);
    info!(own, "Listening"; "address" => %server.local_addr());
    Ok(server)
}

/// Waits until the server is ready, and then for a signal to end. `prepare` comes before others hear that it is ready.
fn until_signal(
    server: &Server,
    endings: &Receiver<()>,
    manager: &Manager,
    prepare: impl Fn() -> Outcome,
) -> Outcome {
    let beat = manager.every().map_or_else(never, tick);
    let mut ready = server.ready().clone();
    loop {
        select! {
            recv(ready) -> said => {
                if let Ok(Err(error)) = said {
                    return Err(never_ready(error));
                }
                prepare()?;
                manager.ready();
                ready = never();
            }
            recv(beat) -> _ => match server.stuck() {
                Some(part) => manager.stuck(part.text()),
                None if server.beats() => manager.alive(),
                None => {}
            },
            recv(endings) -> _ => return Ok(()),
        }
    }
}

/// Why the server will never be ready. Permanent, unless the error is internal.
fn never_ready(error: Error) -> Failure {
    let is_ours = error.code() == Code::Internal;
    let failure = Failure::from(error);
    match is_ours {
        true => failure,
        false => failure.for_good(),
    }
}

/// After the server's own deadline, what still hangs ends with the process.
const GRACE: Duration = Duration::from_secs(5);

/// Stops in order within the time; a further signal ends it immediately.
pub(super) fn stop(
    server: Server,
    within: Duration,
    endings: &Receiver<()>,
    manager: &Manager,
) -> Outcome {
    manager.stopping();
    let (done, stopped) = bounded(1);
    std::thread::Builder::new()
        .name("stop".to_owned())
        .spawn(move || done.send(server.stop(within)))?;
    let in_time = select! {
        recv(stopped) -> in_time => in_time.unwrap_or(false),
        recv(endings) -> _ => return Err(Failure::new("Ended at once.")),
        default(within + GRACE) => false,
    };
    match in_time {
        true => Ok(()),
        false => Err(Failure::new(
            "Not everything ended within SVC_SHUTDOWN_TIMEOUT_MS: the rest was cut off.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, TrustedKeys, license};
    use ed25519_dalek::SigningKey;
    use ed25519_dalek::pkcs8::EncodePrivateKey;
    use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    #[test]
    fn a_tenant_s_first_user_is_its_own_and_stays() {
        let clock = Clock::system();
        let (one, other) = (clock.new_id(), clock.new_id());
        assert_eq!(first_user(one), first_user(one));
        assert_ne!(first_user(one), first_user(other));
        assert_eq!(first_user(one).get_version_num(), 8);
    }

    /// Settings outside development, with a license of this test's own.
    fn settings(state: &Path, tenant_id: Option<Uuid>) -> Settings {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).unwrap();
        let key = SigningKey::from_bytes(&seed);
        let clock = Clock::system();
        let claims = license::Claims {
            v: 1,
            id: "lic-1".to_owned(),
            licensee: "Example Works".to_owned(),
            issued_at: clock.now(),
            expires_at: clock.now() + time::Duration::days(90),
            grace_days: 0,
            features: Vec::new(),
        };
        let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
        let mut vars = Vars::from_pairs([
            ("SVC_LICENSE_KEY", license::sign(&claims, &pem).unwrap()),
            ("SVC_DATABASE_URL", "postgres://localhost/x".to_owned()),
        ])
        .with("SVC_STATE_DIR", state);
        if let Some(id) = tenant_id {
            vars = vars.with("SVC_TENANT_ID", id.to_string());
        }
        let trusted = TrustedKeys::of(&[key.verifying_key().to_bytes()]);
        config::load_trusting(&vars, &clock, &trusted).unwrap()
    }

    #[derive(Clone, Default)]
    struct Sink(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn outside_development_a_start_s_token_is_in_a_private_file_and_in_no_log() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let clock = Clock::system();
        let sink = Sink::default();
        let log = log::open(&log::Options::default(), clock.clone(), sink.clone());
        let tenant_id = clock.new_id();
        let pinned = settings(&state, Some(tenant_id));
        let path = token_path(&pinned);
        let before = |seeds: &Seeds| match &seeds.replaces {
            Replaced::Only(before) => before.clone(),
            Replaced::All => panic!("it ends tokens of other files"),
        };
        let first = seeds(&pinned, &clock).unwrap();
        assert!(before(&first).is_none() && !path.exists());
        keep_token(&pinned, &first, &log).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let held = || std::fs::read_to_string(&path).unwrap();
        assert_eq!(held(), format!("{}\n", first.token.expose()));
        // The next start makes another one. The file's stays until the database has that.
        let again = seeds(&pinned, &clock).unwrap();
        assert!(again.token != first.token && before(&again) == Some(first.token.clone()));
        assert_eq!((again.tenant_id, again.user_id), (tenant_id, first.user_id));
        assert_eq!(held().trim(), first.token.expose());
        keep_token(&pinned, &again, &log).unwrap();
        assert_eq!(held().trim(), again.token.expose());
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        // Also where that is for a fresh tenant.
        let fresh = seeds(&settings(&state, None), &clock).unwrap();
        assert!(before(&fresh) == Some(again.token.clone()) && fresh.tenant_id != tenant_id);
        let logged = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains("seed-token"), "{logged}");
        for seeds in [&first, &again, &fresh] {
            assert!(!logged.contains(&seeds.token.expose()[7..]), "{logged}");
        }
    }

    #[test]
    fn a_given_token_goes_into_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let clock = Clock::system();
        let mut given = settings(&state, None);
        given.tenant.seed_token = Some(Secret::new("token-of-the-operator"));
        let seeds = seeds(&given, &clock).unwrap();
        assert!(matches!(seeds.replaces, Replaced::All));
        let log = Logger::root(slog::Discard, slog::o!());
        keep_token(&given, &seeds, &log).unwrap();
        assert!(!token_path(&given).exists());
    }

    #[test]
    fn production_without_an_authorization_server_is_warned_of_once() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let warned = |settings: &Settings| {
            let sink = Sink::default();
            let log = log::open(&log::Options::default(), clock.clone(), sink.clone());
            warn_of_no_authorization(settings, &log);
            String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
        };
        let mut settings = settings(dir.path(), None);
        let said = warned(&settings);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(
            said.contains("SVC_AUTHZ_API_URL") && said.contains("\"level\":\"warn\""),
            "{said}"
        );
        settings.development = true;
        assert_eq!(warned(&settings), "");
    }
}
