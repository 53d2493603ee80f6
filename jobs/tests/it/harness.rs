//! A Postgres for the tests: the one `JOBS_TEST_DATABASE_URL` names, else a private cluster of this process on a unix
//! socket. Each test has a schema of its own.

use jobs::Database;
use postgres::{Client, Config, NoTls};
use r2d2_postgres::PostgresConnectionManager;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

static SERVER: OnceLock<Config> = OnceLock::new();
static KEEPER: OnceLock<Child> = OnceLock::new();
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Schema {
    pub(crate) config: Config,
    pub(crate) name: String,
}

/// A migrated schema.
pub(crate) fn schema() -> Schema {
    let schema = empty_schema();
    jobs::migrate(&mut schema.client()).unwrap();
    schema
}

pub(crate) fn empty_schema() -> Schema {
    let server = SERVER.get_or_init(server);
    let name = format!(
        "jobs_{}_{}",
        std::process::id(),
        SCHEMAS.fetch_add(1, Ordering::Relaxed)
    );
    let mut client = server.connect(NoTls).unwrap();
    client
        .batch_execute(&format!("CREATE SCHEMA {name}"))
        .unwrap();
    let mut config = server.clone();
    config
        .options(&format!("-c search_path={name}"))
        .application_name(&name);
    Schema { config, name }
}

impl Schema {
    pub(crate) fn client(&self) -> Client {
        self.config.connect(NoTls).unwrap()
    }

    pub(crate) fn database(&self, connections: u32) -> Database {
        let manager = PostgresConnectionManager::new(self.config.clone(), NoTls);
        let pool = r2d2::Pool::builder()
            .max_size(connections)
            .min_idle(Some(1))
            .connection_timeout(Duration::from_secs(10))
            .build(manager)
            .unwrap();
        Database::new(pool, |client| client)
    }

    /// Ends every connection of this schema's tests but the one given.
    pub(crate) fn terminate_others(&self, client: &mut Client) {
        client
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()",
                &[&self.name],
            )
            .unwrap();
    }

    pub(crate) fn count(&self, client: &mut Client, sql: &str) -> i64 {
        client.query_one(sql, &[]).unwrap().get(0)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // Only room: the private cluster goes with the process, a given one should not fill up.
        if let Some(Ok(mut client)) = SERVER.get().map(|server| server.connect(NoTls)) {
            let _ = client.batch_execute(&format!("DROP SCHEMA {} CASCADE", self.name));
        }
    }
}

/// Waits until the condition holds; a test that waits longer than a minute has failed.
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    let limit = Duration::from_secs(60);
    assert!(holds_within(limit, holds), "waited {limit:?} until {what}");
}

/// Whether the condition comes to hold before the limit: for what a test can bring about again.
pub(crate) fn holds_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// What a handler does that takes a moment, so that handlers overlap. Nothing is expected of the time.
pub(crate) fn take_a_moment() {
    std::thread::sleep(Duration::from_millis(1));
}

/// The statements that a schema's connections carry out from now on, as their server logs them. The role that logs in
/// has to be a superuser; `role` is the one that the statements run as.
pub(crate) fn hear_statements(schema: &mut Schema, role: Option<&str>) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let role = role
        .map(|role| format!(" -c role={role}"))
        .unwrap_or_default();
    let options = format!(
        "-c search_path={} -c client_min_messages=log -c log_statement=all{role}",
        schema.name
    );
    schema
        .config
        .options(&options)
        .notice_callback(move |notice| hears.lock().unwrap().push(notice.message().to_owned()));
    heard
}

fn server() -> Config {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the test binary reads its settings"
    )]
    let given = std::env::var("JOBS_TEST_DATABASE_URL");
    match given {
        Ok(url) => url.parse().unwrap(),
        Err(_) => private_cluster(),
    }
}

/// Starts a cluster that stops by itself when this process is gone: a shell holds our pipe and stops it at its end.
fn private_cluster() -> Config {
    let bin = binaries();
    let home = std::env::temp_dir().join(format!("jobs-it-{}", std::process::id()));
    std::fs::create_dir(&home).unwrap();
    let as_root = String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout)
        .unwrap()
        .trim()
        == "0";
    if as_root {
        assert!(
            Command::new("chown")
                .arg("postgres")
                .arg(&home)
                .status()
                .unwrap()
                .success()
        );
    }
    let script = r#"
        set -e
        "$1/initdb" -D "$2/data" -A trust -U postgres --no-sync -E UTF8 >"$2/initdb.log"
        "$1/pg_ctl" -D "$2/data" -w -l "$2/server.log" -o "-F -c listen_addresses='' \
            -c unix_socket_directories='$2' -c max_connections=200 -c shared_buffers=128MB" start >/dev/null
        echo ready
        cat >/dev/null
        "$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null
        rm -rf "$2"
    "#;
    let mut command = if as_root {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    let mut keeper = command
        .args(["-c", script, "sh"])
        .args([&bin, &home])
        .current_dir(&home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = keeper.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    assert_eq!(
        line.trim(),
        "ready",
        "the private cluster did not start: see {}",
        home.display()
    );
    // Holds its pipe open, and never writes: its end is the end of this process.
    KEEPER.set(keeper).unwrap();
    let mut config = Config::new();
    config.host_path(&home).user("postgres").dbname("postgres");
    config
}

fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort_by_key(|bin| {
        bin.parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str()?.parse::<u32>().ok())
    });
    let in_path = || {
        let which = Command::new("sh")
            .args(["-c", "dirname \"$(command -v initdb)\""])
            .output()
            .unwrap();
        let bin = PathBuf::from(String::from_utf8(which.stdout).unwrap().trim());
        bin.join("initdb").exists().then_some(bin)
    };
    found.pop().or_else(in_path).expect("these tests need PostgreSQL. Install it: apt-get install -y postgresql  (or: dnf install -y postgresql-server)")
}
