//! OpenFGA for tests: one for the whole run, or a test's own that it can kill, freeze, start again
//! and upgrade; and a relay that makes its answers slow or cuts them off.
//!
//! AGENT_RUNTIME_TEST_OPENFGA names the version under test: 1.22.1 unless set, or 1.9.0.

use super::{Database, PATIENCE, eventually};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What ends the server however we end: arguments are its process id and its log.
const WATCH: &str = r#"
trap '' HUP INT TERM
read -r _
kill -KILL "$1" 2>/dev/null
rm -f -- "$2"
"#;

/// An OpenFGA server on this host. It ends with the test.
pub(crate) struct OpenFga {
    http: SocketAddr,
    grpc: SocketAddr,
    log: PathBuf,
    state: Mutex<State>,
    /// Where it keeps its data; in memory without one.
    database: Option<Database>,
}

struct State {
    version: String,
    running: Option<Running>,
}

struct Running {
    server: Child,
    watch: Child,
}

impl OpenFga {
    /// The version under test.
    pub(crate) fn version() -> String {
        std::env::var("AGENT_RUNTIME_TEST_OPENFGA").unwrap_or_else(|_| "1.22.1".into())
    }

    /// The server of the whole test run, in memory: for tests that only use it.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<OpenFga> = OnceLock::new();
        SHARED.get_or_init(Self::own_in_memory)
    }

    /// A server of the test's own, which forgets all when it is killed.
    pub(crate) fn own_in_memory() -> Self {
        Self::new(None, &Self::version())
    }

    /// A server of the test's own that keeps its data in a database of its own.
    pub(crate) fn own() -> Self {
        Self::own_at(&Self::version())
    }

    /// As [`OpenFga::own`], of a given version.
    pub(crate) fn own_at(version: &str) -> Self {
        Self::new(Some(Database::empty()), version)
    }

    fn new(database: Option<Database>, version: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("openfga-{}-{number}.log", std::process::id());
        let (http, grpc) = (free_address(), free_address());
        let made = Self {
            http,
            grpc,
            log: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name),
            state: Mutex::new(State {
                version: version.into(),
                running: None,
            }),
            database,
        };
        made.migrate();
        made.start();
        made
    }

    /// Its base URL, which stays the same for its life.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.http
    }

    /// Where it keeps its data, to lose or to change it behind its back.
    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().expect("it keeps its data")
    }

    /// Starts it, unless it runs, and waits until it answers.
    pub(crate) fn start(&self) {
        let mut state = self.lock();
        if state.running.is_some() {
            return;
        }
        // It gives up at its own start where a busy machine holds it up for some seconds.
        let running = (0..4).find_map(|_| self.try_start(&state.version));
        state.running = Some(running.unwrap_or_else(|| panic!("OpenFGA ended: {}", self.logged())));
    }

    /// None: it ended before it answered.
    fn try_start(&self, version: &str) -> Option<Running> {
        let mut command = self.command(version, "run");
        command
            .args(["--http-addr", &self.http.to_string()])
            .args(["--grpc-addr", &self.grpc.to_string()])
            .args(["--playground-enabled=false", "--metrics-enabled=false"])
            .args(["--datastore-max-open-conns=5", "--log-level=error"]);
        let mut server = command.spawn().unwrap();
        let mut watch = Command::new("/bin/sh")
            .args(["-c", WATCH, "openfga-watch", &server.id().to_string()])
            .arg(&self.log)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let is_serving = eventually("OpenFGA to answer", || {
            let has_ended = server.try_wait().unwrap().is_some();
            (has_ended || self.is_serving()).then_some(!has_ended)
        });
        if is_serving {
            return Some(Running { server, watch });
        }
        watch.kill().unwrap();
        watch.wait().unwrap();
        None
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&self) {
        if let Some(mut running) = self.lock().running.take() {
            running.server.kill().unwrap();
            running.server.wait().unwrap();
            // The pid is free again: the watch must not act on it.
            running.watch.kill().unwrap();
            running.watch.wait().unwrap();
        }
    }

    /// Freezes it: it takes connections and answers nothing.
    pub(crate) fn pause(&self) {
        let pid = self.signal(Signal::STOP);
        // The last of its threads has stopped when its parent is told.
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(stopped.is_some_and(|(_, status)| status.stopped()));
    }

    /// Lets it go on after [`OpenFga::pause`].
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it and starts another version over the same data.
    pub(crate) fn change_version(&self, version: &str) {
        self.kill();
        self.lock().version = version.into();
        self.migrate();
        self.start();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) -> Pid {
        let state = self.lock();
        let running = state.running.as_ref().expect("it runs");
        let pid = i32::try_from(running.server.id()).unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, signal).unwrap();
        pid
    }

    /// Brings its database to what its version wants.
    fn migrate(&self) {
        if self.database.is_some() {
            let version = self.lock().version.clone();
            let migrated = self.command(&version, "migrate").status().unwrap();
            assert!(migrated.success(), "no migration: {}", self.logged());
        }
    }

    fn command(&self, version: &str, what: &str) -> Command {
        let log = File::create(&self.log).unwrap();
        let mut command = Command::new(binary(version));
        // Nothing of OPENFGA_* or OTEL_* comes in, and no Ctrl-C.
        command.env_clear().env("HOME", env!("CARGO_TARGET_TMPDIR"));
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.arg(what);
        match &self.database {
            Some(database) => command
                .args(["--datastore-engine", "postgres"])
                .args(["--datastore-uri", &uri(&database.url())]),
            None => command.args(["--datastore-engine", "memory"]),
        };
        command
    }

    fn is_serving(&self) -> bool {
        let ask = || {
            let mut connection = TcpStream::connect(self.http)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            connection.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        };
        ask().is_ok_and(|answer| answer.contains("\"SERVING\""))
    }

    fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for OpenFga {
    fn drop(&mut self) {
        self.kill();
        // It is there for whoever looks into a failure while the test runs.
        let _ = std::fs::remove_file(&self.log);
    }
}

