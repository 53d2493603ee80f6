//! The schema's steps, and the connection that they are made on, against a real Postgres.

use crate::database_faults::cluster;
use crate::harness::openfga::free_address;
use crate::harness::{Database, eventually, log};
use agent_runtime::error::{Code, Error};
use agent_runtime::secret::Secret;
use agent_runtime::store::connect::Manager;
use agent_runtime::store::{Options, migrations};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn manager(url: &str) -> Manager {
    let options = Options {
        url: Secret::new(url),
        pool_size: 1,
        checkout_timeout: Duration::from_secs(5),
        outage: Default::default(),
        statement_timeout: Duration::from_secs(30),
    };
    Manager::new(&options).unwrap()
}

pub(crate) fn migrate(url: &str) -> Result<Vec<&'static str>, Error> {
    migrations::migrate(&manager(url), &log())
}

/// The sentence of a refusal.
#[track_caller]
fn refused(url: &str, code: Code) -> String {
    let error = migrate(url).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    error.message().to_owned()
}

/// Every step, in order.
fn names() -> Vec<&'static str> {
    let all = migrations::all();
    let names = all.iter().map(|migration| migration.name);
    names.chain([migrations::FUNCTIONS]).collect()
}

/// The URL for another role.
fn as_role(url: &str, role: &str) -> String {
    let (_, rest) = url.split_once('@').unwrap();
    format!("postgresql://{role}@{rest}")
}

#[test]
fn what_is_applied_once_is_not_applied_again() {
    let database = Database::empty();
    assert_eq!(migrate(&database.url()).unwrap(), names());
    assert!(migrate(&database.url()).unwrap().is_empty());
}

#[test]
fn a_database_with_tables_of_unknown_making_is_refused() {
    let database = Database::empty();
    migrate(&database.url()).unwrap();
    database
        .client()
        .batch_execute("drop table agent_runtime_migrations")
        .unwrap();
    let said = refused(&database.url(), Code::Conflict);
    assert!(said.contains("Use an empty database"), "{said}");
}

#[test]
fn a_database_of_a_build_before_the_baseline_is_refused() {
    let database = Database::empty();
    // As such a build left it: what it recorded, and its tables.
    let older = "create table agent_runtime_migrations (name text primary key, digest bytea not null,
           applied_at timestamptz not null default now());
         create table agent_runtime_requirements (only_row boolean primary key default true, oldest_binary text not null);
         insert into agent_runtime_migrations (name, digest) values ('0001_tenants', '\\x00'), ('0002_agents', '\\x00');
         insert into agent_runtime_requirements (oldest_binary) values ('0.2.0');
         create table tenants (tenant_id uuid primary key);
         create sequence run_event_position";
    database.client().batch_execute(older).unwrap();
    let said = refused(&database.url(), Code::Conflict);
    assert_eq!(
        said,
        "The database was made by a build from before the first release, whose schema no release upgrades. Use an empty database; in development, `agent-runtime dev` makes one if its data directory is removed."
    );
    let tables = "select count(*) from pg_class where relname = 'users'";
    let made: i64 = database.client().query_one(tables, &[]).unwrap().get(0);
    assert_eq!(made, 0, "nothing was changed");
}

