//! `serve`: the server with the settings of the environment.
//!
//! stdout gets what an operator must read once (the id of a new tenant, in development its token).
//! The log goes to stderr.

use super::notify::Manager;
use super::{Failure, Outcome, World, private_file, signals, terminal};
use crate::authn::bearer;
use crate::config::{Settings, Vars, render};
use crate::error::{Code, Error};
use crate::ids::Clock;
use crate::log::{self, Subsystem};
use crate::secret::Secret;
use crate::server::{Options, Seeds, Server};
use clap::Args;
use crossbeam_channel::{Receiver, bounded, never, select, tick};
use sha2::{Digest, Sha256};
use slog::{Logger, info, warn};
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
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
    let seeds = seeds(&settings, &world.clock, &log)?;
    let server = start(&settings, seeds, &world.clock, &log)?;
    let manager = Manager::of(&world.vars);
    let within = settings.http.shutdown_timeout;
    match until_told(&server, &endings, &manager) {
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
        journal: terminal::is_journal(vars),
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

/// The tenant that this start creates or finds.
fn seeds(settings: &Settings, clock: &Clock, log: &Logger) -> Outcome<Seeds> {
    let tenant = &settings.tenant;
    let tenant_id = tenant.id.unwrap_or_else(|| clock.new_id());
    if tenant.id.is_none() {
        terminal::say(format_args!(
            "tenant: {tenant_id} (a new one; set SVC_TENANT_ID to it to keep it)"
        ))?;
    }
    let token = match &tenant.seed_token {
        Some(token) => token.clone(),
        None if settings.development => {
            let token = bearer::mint()?;
            terminal::say(format_args!("token:  {}", token.expose()))?;
            token
        }
        None => kept_token(settings, log)?,
    };
    Ok(Seeds {
        tenant_id,
        user_id: tenant.seed_user_id.unwrap_or_else(|| first_user(tenant_id)),
        token,
    })
}

/// The first user of a tenant whose settings name none. It is the same at every start and on every
/// replica, so no start creates a second one.
pub(super) fn first_user(tenant_id: Uuid) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(b"agent-runtime seed user");
    hash.update(tenant_id.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The token in the state directory: that of an earlier start, or a new one. It is never logged.
fn kept_token(settings: &Settings, log: &Logger) -> Outcome<Secret> {
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
    let path = directory.join("seed-token");
    // A token belongs to one tenant, and without SVC_TENANT_ID every start makes another.
    let standing = match settings.tenant.id {
        Some(_) => private_file::Standing::Kept,
        None => private_file::Standing::Replaced,
    };
    let token = bearer::mint()?;
    let text = zeroize::Zeroizing::new(format!("{}\n", token.expose()));
    if private_file::write(&path, &text, standing)? {
        let own = log::subsystem(log, Subsystem::Server);
        info!(own, "A seed token was made: see the file"; "path" => %path.display());
        return Ok(token);
    }
    match private_file::read(&path)? {
        Some(text) if text.len() >= 16 => Ok(Secret::new(text.as_str())),
        _ => Err(Failure::new(format!(
            "SVC_STATE_DIR: {} holds no token. Remove it for a fresh one, or set SVC_SEED_TOKEN.",
            path.display()
        ))),
    }
}

/// Starts the server.
pub(super) fn start(
    settings: &Settings,
    seeds: Seeds,
    clock: &Clock,
    log: &Logger,
) -> Outcome<Server> {
    let options = Options::from_settings(settings, seeds)?;
    let server = Server::start(options, clock, log)?;
    let own = log::subsystem(log, Subsystem::Server);
    info!(own, "Listening"; "address" => %server.local_addr());
    Ok(server)
}

/// Waits until the server is ready, and then for a signal to end.
fn until_told(server: &Server, endings: &Receiver<()>, manager: &Manager) -> Outcome {
    let beat = manager.every().map_or_else(never, tick);
    let mut ready = server.ready().clone();
    loop {
        select! {
            recv(ready) -> said => {
                if let Ok(Err(error)) = said {
                    return Err(never_ready(error));
                }
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
    fn outside_development_a_made_token_is_in_a_private_file_and_in_no_log() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let clock = Clock::system();
        let sink = Sink::default();
        let log = log::open(&log::Options::default(), clock.clone(), sink.clone());
        let tenant_id = clock.new_id();
        let pinned = settings(&state, Some(tenant_id));
        let first = seeds(&pinned, &clock, &log).unwrap();
        let path = state.join("seed-token");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap().trim(),
            first.token.expose()
        );
        let logged = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains("seed-token"), "{logged}");
        assert!(!logged.contains(&first.token.expose()[7..]), "{logged}");
        let again = seeds(&pinned, &clock, &log).unwrap();
        assert!(again.token == first.token, "the token is kept");
        assert_eq!((again.tenant_id, again.user_id), (tenant_id, first.user_id));
        // A fresh tenant has a fresh token.
        let fresh = seeds(&settings(&state, None), &clock, &log).unwrap();
        assert!(fresh.token != first.token && fresh.tenant_id != tenant_id);
    }
}
