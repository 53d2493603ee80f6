//! `setup`, against a private PostgreSQL and in a directory of the test's own.

mod lost;
mod openfga;

use crate::harness::{Said, command, directory, eventually, run};
use agent_runtime::dev::cluster::{Cluster, Options};
use postgres::{Client, NoTls};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

const ENV_FILE: &str = "etc/agent-runtime/agent-runtime.env";
const CREDENTIALS: &str = "etc/agent-runtime/credentials";
/// The keys that setup makes.
const KEYS: [&str; 4] = [
    "SVC_SEED_TOKEN",
    "SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH",
    "SVC_SECRETS_AAD_KEY_PATH",
    "SVC_SECRETS_LOCAL_KEY_PATH",
];

/// The cluster of these tests: roles are the cluster's, and no other test shall meet them. It ends with
/// the process.
fn cluster() -> &'static Mutex<Cluster> {
    static CLUSTER: OnceLock<Mutex<Cluster>> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let started = Cluster::start(Options {
            data_dir: Path::new(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("setup-{}", std::process::id())),
            durable: false,
            bin_dir: std::env::var_os("AGENT_RUNTIME_TEST_POSTGRES_BIN").map(Into::into),
            search_path: std::env::var_os("PATH"),
            runtime_dir: None,
            log: slog::Logger::root(slog::Discard, slog::o!()),
        });
        let cluster = started.unwrap_or_else(|failure| panic!("{failure}"));
        let name = superuser();
        Client::connect(&cluster.url(), NoTls)
            .unwrap()
            .batch_execute(&format!("create role \"{name}\" superuser login"))
            .unwrap();
        Mutex::new(cluster)
    })
}

fn admin() -> Client {
    let url = cluster().lock().unwrap().url();
    Client::connect(&url, NoTls).unwrap()
}

/// The directory of the socket.
fn socket() -> String {
    let url = cluster().lock().unwrap().url();
    let place = url.split_once('@').unwrap().1;
    let encoded = place.rsplit_once(':').unwrap().0;
    percent_encoding::percent_decode_str(encoded)
        .decode_utf8()
        .unwrap()
        .into_owned()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Users of this host but root.
fn users() -> Vec<String> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let accounts = accounts
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let others = accounts.filter(|fields| fields.len() > 3 && fields[2] != "0");
    others.map(|fields| fields[0].to_owned()).collect()
}

/// The user that runs the private PostgreSQL, whom its socket lets in.
fn superuser() -> String {
    match (is_root(), users().iter().any(|user| user == "postgres")) {
        (false, _) => "setup-superuser".to_owned(),
        (true, true) => "postgres".to_owned(),
        (true, false) => "nobody".to_owned(),
    }
}

/// One host's files, with a service user and a database of its own.
struct Host {
    dir: tempfile::TempDir,
    user: String,
    database: String,
}