/// The names of the functions in the database, one for each definition.
fn functions(client: &mut postgres::Client) -> Vec<String> {
    let rows = client.query(
        "select proname::text from pg_proc where pronamespace = 'public'::regnamespace order by 1",
        &[],
    );
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

/// As if a program with another set had come before.
fn forget_the_set(client: &mut postgres::Client, version: &str) {
    client
        .execute(
            "update agent_runtime_function_sets set digest = '\\x00', version = $1",
            &[&version],
        )
        .unwrap();
}

#[test]
fn a_set_of_functions_that_differs_is_replaced() {
    let database = Database::migrated();
    let mut client = database.client();
    let ours = functions(&mut client);
    let oid = "select 'agent_tools'::regproc::oid";
    let before: u32 = client.query_one(oid, &[]).unwrap().get(0);
    // One has another text, one another signature, and one is not in the set any more.
    client
        .batch_execute(
            "create or replace function agent_tools(of_tenant_id uuid, of_agent_id uuid, of_version text)
               returns json language sql as $$ select '{}'::json $$;
             drop function attach_run_partitions(date);
             create function attach_run_partitions(today text) returns void language sql as '';
             create function went(bigint) returns void language sql as '';
             update agent_runtime_functions set definition = 'create function agent_tools(of_tenant_id uuid, of_agent_id uuid, of_version text) returns json
               language sql' where name = 'agent_tools';
             update agent_runtime_functions set definition = 'create function attach_run_partitions(today text) returns void
               language sql' where name = 'attach_run_partitions';
             insert into agent_runtime_functions (name, definition) values ('went', 'x')",
        )
        .unwrap();
    forget_the_set(&mut client, env!("CARGO_PKG_VERSION"));
    assert_eq!(migrate(&database.url()).unwrap(), [migrations::FUNCTIONS]);
    assert_eq!(functions(&mut client), ours);
    client
        .batch_execute("select attach_run_partitions('2026-01-01'::date)")
        .unwrap();
    let after: u32 = client.query_one(oid, &[]).unwrap().get(0);
    assert_eq!(after, before, "whoever calls it finds it at every moment");
    let row = client.query_one("select prolang = (select oid from pg_language where lanname = 'plpgsql') from pg_proc where proname = 'agent_tools'", &[]);
    assert!(row.unwrap().get::<_, bool>(0), "it is this program's");
    assert!(migrate(&database.url()).unwrap().is_empty());
}

#[test]
fn an_older_program_leaves_the_functions_of_a_newer_one() {
    let database = Database::migrated();
    let mut client = database.client();
    // A program of the same version that came after.
    client
        .batch_execute(
            "insert into agent_runtime_function_sets (digest, version, applied_at)
             select '\\x01', version, now() + interval '1 second' from agent_runtime_function_sets",
        )
        .unwrap();
    assert!(migrate(&database.url()).unwrap().is_empty());
    // A later version that this program never came before.
    client
        .batch_execute("delete from agent_runtime_function_sets where digest = '\\x01'")
        .unwrap();
    forget_the_set(&mut client, "99.0.0");
    assert!(migrate(&database.url()).unwrap().is_empty());
}

#[test]
fn tools_of_before_are_called_in_dry_runs_as_they_were() {
    let database = Database::migrated();
    let mut client = database.client();
    let id = "00000000-0000-7000-8000-000000000001";
    let tool = |name: &str, approval: &str| {
        format!(
            "insert into tools (tenant_id, tool_id, project_id, name, description, arguments_schema, url, timeout_ms, idempotent,
               approval, created_by, created_at)
             values ('{id}', gen_random_uuid(), '{id}', '{name}', '', '{{}}', 'http://127.0.0.1:9/', 1, false, {approval}, '{id}', now());"
        )
    };
    client
        .batch_execute(&format!(
            "alter table tools drop column dry_run;
             delete from agent_runtime_migrations where name = '0028_tool_dry_runs';
             insert into tenants values ('{id}', 't', now());
             insert into users (tenant_id, user_id, display_name, created_at) values ('{id}', '{id}', 'u', now());
             insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
               values ('{id}', '{id}', 'p', '{id}', now(), now());
             {} {}",
            tool("plain", "null"),
            tool("asks", "'{}'"),
        ))
        .unwrap();
    assert_eq!(migrate(&database.url()).unwrap(), ["0028_tool_dry_runs"]);
    // A program of before that still runs says nothing.
    client.batch_execute(&tool("later", "null")).unwrap();
    let rows = client.query("select name, dry_run from tools order by name", &[]);
    let found: Vec<(String, String)> = rows
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let expected = [
        ("asks", "simulate"),
        ("later", "simulate"),
        ("plain", "call"),
    ];
    assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

/// What named a secret before uses there were may go on sending it where it sent it, and nowhere else.
#[test]
fn tools_of_before_have_the_uses_of_their_secrets() {
    let database = Database::migrated();
    let mut client = database.client();
    let id = "00000000-0000-7000-8000-000000000001";
    let other = "00000000-0000-7000-8000-000000000002";
    let tool = |name: &str, project: &str, url: &str, headers: &str, signing: &str| {
        format!(
            "insert into tools (tenant_id, tool_id, project_id, name, description, arguments_schema, url, timeout_ms, idempotent,
               secret_headers, signing_secret, created_by, created_at)
             values ('{id}', gen_random_uuid(), '{project}', '{name}', '', '{{}}', '{url}', 1, false, '{headers}', {signing},
               '{id}', '2026-03-01T00:00:00Z');"
        )
    };
    let both = r#"[{"name": "A", "secret": "KEY"}, {"name": "B", "secret": "OTHER"}]"#;
    let key = r#"[{"name": "A", "secret": "KEY"}]"#;
    let tools = [
        tool(
            "a",
            id,
            "https://API.example.com:443/x?y=http://z:80",
            both,
            "'SIGNING'",
        ),
        tool("b", id, "HTTPS://api.example.com", key, "null"),
        tool("c", id, "http://api.example.com:443/", key, "null"),
        tool("d", other, "http://api.example.com:80#", key, "null"),
        tool("e", other, "http://[::1]:8080?a", "[]", "'KEY'"),
        tool("f", id, "https://plain.example", "[]", "null"),
    ];
    client
        .batch_execute(&format!(
            "drop table secret_uses;
             delete from agent_runtime_migrations where name = '0044_secret_uses';
             insert into tenants values ('{id}', 't', now());
             insert into users (tenant_id, user_id, display_name, created_at) values ('{id}', '{id}', 'u', now());
             insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
               values ('{id}', '{id}', 'p', '{id}', now(), now()), ('{id}', '{other}', 'q', '{id}', now(), now());
             {}",
            tools.concat(),
        ))
        .unwrap();
    assert_eq!(migrate(&database.url()).unwrap(), ["0044_secret_uses"]);
    let rows = client.query(
        "select right(project_id::text, 1) || ' ' || name || ' ' || target from secret_uses
         where created_by = tenant_id and created_at = '2026-03-01T00:00:00Z' and secret_use_id::text like '019ca6%-7%'
         order by 1",
        &[],
    );
    let found: Vec<String> = rows.unwrap().iter().map(|row| row.get(0)).collect();
    let expected = [
        "1 KEY origin:http://api.example.com:443",
        "1 KEY origin:https://api.example.com",
        "1 OTHER origin:https://api.example.com",
        "1 SIGNING origin:https://api.example.com",
        "2 KEY origin:http://[::1]:8080",
        "2 KEY origin:http://api.example.com",
    ];
    assert_eq!(found, expected);
}

