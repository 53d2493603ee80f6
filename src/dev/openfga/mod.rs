//! OpenFGA beside the development server: found or built ([`binary`]), started, and ended with this
//! process.
//!
//! It listens on loopback and keeps its data in memory. The runtime's database has the truth
//! (`postgres-is-the-truth`), and the server fills the store again at each start. It runs under the
//! account that runs PostgreSQL, so never as root.
//!
//! Not here: who may do what (`authz`), and an OpenFGA of a production server.

pub mod binary;

use super::account::{Account, quiet_command};
use super::cluster::{log_file, outputs, tail};
use super::failure::Failure;
use super::postmaster::POLL;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to answer.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long one question for its health may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
/// Starts, each on other ports: another program may take one between its choice and its use.
const ATTEMPTS: usize = 3;

/// What ends the server however this process ends. The argument is its process id.
const WATCH: &str = "trap '' HUP INT TERM\nread -r _\nkill -KILL \"$1\" 2>/dev/null\n";

/// A running OpenFGA; dropping it stops it.
#[derive(Debug)]
pub struct OpenFga {
    address: SocketAddr,
    server: Child,
    watch: Child,
}

impl OpenFga {
    /// Starts the program, which logs into `log`, and waits until it answers.
    ///
    /// # Errors
    /// It cannot be started or does not answer. The text shows the end of its log.
    pub fn start(program: &Path, log: &Path) -> Result<Self, Failure> {
        let account = Account::choose()?;
        account.check_reach(program)?;
        for _ in 1..ATTEMPTS {
            if let Some(running) = Self::attempt(&account, program, log)? {
                return Ok(running);
            }
        }
        Self::attempt(&account, program, log)?.ok_or_else(|| {
            Failure::new(format!(
                "OpenFGA ({}) does not start. The end of its log, {}:\n{}",
                program.display(),
                log.display(),
                tail(log, 0)
            ))
        })
    }

    /// None: it ended, or did not answer in time.
    fn attempt(account: &Account, program: &Path, log: &Path) -> Result<Option<Self>, Failure> {
        let [http, grpc] = free_addresses().map_err(|fault| {
            Failure::new(format!("There is no free port for OpenFGA: {fault}."))
        })?;
        let (out, err) = outputs(log_file(log, true)?, log)?;
        let mut command = account.command(program);
        command
            .arg("run")
            .args(["--datastore-engine", "memory", "--log-level", "error"])
            .args(["--http-addr", &http.to_string()])
            .args(["--grpc-addr", &grpc.to_string()])
            .args(["--playground-enabled=false", "--metrics-enabled=false"])
            // It looks for a file of settings there.
            .env("HOME", "/nonexistent")
            .stdout(out)
            .stderr(err);
        let mut server = command
            .spawn()
            .map_err(|fault| Failure::io("start", program, &fault))?;
        let shell = Path::new("/bin/sh");
        let watch = quiet_command(shell)
            .args(["-c", WATCH, "openfga-watch", &server.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let watch = match watch {
            Ok(watch) => watch,
            Err(fault) => {
                let _ = server.kill();
                let _ = server.wait();
                return Err(Failure::io("start", shell, &fault));
            }
        };
        let mut running = Self {
            address: http,
            server,
            watch,
        };
        let deadline = Instant::now() + START_DEADLINE;
        while Instant::now() < deadline && matches!(running.server.try_wait(), Ok(None)) {
            if is_serving(http) {
                return Ok(Some(running));
            }
            std::thread::sleep(POLL);
        }
        Ok(None)
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for OpenFga {
    fn drop(&mut self) {
        // It holds nothing that a kill could lose.
        let _ = self.server.kill();
        let _ = self.server.wait();
        // Its pid may soon belong to another process.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
    }
}

/// Two free addresses on loopback.
fn free_addresses() -> std::io::Result<[SocketAddr; 2]> {
    let [one, two] = [
        TcpListener::bind("127.0.0.1:0"),
        TcpListener::bind("127.0.0.1:0"),
    ];
    Ok([one?.local_addr()?, two?.local_addr()?])
}

fn is_serving(address: SocketAddr) -> bool {
    let ask = || {
        let mut connection = TcpStream::connect_timeout(&address, ASK_TIMEOUT)?;
        connection.set_read_timeout(Some(ASK_TIMEOUT))?;
        connection.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        connection.take(4096).read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    ask().is_ok_and(|answer| answer.contains("\"SERVING\""))
}

/// Where the binary of the given name is in one of these directories.
fn program_in(directories: &[PathBuf], name: &str) -> Option<PathBuf> {
    let mut paths = directories.iter().map(|directory| directory.join(name));
    paths.find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_that_ends_is_told_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = dir.path().join("openfga");
        std::fs::write(&program, "#!/bin/sh\necho no such engine; exit 1\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let failure = OpenFga::start(&program, &dir.path().join("log")).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("no such engine"), "{text}");
    }
}