impl Host {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut users = users().into_iter().filter(|user| *user != superuser());
        let user = match is_root() {
            true => users.nth(next).expect("this host has a dozen users"),
            false => format!("service-{next}"),
        };
        Self {
            dir: directory(),
            user,
            database: format!("setup_{next}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn setup(&self, more: &[&str]) -> Said {
        let (root, socket, superuser) = (self.dir.path(), socket(), superuser());
        let arguments = [
            "setup",
            "--json",
            "--root",
            root.to_str().unwrap(),
            "--database-superuser",
            &superuser,
            "--user",
            &self.user,
            "--database",
            &self.database,
        ];
        let place = match more.contains(&"--socket") {
            true => Vec::new(),
            false => vec!["--socket", &socket],
        };
        let said = run(&[&arguments, &place[..], more].concat(), &[]);
        self.shows_no_secret(&said);
        said
    }

    /// What was made of a thing, by the end of its name.
    fn state_of(said: &Said, what: &str) -> Option<String> {
        let json: Value = said.json();
        let mut steps = json["steps"].as_array().unwrap().iter();
        let step = steps.find(|step| step["what"].as_str().unwrap().ends_with(what));
        step.map(|step| step["state"].as_str().unwrap().to_owned())
    }

    /// Every file and directory with owner, mode and bytes.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, u32, u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.dir.path().to_owned()];
        while let Some(path) = left.pop() {
            let metadata = fs::metadata(&path).unwrap();
            let bytes = if metadata.is_dir() {
                left.extend(
                    fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            let facts = (metadata.uid(), metadata.gid(), metadata.mode(), bytes);
            found.insert(path, facts);
        }
        found
    }

    fn shows_no_secret(&self, said: &Said) {
        let credentials = fs::read_dir(self.path(CREDENTIALS));
        for path in credentials
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
        {
            let bytes = fs::read(&path).unwrap();
            let Ok(text) = std::str::from_utf8(&bytes) else {
                continue;
            };
            for line in text
                .lines()
                .filter(|line| line.len() > 15 && !line.starts_with("-----"))
            {
                assert!(
                    !said.out.contains(line) && !said.err.contains(line),
                    "{path:?}"
                );
            }
        }
        assert!(!said.out.contains("svc_bt_") && !said.err.contains("svc_bt_"));
    }

    /// Owner and encoding of a database.
    fn database(name: &str) -> Option<(String, String)> {
        let row = admin().query_opt(
            "select pg_get_userbyid(datdba)::text, pg_encoding_to_char(encoding)::text
             from pg_database where datname = $1",
            &[&name],
        );
        row.unwrap().map(|row| (row.get(0), row.get(1)))
    }
}

/// Copies of credentials for doctors that look as the service.
fn copies() -> BTreeSet<String> {
    let all = fs::read_dir("/run").unwrap().flatten();
    let names = all.map(|entry| entry.file_name().into_string().unwrap_or_default());
    names
        .filter(|name| name.starts_with("agent-runtime-0"))
        .collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn has_role(name: &str) -> bool {
    let found = admin().query_opt("select from pg_roles where rolname = $1", &[&name]);
    found.unwrap().is_some()
}

#[test]
fn setup_makes_all_that_is_missing_and_keeps_it_the_second_time() {
    let host = Host::new();
    let said = host.setup(&[]).expect(0);
    let owner = (host.user.clone(), "UTF8".to_owned());
    assert_eq!(Host::database(&host.database), Some(owner));
    let settings = host.read(ENV_FILE);
    let value = |name: &str| {
        let line = settings
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("no {name}: {settings}"))
            .to_owned()
    };
    assert!(value("SVC_DATABASE_URL").ends_with(&format!("/{}", host.database)));
    assert!(uuid::Uuid::parse_str(&value("SVC_TENANT_ID")).is_ok());
    assert!(uuid::Uuid::parse_str(&value("SVC_SEED_USER_ID")).is_ok());
    assert_eq!(value("SVC_SECRETS_BACKEND"), "postgres");
    assert!(
        !settings.contains("\nSVC_AUTHZ_API_URL="),
        "no companion package"
    );
    // A value stands with its explanation, and the rest of the sample is there.
    assert!(settings.contains(&format!(
        "#SVC_TENANT_ID=\nSVC_TENANT_ID={}\n",
        value("SVC_TENANT_ID")
    )));
    assert!(settings.contains("#SVC_HTTP_PORT=4000"));
    assert_eq!(mode(&host.path(ENV_FILE)), 0o640);
    assert_eq!(mode(&host.path(CREDENTIALS)), 0o700);
    assert_eq!(mode(&host.path("var/lib/agent-runtime")), 0o700);
    assert_eq!(mode(&host.path("var/lib")) & 0o077, 0o055);
    for key in KEYS {
        let path = host.path(CREDENTIALS).join(key);
        assert_eq!(mode(&path), 0o600, "{key}");
        assert_eq!(Host::state_of(&said, key).as_deref(), Some("made"), "{key}");
    }
    if is_root() {
        let owner = |name: &str| fs::metadata(host.path(name)).unwrap();
        assert_eq!(owner(ENV_FILE).uid(), 0);
        assert_ne!(owner(ENV_FILE).gid(), 0);
        assert_ne!(owner("var/lib/agent-runtime").uid(), 0);
        assert_eq!(owner(CREDENTIALS).uid(), 0);
    }
    // The doctor asks PostgreSQL where its data is.
    let rights = format!("rights of pg_read_all_settings for {}", host.user);
    assert_eq!(Host::state_of(&said, &rights).as_deref(), Some("made"));
    let row = admin().query_one(
        "select pg_has_role($1::text::name, 'pg_read_all_settings', 'member')",
        &[&host.user],
    );
    assert!(row.unwrap().get::<_, bool>(0));
    let next = said.json()["next"].to_string();
    assert!(
        next.contains("--license-file") && next.contains("systemctl enable --now"),
        "{next}"
    );
    assert!(next.contains("credentials/SVC_SEED_TOKEN"), "{next}");

    let before = host.tree();
    let again = host.setup(&[]).expect(0);
    assert_eq!(host.tree(), before);
    let json: Value = again.json();
    for step in json["steps"].as_array().unwrap() {
        assert_eq!(step["state"], "kept", "{step}");
    }
}

#[test]
fn a_doctor_that_looks_as_the_service_finds_all_well_but_the_license() {
    // The private PostgreSQL's socket lets in this user alone.
    let host = Host {
        user: superuser(),
        ..Host::new()
    };
    host.setup(&[]).expect(0);
    let state = host.path("var/lib/agent-runtime");
    let settings = host.read(ENV_FILE);
    let settings = format!("{settings}SVC_STATE_DIR={}\n", state.display());
    fs::write(host.path(ENV_FILE), settings).unwrap();
    let doctor = || {
        run(
            &[
                "doctor",
                "--json",
                "--env-file",
                host.path(ENV_FILE).to_str().unwrap(),
                "--credentials",
                host.path(CREDENTIALS).to_str().unwrap(),
                "--user",
                &host.user,
            ],
            &[],
        )
    };
    let faults = |said: &Said| -> Vec<String> {
        let json: Value = said.json();
        let checks = json["checks"].as_array().unwrap().iter();
        let faults = checks.filter(|finding| finding["level"] == "fault");
        faults
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect()
    };
    let before = copies();
    let said = doctor().expect(1);
    host.shows_no_secret(&said);
    assert_eq!(faults(&said), ["license"], "{}", said.out);
    let opened = said.out.contains("sealed and opened again");
    let of_disk = |finding: &&Value| finding["code"] == "disk";
    let json: Value = said.json();
    let disk = json["checks"].as_array().unwrap().iter().find(of_disk);
    assert_ne!(
        disk.unwrap()["level"],
        "skipped",
        "the service sees its directory"
    );
    assert!(
        opened && said.out.contains("The next start of a server applies"),
        "{}",
        said.out
    );
    // Those of other doctors on this host come and go.
    let mut left = &copies() - &before;
    eventually("no copy of credentials to stay", || {
        left = &left & &copies();
        left.is_empty().then_some(())
    });

    let key = host.path(CREDENTIALS).join("SVC_SECRETS_AAD_KEY_PATH");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(host.path(CREDENTIALS).join("SVC_SECRETS_LOCAL_KEY_PATH")).unwrap();
    let said = doctor().expect(1);
    assert_eq!(
        faults(&said),
        ["settings", "files", "license"],
        "{}",
        said.out
    );
}

#[test]
fn a_dry_run_says_all_and_changes_nothing() {
    let host = Host::new();
    host.put(ENV_FILE, "# mine\nSVC_HTTP_PORT=4100\n", 0o666);
    let before = host.tree();
    let said = host.setup(&["--dry-run"]).expect(0);
    assert_eq!(host.tree(), before);
    assert_eq!(Host::database(&host.database), None);
    assert!(!has_role(&host.user));
    assert_eq!(said.json()["dryRun"], true);
    assert_eq!(
        Host::state_of(&said, &host.database).as_deref(),
        Some("made")
    );
    assert_eq!(Host::state_of(&said, KEYS[0]).as_deref(), Some("made"));
    assert_eq!(Host::state_of(&said, ENV_FILE).as_deref(), Some("changed"));
}

#[test]
fn what_is_half_done_is_finished_and_what_the_operator_wrote_stays() {
    let host = Host::new();
    admin()
        .batch_execute(&format!("create role \"{}\" nologin", host.user))
        .unwrap();
    let tenant_id = "0197f3c2-5d0e-7cc3-b7a5-0d6f2b1f9e11";
    let mine = format!(
        "# mine\nSVC_HTTP_PORT=4100\n\nSVC_TENANT_ID={tenant_id}\nSVC_SEED_TOKEN=0123456789abcdef0123\n"
    );
    host.put(ENV_FILE, &mine, 0o666);
    let key = format!("{CREDENTIALS}/SVC_SECRETS_AAD_KEY_PATH");
    host.put(&key, "01234567890123456789012345678901", 0o644);
    // What a setup left that was killed while it wrote.
    let half = format!("{CREDENTIALS}/.SVC_SECRETS_LOCAL_KEY_PATH.999999999");
    host.put(&half, "half", 0o600);
    let said = host.setup(&[]).expect(0);
    let settings = host.read(ENV_FILE);
    assert!(settings.starts_with(&mine), "{settings}");
    assert_eq!(settings.matches("SVC_TENANT_ID").count(), 1);
    assert_eq!(mode(&host.path(ENV_FILE)), 0o640);
    assert_eq!(host.read(&key), "01234567890123456789012345678901");
    assert_eq!(mode(&host.path(&key)), 0o600);
    assert!(!host.path(&half).exists());
    for (what, state) in [
        (format!("role {}", host.user), "changed"),
        (format!("database {}", host.database), "made"),
        ("SVC_SECRETS_AAD_KEY_PATH".to_owned(), "changed"),
        ("SVC_SECRETS_LOCAL_KEY_PATH".to_owned(), "made"),
        ("SVC_SEED_TOKEN".to_owned(), "kept"),
        ("SVC_TENANT_ID".to_owned(), "kept"),
        ("SVC_SEED_USER_ID".to_owned(), "made"),
    ] {
        assert_eq!(
            Host::state_of(&said, &what).as_deref(),
            Some(state),
            "{what}"
        );
    }
    assert!(!host.path(CREDENTIALS).join("SVC_SEED_TOKEN").exists());
    let before = host.tree();
    host.setup(&[]).expect(0);
    assert_eq!(host.tree(), before);
}

#[test]
fn a_database_of_the_operator_s_stays() {
    let host = Host::new();
    let mine =
        "SVC_DATABASE_URL=postgres://me:hunter2@db.example.com/runs\nSVC_SECRETS_BACKEND=none\n";
    host.put(ENV_FILE, mine, 0o640);
    let said = host.setup(&["--socket", "/nonexistent"]).expect(0);
    assert!(host.read(ENV_FILE).starts_with(mine));
    assert!(!said.out.contains("hunter2"));
    assert!(
        said.out
            .contains("setup could not ask the database of SVC_DATABASE_URL"),
        "{}",
        said.out
    );
    assert_eq!(
        Host::state_of(&said, "role and database").as_deref(),
        Some("kept")
    );
    assert_eq!(
        Host::state_of(&said, "SVC_DATABASE_URL").as_deref(),
        Some("kept")
    );
    assert!(!has_role(&host.user));
    // No keys for a backend that is off.
    assert!(
        !host
            .path(CREDENTIALS)
            .join("SVC_SECRETS_AAD_KEY_PATH")
            .exists()
    );
}

#[test]
fn names_are_quoted() {
    let host = Host {
        database: "o'dd \"name\"; drop table x; --".to_owned(),
        ..Host::new()
    };
    host.setup(&[]).expect(0);
    let owner = (host.user.clone(), "UTF8".to_owned());
    assert_eq!(Host::database(&host.database), Some(owner));
    let checked = run(
        &[
            "doctor",
            "--json",
            "--env-file",
            host.path(ENV_FILE).to_str().unwrap(),
            "--user",
            "no-such-user-here",
        ],
        &[],
    );
    // The URL that was written leads there, whatever the name.
    assert!(
        checked.out.contains("drop table x; -- answers"),
        "{}",
        checked.out
    );
}

#[test]
fn what_stands_in_the_way_is_said_and_nothing_is_made() {
    let host = Host::new();
    let refused = |host: &Host, more: &[&str], word: &str| {
        let said = host.setup(more).expect(1);
        assert!(
            said.err.contains(word) && said.out.is_empty(),
            "{}{}",
            said.out,
            said.err
        );
        assert!(!host.path("etc").exists());
        assert!(!has_role(&host.user));
    };
    refused(&host, &["--socket", "/nonexistent"], "cannot be used as");
    let (name, mut sql) = (&host.database, admin());
    sql.batch_execute(&format!("create database {name}"))
        .unwrap();
    refused(&host, &[], "belongs to the role agent_runtime");
    sql.batch_execute(&format!("drop database {name}")).unwrap();
    let latin = Host::new();
    sql.batch_execute(&format!("create role \"{}\" login", latin.user))
        .unwrap();
    sql.batch_execute(&format!(
        "create database {} owner \"{}\" encoding 'LATIN1' locale 'C' template template0",
        latin.database, latin.user
    ))
    .unwrap();
    let said = latin.setup(&[]).expect(1);
    assert!(said.err.contains("LATIN1 and not UTF8"), "{}", said.err);
    assert!(!latin.path("etc").exists());
    if is_root() {
        let nobody = Host {
            user: "no-such-user-here".to_owned(),
            ..Host::new()
        };
        refused(&nobody, &[], "There is no user no-such-user-here");
    }
    let file = host.path("license.key");
    fs::write(&file, "svc_lk_e30.e30\n").unwrap();
    let file = file.to_str().unwrap();
    refused(
        &host,
        &["--license-file", file],
        "license.key is not a license key",
    );
}

#[test]
fn who_is_not_root_is_told_so() {
    let mut asked = match is_root() {
        false => command(&["setup"], &[]),
        true => {
            // Where anyone can reach it.
            let dir = directory();
            let copy = dir.keep().join("agent-runtime");
            fs::copy(env!("CARGO_BIN_EXE_agent-runtime"), &copy).unwrap();
            let mut asked = std::process::Command::new(copy);
            asked.arg("setup").env_clear().uid(65_534).gid(65_534);
            asked
        }
    };
    let program = asked.get_program().to_owned();
    let output = asked.output().unwrap();
    if is_root() {
        fs::remove_dir_all(Path::new(&program).parent().unwrap()).unwrap();
    }
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("run it as root")
    );
}
