//! The authorization server, with a database of its own on the benchmark's cluster.

use super::Outcome;
use super::peer::parts;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const VERSION: &str = "1.22.1";
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the program and ends it when our end of its input is gone, however that came about.
pub(crate) const UNTIL_WE_END: &str = r#"
"$0" "$@" </dev/null &
server=$!
read -r _
kill "$server"
wait "$server"
"#;

/// A running server. It ends with this value, or when this process is gone.
pub(crate) struct OpenFga {
    address: SocketAddr,
    server: Child,
}

impl OpenFga {
    /// Starts it on an empty database, of which this is the URL, with its log in `directory`.
    pub(crate) fn start(database_url: &str, directory: &Path) -> Outcome<Self> {
        let (address, grpc) = (free_address()?, free_address()?);
        let uri = uri(database_url).ok_or("no URL of a database")?;
        let datastore = ["--datastore-engine", "postgres", "--datastore-uri", &uri];
        let log = File::create(directory.join("openfga.log"))?;
        let program = program()?;
        let command = |program: &Path| -> Outcome<Command> {
            let mut command = Command::new(program);
            // Nothing of OPENFGA_* or OTEL_* comes in.
            command.env_clear().env("HOME", directory);
            command.stdout(log.try_clone()?).stderr(log.try_clone()?);
            Ok(command)
        };
        let migrated = command(&program)?.arg("migrate").args(datastore).status()?;
        if !migrated.success() {
            return Err("OpenFGA's migration failed".into());
        }
        let server = command(Path::new("/bin/sh"))?
            .args(["-c", UNTIL_WE_END])
            .arg(&program)
            .arg("run")
            .args(datastore)
            .args(["--http-addr", &address.to_string()])
            .args(["--grpc-addr", &grpc.to_string()])
            .args(["--playground-enabled=false", "--metrics-enabled=false"])
            .arg("--log-level=error")
            .stdin(Stdio::piped())
            .spawn()?;
        let made = Self { address, server };
        made.wait()?;
        Ok(made)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn wait(&self) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        let health = format!("{}/healthz", self.url());
        while ureq::get(&health).call().is_err() {
            if Instant::now() > deadline {
                return Err("OpenFGA did not answer".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for OpenFga {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

/// Where `make setup` puts it.
fn program() -> Outcome<PathBuf> {
    let program = parts()?.join(format!("openfga-{VERSION}/openfga"));
    match program.exists() {
        true => Ok(program),
        false => Err("OpenFGA is not set up: run tests/setup/openfga".into()),
    }
}

/// The URL as drivers of Go and of Node read it: the socket's directory as a parameter.
pub(crate) fn uri(url: &str) -> Option<String> {
    let (user, rest) = url.split_once("://")?.1.split_once('@')?;
    let (place, name) = rest.split_once('/')?;
    let (directory, port) = place.rsplit_once(':')?;
    Some(format!(
        "postgres://{user}@/{name}?host={directory}&port={port}&sslmode=disable"
    ))
}

/// An address on this machine that nothing listens on.
pub(crate) fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}