/// Where a version was set up.
fn binary(version: &str) -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/setup");
    let parts = Command::new(setup.join("where")).output().unwrap();
    let parts = PathBuf::from(String::from_utf8(parts.stdout).unwrap().trim());
    let binary = parts.join(format!("openfga-{version}/openfga"));
    assert!(
        binary.exists(),
        "OpenFGA {version} is not set up: run tests/setup/openfga"
    );
    binary
}

/// The URL of a database as OpenFGA's driver reads it: the socket's directory as a parameter.
fn uri(url: &str) -> String {
    let (user, rest) = url.split_once("://").unwrap().1.split_once('@').unwrap();
    let (place, name) = rest.split_once('/').unwrap();
    let (directory, port) = place.rsplit_once(':').unwrap();
    format!("postgres://{user}@/{name}?host={directory}&port={port}&sslmode=disable")
}

/// A free address below those that the kernel gives to connections, and given once: it is still free
/// when a killed server starts again.
pub(crate) fn free_address() -> SocketAddr {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    eventually("a free port", || {
        let mut random = [0; 2];
        getrandom::fill(&mut random).unwrap();
        let port = 10_000 + u16::from_ne_bytes(random) % 20_000;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let is_new = TcpListener::bind(address).is_ok() && GIVEN.lock().unwrap().insert(port);
        is_new.then_some(address)
    })
}

/// A relay before a server, which can hold its answers back or cut every connection.
pub(crate) struct Relay {
    address: SocketAddr,
    rules: Arc<Rules>,
    accepting: Option<JoinHandle<()>>,
}

struct Rules {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    delay: Duration,
    is_cut: bool,
    /// The next connection gets no answer.
    is_next_deaf: bool,
    is_over: bool,
    open: Vec<TcpStream>,
    /// Answers that are held back.
    held: usize,
}

impl Relay {
    /// A relay that changes nothing yet.
    pub(crate) fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let rules = Arc::new(Rules {
            now: Mutex::default(),
            changed: Condvar::new(),
        });
        let kept = Arc::clone(&rules);
        let accepting = std::thread::spawn(move || accept(&listener, target, &kept));
        Self {
            address,
            rules,
            accepting: Some(accepting),
        }
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Holds every answer back for so long.
    pub(crate) fn slow(&self, delay: Duration) {
        self.rules.change(|now| now.delay = delay);
    }

    /// Breaks every connection, and each that comes until [`Relay::heal`].
    pub(crate) fn cut(&self) {
        self.rules.change(|now| {
            now.is_cut = true;
            now.close();
        });
    }

    /// As [`Relay::heal`], but the next connection gets no answer.
    pub(crate) fn heal_after_one(&self) {
        self.rules.change(|now| {
            now.is_cut = false;
            now.is_next_deaf = true;
        });
    }

    /// Breaks the connections there are; new ones pass.
    pub(crate) fn cut_once(&self) {
        self.rules.change(Now::close);
    }

    /// Waits until an answer is held back.
    pub(crate) fn wait_for_answer(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut now = self.rules.lock();
        while now.held == 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "nothing was asked");
            now = self.rules.changed.wait_timeout(now, left).unwrap().0;
        }
    }

    /// Passes all again at once, what was held back too.
    pub(crate) fn heal(&self) {
        self.rules.change(|now| {
            now.is_cut = false;
            now.delay = Duration::ZERO;
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.rules.change(|now| {
            now.is_over = true;
            now.close();
        });
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().unwrap().join();
    }
}

impl Now {
    fn close(&mut self) {
        for connection in self.open.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Rules {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut Now)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until what came at this moment may pass.
    fn hold(&self, came: Instant) {
        let mut now = self.lock();
        now.held += 1;
        self.changed.notify_all();
        while !now.is_over {
            let left = (came + now.delay).saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            now = self.changed.wait_timeout(now, left).unwrap().0;
        }
        now.held -= 1;
    }
}

fn accept(listener: &TcpListener, target: SocketAddr, rules: &Arc<Rules>) {
    for client in listener.incoming() {
        let client = client.unwrap();
        let mut now = rules.lock();
        if now.is_over {
            return;
        }
        if !now.is_cut && std::mem::take(&mut now.is_next_deaf) {
            now.open.push(client);
            continue;
        }
        // A server that is gone is a connection that breaks.
        let Some(server) = (!now.is_cut)
            .then(|| TcpStream::connect(target).ok())
            .flatten()
        else {
            continue;
        };
        now.open.push(client.try_clone().unwrap());
        now.open.push(server.try_clone().unwrap());
        drop(now);
        let (asking, asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || copy(asking, asked, || {}));
        let rules = Arc::clone(rules);
        std::thread::spawn(move || copy(server, client, || rules.hold(Instant::now())));
    }
}

/// Passes bytes on until one side ends, and ends both.
fn copy(mut from: TcpStream, mut to: TcpStream, before_each: impl Fn()) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(amount @ 1..) = from.read(&mut buffer) {
        before_each();
        if to.write_all(&buffer[..amount]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