#[test]
fn programs_that_migrate_at_once_apply_each_step_once() {
    let database = Database::empty();
    let mut applied: Vec<&str> = std::thread::scope(|scope| {
        let both = [0, 1].map(|_| scope.spawn(|| migrate(&database.url()).unwrap()));
        both.into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    let mut all = names();
    applied.sort_unstable();
    all.sort_unstable();
    assert_eq!(applied, all);
}

#[test]
fn a_program_older_than_the_schema_or_of_another_text_refuses() {
    let database = Database::migrated();
    let mut client = database.client();
    client
        .batch_execute("update agent_runtime_requirements set oldest_binary = '99.0.0'")
        .unwrap();
    let text = refused(&database.url(), Code::Conflict);
    assert!(text.contains("Install 99.0.0 or later."), "{text}");
    client
        .batch_execute(
            "update agent_runtime_requirements set oldest_binary = '0.0.1';
             update agent_runtime_migrations set digest = '\\x00' where name = '0001_baseline'",
        )
        .unwrap();
    let text = refused(&database.url(), Code::Conflict);
    assert!(text.contains("Migration 0001_baseline"), "{text}");
}

#[test]
fn rights_are_needed_only_where_something_is_pending() {
    let empty = Database::empty();
    let mut client = empty.client();
    // Roles belong to the whole cluster.
    client
        .batch_execute(
            "create role without_rights login; revoke create on schema public from public",
        )
        .unwrap();
    let text = refused(&as_role(&empty.url(), "without_rights"), Code::Conflict);
    assert!(
        text.contains("grant create on schema public to without_rights;"),
        "{text}"
    );
    let migrated = Database::migrated();
    let mut client = migrated.client();
    client
        .batch_execute(
            "revoke create on schema public from public;
             grant select on agent_runtime_migrations, agent_runtime_requirements, agent_runtime_function_sets to without_rights",
        )
        .unwrap();
    let applied = migrate(&as_role(&migrated.url(), "without_rights"));
    assert!(applied.unwrap().is_empty());
}

#[test]
fn a_read_only_database_is_waited_for_and_another_encoding_is_not() {
    let database = Database::migrated();
    let url = database.url();
    let (server, name) = url.rsplit_once('/').unwrap();
    let mut client = database.client();
    client
        .batch_execute(&format!(
            "alter database {name} set default_transaction_read_only = on"
        ))
        .unwrap();
    let text = refused(&url, Code::DatabaseUnavailable);
    assert!(text.contains("read-only"), "{text}");
    let other = Database::empty();
    let ascii = format!("{name}_ascii");
    other
        .client()
        .batch_execute(&format!(
            "create database {ascii} template template0 encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'"
        ))
        .unwrap();
    let text = refused(&format!("{server}/{ascii}"), Code::Conflict);
    assert!(text.contains("encoding is SQL_ASCII"), "{text}");
}

/// A Postgres that speaks TLS over TCP.
struct Secured {
    server: Child,
    port: u16,
    roots: PathBuf,
    other_roots: PathBuf,
    _place: tempfile::TempDir,
}

fn openssl(place: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(place)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Two authorities, and a certificate by one of them for `localhost`.
fn certificates(place: &Path) {
    let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    for name in ["roots", "other"] {
        let arguments =
            format!("req -x509 {new} -keyout {name}.key -out {name}.pem -days 2 -subj /CN={name}");
        openssl(place, &arguments);
    }
    std::fs::write(
        place.join("extensions"),
        "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    openssl(
        place,
        &format!("req {new} -keyout server.key -out server.csr -subj /CN=localhost"),
    );
    openssl(
        place,
        "x509 -req -in server.csr -CA roots.pem -CAkey roots.key -CAcreateserial -days 2 -extfile extensions -out server.pem",
    );
}

impl Secured {
    fn start() -> Self {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        certificates(place.path());
        let first = cluster(&place.path().join("d"));
        let program = format!("/proc/{}/exe", first.pid().unwrap());
        let program = std::fs::read_link(program).unwrap();
        first.stop();
        let data = place.path().join("d/pgdata");
        let owner = std::fs::metadata(&data).unwrap();
        for name in ["server.key", "server.pem"] {
            let kept = data.join(name);
            std::fs::copy(place.path().join(name), &kept).unwrap();
            std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o600)).unwrap();
            chown(&kept, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        let port = free_address().port();
        let mut command = Command::new(program);
        command
            .arg("-D")
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        for setting in [
            "ssl=on",
            "ssl_cert_file=server.pem",
            "ssl_key_file=server.key",
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            &format!("port={port}"),
        ] {
            command.args(["-c", setting]);
        }
        if rustix::process::geteuid().is_root() {
            command.uid(owner.uid()).gid(owner.gid()).current_dir("/");
        }
        Self {
            server: command.spawn().unwrap(),
            port,
            roots: place.path().join("roots.pem"),
            other_roots: place.path().join("other.pem"),
            _place: place,
        }
    }

    /// Whether a connection uses TLS, or why there is none.
    fn connect(&self, host: &str, mode: &str, roots: Option<&Path>) -> Result<bool, Error> {
        let roots = roots.map_or_else(String::new, |path| {
            format!("&sslrootcert={}", path.display())
        });
        let url = format!(
            "postgres://agent_runtime@{host}:{}/postgres?sslmode={mode}{roots}",
            self.port
        );
        let mut client = manager(&url).client()?;
        let row = client.query_one(
            "select ssl from pg_stat_ssl where pid = pg_backend_pid()",
            &[],
        )?;
        Ok(row.get(0))
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.server.id()).unwrap()).unwrap();
        let _ = kill_process(pid, Signal::INT);
        let _ = self.server.wait();
    }
}

#[test]
fn tls_verifies_what_its_mode_says() {
    let server = Secured::start();
    let (roots, other) = (server.roots.as_path(), server.other_roots.as_path());
    eventually("the server", || {
        server.connect("127.0.0.1", "disable", None).ok()
    });
    let secured = |host, mode, roots| server.connect(host, mode, roots).unwrap();
    assert!(!secured("127.0.0.1", "disable", None));
    assert!(secured("127.0.0.1", "prefer", None));
    assert!(secured("127.0.0.1", "require", None));
    assert!(secured("127.0.0.1", "require", Some(roots)));
    assert!(secured("127.0.0.1", "verify-ca", Some(roots)));
    assert!(secured("localhost", "verify-full", Some(roots)));
    for (host, mode, roots) in [
        ("127.0.0.1", "verify-full", roots),
        ("127.0.0.1", "require", other),
        ("127.0.0.1", "verify-ca", other),
        ("localhost", "verify-full", other),
    ] {
        let error = server.connect(host, mode, Some(roots)).unwrap_err();
        // Waiting would not mend it: the start ends with the reason.
        assert_eq!(error.code(), Code::InvalidRequest, "{mode} {host}: {error}");
        assert!(error.message().contains("certificate"), "{error}");
    }
}
