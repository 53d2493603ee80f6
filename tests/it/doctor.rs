//! The doctor, in a process of its own: each fault made for real, found, and the rest looked at all the
//! same.

use crate::authz_store::client;
use crate::harness::approvals::NewApproval;
use crate::harness::identity_provider::{IdentityProvider, Instead};
use crate::harness::openfga::OpenFga;
use crate::harness::secrets::Keys;
use crate::harness::{App, Collector, Database, Deaf, authorization, eventually};
use postgres::{Client, NoTls};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use uuid::Uuid;

/// Every code there is: a report has each of them.
const CODES: [&str; 36] = [
    "settings",
    "license",
    "audit-key",
    "database",
    "database-version",
    "database-encoding",
    "database-writable",
    "database-primary",
    "database-rights",
    "schema",
    "tenant",
    "connections",
    "clock",
    "disk",
    "database-disk",
    "openfga",
    "openfga-version",
    "openfga-schema",
    "openfga-indexes",
    "authorization-store",
    "permissions",
    "secrets",
    "tool-secrets",
    "secret-uses",
    "runs",
    "approvals",
    "webhooks",
    "sign-in",
    "identity-providers",
    "console",
    "otlp",
    "payload-retention",
    "forward-proxy",
    "tls-roots",
    "descriptors",
    "service",
];

/// Settings to be looked at.
struct Patient {
    vars: BTreeMap<String, String>,
    dir: tempfile::TempDir,
}

/// What the doctor said.
struct Report {
    exit: Option<i32>,
    json: Value,
}

impl Patient {
    /// A server in development, on this database.
    fn on(url: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().to_str().unwrap().to_owned();
        let patient = Self {
            vars: BTreeMap::new(),
            dir,
        };
        patient
            .with("SVC_DEV", "true")
            .with("SVC_DATABASE_URL", url)
            .with("SVC_STATE_DIR", &state)
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A file of the patient's.
    fn file(&self, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// With secrets sealed under keys of its own.
    fn with_secrets(self) -> Self {
        let keys = [("aad", 7), ("local", 8)];
        let keys = keys.map(|(name, byte)| self.file(name, &[byte; 32], 0o600));
        let [aad, local] = keys.map(|path| path.to_str().unwrap().to_owned());
        self.with("SVC_SECRETS_BACKEND", "postgres")
            .with("SVC_SECRETS_BACKEND_KMS", "local")
            .with("SVC_SECRETS_AAD_KEY_PATH", &aad)
            .with("SVC_SECRETS_LOCAL_KEY_PATH", &local)
    }

    fn examined(&self) -> Report {
        self.examined_with(&[])
    }

    fn examined_with(&self, arguments: &[&str]) -> Report {
        examine(arguments, &self.vars)
    }
}

fn examine(arguments: &[&str], vars: &BTreeMap<String, String>) -> Report {
    let doctor = Command::new(env!("CARGO_BIN_EXE_agent-runtime"))
        .args(["doctor", "--json"])
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(vars)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let examining = std::thread::spawn(move || doctor.wait_with_output().unwrap());
    eventually("the doctor's report", || {
        examining.is_finished().then_some(())
    });
    let output = examining.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_slice(&output.stdout);
    Report {
        exit: output.status.code(),
        json: json.unwrap_or_else(|error| panic!("{error}: {said}")),
    }
}

impl Report {
    fn findings(&self, code: &str) -> Vec<(&str, &str)> {
        let findings = self.json["checks"].as_array().unwrap().iter();
        findings
            .filter(|finding| finding["code"] == code)
            .map(|finding| {
                let text = |key: &str| finding[key].as_str().unwrap();
                (text("level"), text("sentence"))
            })
            .collect()
    }

    /// That a check has this level and says this.
    #[track_caller]
    fn says(&self, code: &str, level: &str, word: &str) -> &Self {
        let found = self.findings(code);
        let is = |(found, sentence): &(&str, &str)| *found == level && sentence.contains(word);
        assert!(found.iter().any(is), "{code}: {found:?}");
        self
    }

    /// That the checks with a fault are these.
    #[track_caller]
    fn has_faults(&self, codes: &[&str]) -> &Self {
        let faults = self.json["checks"].as_array().unwrap().iter();
        let mut faults: Vec<&str> = faults
            .filter(|finding| finding["level"] == "fault")
            .map(|finding| {
                assert!(finding["remedy"].is_string(), "{finding}");
                finding["code"].as_str().unwrap()
            })
            .collect();
        faults.dedup();
        assert_eq!(faults, codes, "{}", self.json);
        assert_eq!(self.exit, Some(i32::from(!codes.is_empty())));
        for code in CODES {
            assert!(!self.findings(code).is_empty(), "{code} is missing");
        }
        self
    }
}

/// A database's URL for another role.
fn as_role(url: &str, role: &str) -> String {
    let (_, place) = url.split_once('@').unwrap();
    format!("postgresql://{role}@{place}")
}

#[test]
fn the_doctor_finds_what_is_wrong_with_permissions_and_their_server() {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    // Nobody tells what is made untold below.
    let (database, _, seeds) = app.stop();
    let patient = Patient::on(&database.url())
        .with_secrets()
        .with("SVC_AUTHZ_API_URL", &fga.url())
        .with("SVC_AUTHZ_DATABASE_URL", &fga.database().url());
    let well = patient.examined();
    well.has_faults(&[])
        .says("settings", "ok", "given")
        .says("license", "skipped", "Development")
        .says("schema", "ok", "this version's")
        .says(
            "clock",
            "ok",
            " 0 ms apart. The database seems to be on this host",
        )
        .says("openfga", "ok", "serves")
        .says("openfga-indexes", "ok", "valid")
        .says("authorization-store", "ok", "1 stores are there")
        .says("permissions", "ok", "has every change")
        .says("secrets", "ok", "sealed and opened")
        .says("webhooks", "ok", "0 endpoints")
        .says("tls-roots", "ok", "trusted");
    match OpenFga::version().as_str() {
        "1.9.0" => well.says("openfga-schema", "warning", "revision 5"),
        _ => well.says("openfga-schema", "ok", "revision 6"),
    };

    let mut sql = database.client();
    sql.execute("update authz_objects set desired = desired + 1", &[])
        .unwrap();
    let untold = patient.examined();
    untold
        .has_faults(&[])
        .says("permissions", "warning", "objects");
    sql.execute("update authz_objects set applied = desired", &[])
        .unwrap();

    lost_indexes_are_told(&patient, &mut fga.database().client());

    let stores = client(&fga.url());
    let named = stores
        .stores_named(&format!("tenant-{}", seeds.tenant_id))
        .unwrap();
    stores.delete_store(&named[0]).unwrap();
    patient
        .examined()
        .has_faults(&["authorization-store"])
        .says("authorization-store", "fault", "is not there");

    fga.kill();
    patient
        .examined()
        .has_faults(&["openfga"])
        .says("authorization-store", "skipped", "first see openfga")
        .says("openfga-indexes", "ok", "valid")
        .says("schema", "ok", "this version's");
}

#[track_caller]
fn lost_indexes_are_told(patient: &Patient, of_openfga: &mut postgres::Client) {
    // What a migration leaves that was cut off while it built an index.
    of_openfga
        .batch_execute("create table twice (x int); insert into twice values (1), (1)")
        .unwrap();
    let built = of_openfga.batch_execute("create unique index concurrently \"Left\" on twice (x)");
    assert!(built.is_err());
    let broken = patient.examined();
    broken
        .has_faults(&["openfga-indexes"])
        .says("openfga-indexes", "fault", "\"Left\"");
    of_openfga.batch_execute("drop table twice").unwrap();
    if OpenFga::version() != "1.9.0" {
        of_openfga
            .batch_execute("alter index idx_user_lookup rename to aside")
            .unwrap();
        patient.examined().has_faults(&["openfga-indexes"]).says(
            "openfga-indexes",
            "fault",
            "idx_user_lookup",
        );
        of_openfga
            .batch_execute("alter index aside rename to idx_user_lookup")
            .unwrap();
    }
}

#[test]
fn a_tenant_without_a_store_and_authorization_that_is_off_are_told() {
    let app = App::start();
    let patient = Patient::on(&app.database.url());
    patient
        .examined()
        .has_faults(&[])
        .says("openfga", "skipped", "Authorization is off")
        .says("secrets", "skipped", "no backend")
        .says("webhooks", "skipped", "need a secrets backend");
    let fga = OpenFga::shared();
    patient
        .with("SVC_AUTHZ_API_URL", &authorization(&fga.url()).url)
        .examined()
        .has_faults(&[])
        .says("authorization-store", "warning", "1 tenants have no store")
        .says("openfga-schema", "skipped", "SVC_AUTHZ_DATABASE_URL");
}

#[test]
fn the_doctor_tries_the_collector_of_traces() {
    let database = Database::migrated();
    let patient = Patient::on(&database.url());
    patient
        .examined()
        .has_faults(&[])
        .says("otlp", "skipped", "SVC_OTLP_ENDPOINT");
    let deaf = Deaf::new();
    let proxy = deaf.address();
    Patient::on(&database.url())
        .with("SVC_FORWARD_PROXY", &format!("http://{proxy}"))
        .with("SVC_FORWARD_PROXY_ORIGINS", "https://api.invalid")
        .examined()
        .has_faults(&[])
        .says("forward-proxy", "warning", &proxy.to_string());
    let collector = Collector::start();
    let patient = patient
        .with("SVC_OTLP_ENDPOINT", &collector.url())
        .with("SVC_OTLP_HEADERS", "x-token=collector%20secret");
    patient
        .examined()
        .has_faults(&[])
        .says("otlp", "ok", "takes spans");
    assert_eq!(
        collector.exports()[0].headers["x-token"],
        "collector secret"
    );
    let address = collector.address();
    drop(collector);
    patient
        .examined()
        .has_faults(&[])
        .says("otlp", "warning", &address.to_string());
    let _refuses = Collector::at(address, |_| (401, Vec::new(), ""));
    patient
        .examined()
        .has_faults(&[])
        .says("otlp", "warning", "answered 401");
}

#[test]
fn the_doctor_asks_the_providers_of_the_operators_file() {
    let database = Database::migrated();
    let patient = Patient::on(&database.url());
    patient.examined().says(
        "identity-providers",
        "skipped",
        "Tenants register their own",
    );
    let provider = IdentityProvider::start();
    let of = |issuer: &str, name: &str| json!({"tenantId": "01980000-0000-7000-8000-000000000001", "name": name, "issuer": issuer, "clientId": "a"});
    let slashed = format!("{}/", provider.issuer());
    let file =
        json!({"version": 1, "providers": [of(provider.issuer(), "Plant"), of(&slashed, "Slash")]});
    let path = patient.file("providers.json", file.to_string().as_bytes(), 0o640);
    let report = patient
        .with("SVC_IDENTITY_PROVIDERS_PATH", path.to_str().unwrap())
        .examined();
    report
        .has_faults(&[])
        .says("identity-providers", "ok", "can be used")
        .says("identity-providers", "warning", "step issuer");
    // Each is waited for as long as a sign-in waits, so three that hang are all looked at.
    provider.says().instead.insert("/keys", Instead::Hang);
    let hang = ["Plant", "Lab", "Mill"].map(|name| {
        let mut one = of(provider.issuer(), name);
        one["clientId"] = json!(name);
        one
    });
    let file = json!({"version": 1, "providers": hang});
    let patient = Patient::on(&database.url());
    let path = patient.file("slow.json", file.to_string().as_bytes(), 0o640);
    let report = patient
        .with("SVC_IDENTITY_PROVIDERS_PATH", path.to_str().unwrap())
        .with("SVC_SIGN_IN_TIMEOUT_MS", "500")
        .examined();
    let said = report.has_faults(&[]).findings("identity-providers");
    let of_keys = said.iter().filter(|(_, told)| told.contains("step keys"));
    assert_eq!((of_keys.count(), said.len()), (3, 3), "{said:?}");
}

#[test]
fn the_doctor_opens_the_public_address_as_a_browser_does() {
    let database = Database::migrated();
    let patient = Patient::on(&database.url());
    let said = |address: &str, level: &str, told: &str| {
        Patient::on(&database.url())
            .with("SVC_PUBLIC_URL", address)
            .examined()
            .has_faults(&[])
            .says("sign-in", level, told);
    };
    patient
        .examined()
        .says("sign-in", "skipped", "any loopback address");
    // A server that is told its address once it is known, as behind a proxy.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .unwrap();
    let url = format!("http://127.0.0.1:{}", address.port());
    said(&url, "warning", "does not answer");
    let app = App::start_with(|options| {
        options.listen = address;
        options.sign_in.development = false;
        options.sign_in.public_url = agent_runtime::config::Origin::parse(&url);
    });
    said(&url, "ok", &url);
    let of_console = |patient: Patient, level: &str, told: &str| {
        let patient = patient.with("SVC_PUBLIC_URL", &url);
        patient
            .examined()
            .has_faults(&[])
            .says("console", level, told);
    };
    of_console(Patient::on(&database.url()), "ok", "/console/");
    let off = Patient::on(&database.url()).with("SVC_CONSOLE", "false");
    of_console(off, "skipped", "SVC_CONSOLE");
    let renamed = format!("http://localhost:{}", address.port());
    said(&renamed, "warning", "Host is changed");
    drop(app);
    let other = tiny_http::Server::http(address).unwrap();
    let answering = std::thread::spawn(move || {
        for path in ["/v1/sign-in", "/console/", "/v1/sign-in", "/console/"] {
            let asked = other.recv().unwrap();
            assert_eq!(asked.url(), path);
            asked
                .respond(tiny_http::Response::from_string("{}"))
                .unwrap();
        }
    });
    said(&url, "warning", "as no agent-runtime does");
    of_console(
        Patient::on(&database.url()),
        "warning",
        "another content security policy",
    );
    answering.join().unwrap();
}

#[test]
fn the_doctor_finds_what_should_have_been_erased() {
    let database = Database::migrated();
    let mut sql = database.client();
    let patient = Patient::on(&database.url()).with("SVC_PAYLOAD_RETENTION_DAYS", "1");
    let now = time::OffsetDateTime::now_utc();
    let (id, ended) = (
        agent_runtime::ids::first_of(now - time::Duration::days(4)),
        now - time::Duration::days(3),
    );
    sql.batch_execute("create table run_payloads_before partition of run_payloads default")
        .unwrap();
    for statement in [
        "insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
           created_by, created_at, completed_at)
         values ($1, $1, $1, 'test.flow', '1.0.0', 'completed', 'app', $1, false, $1, $2, $2)",
        "insert into run_payloads (tenant_id, run_id, input) select $1, $1, '{}' where $2::timestamptz is not null",
    ] {
        sql.execute(statement, &[&id, &ended]).unwrap();
    }
    patient.examined().has_faults(&["payload-retention"]).says(
        "payload-retention",
        "fault",
        "more than a day longer",
    );
    sql.batch_execute("delete from run_payloads").unwrap();
    patient
        .examined()
        .has_faults(&[])
        .says("payload-retention", "ok", "1 days after");
}

#[test]
fn the_doctor_finds_a_run_that_nothing_wakes() {
    let database = Database::migrated();
    let mut sql = database.client();
    let patient = Patient::on(&database.url());
    let (tenant, run) = (Uuid::from_u128(7), Uuid::from_u128(8));
    sql.execute(
        "insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
           created_by, created_at)
         values ($1, $2, $1, 'test.flow', '1.0.0', 'waiting', 'app', $2, false, $1, now())",
        &[&tenant, &run],
    )
    .unwrap();
    patient
        .examined()
        .has_faults(&["runs"])
        .says("runs", "fault", &run.to_string());
    sql.batch_execute("delete from runs").unwrap();
    patient.examined().says("runs", "ok", "carries it on");
}

#[test]
fn the_doctor_warns_while_all_runs_are_held() {
    let database = Database::migrated();
    let mut sql = database.client();
    let patient = Patient::on(&database.url());
    sql.batch_execute("insert into run_hold (since) values (now())")
        .unwrap();
    patient
        .examined()
        .has_faults(&[])
        .says("runs", "warning", "All runs are held");
    sql.batch_execute("delete from run_hold").unwrap();
    patient.examined().says("runs", "ok", "carries it on");
}

#[test]
fn the_doctor_finds_approvals_that_nothing_closes_and_that_nobody_may_decide() {
    let database = Database::migrated();
    let mut sql = database.client();
    let clock = agent_runtime::ids::Clock::system();
    let [tenant_id, project_id, run_id, person] = [7, 8, 9, 10].map(Uuid::from_u128);
    let mut waiting = NewApproval {
        tenant_id,
        project_id,
        run_id,
        requested_by: person,
        role: "finance",
        seconds: 3600,
    };
    sql.batch_execute("select attach_run_partitions(today => current_date)")
        .unwrap();
    let patient = Patient::on(&database.url());
    patient
        .examined()
        .says("approvals", "ok", "No approval waits");
    waiting.insert(&mut sql, &clock);
    // With authorization off everybody decides.
    patient
        .examined()
        .says("approvals", "ok", "1 approvals wait");
    waiting.seconds = -120;
    let over = waiting.insert(&mut sql, &clock).to_string();
    let report = patient.examined();
    report
        .has_faults(&["approvals"])
        .says("approvals", "fault", &over);
    sql.batch_execute("delete from approvals where expires_at < now()")
        .unwrap();
    let patient = patient.with("SVC_AUTHZ_API_URL", &OpenFga::shared().url());
    let undecidable = format!("1 for finance in tenant {tenant_id}");
    patient
        .examined()
        .says("approvals", "warning", &undecidable);
    let tenant = "insert into tenants (tenant_id, name, created_at) values ($1, 'One', now())";
    sql.execute(tenant, &[&tenant_id]).unwrap();
    // Who started the run is nobody who may.
    let reviewer = |sql: &mut Client, user_id: Uuid| {
        let person =
            "insert into users (tenant_id, user_id, kind, display_name, tenant_role, created_at)
             values ($1, $2, 'person', 'Ann', 'member', now())";
        sql.execute(person, &[&tenant_id, &user_id]).unwrap();
        let role = "insert into reviewers (tenant_id, user_id, role, created_by, created_at) values ($1, $2, 'finance', $2, now())";
        sql.execute(role, &[&tenant_id, &user_id]).unwrap();
    };
    reviewer(&mut sql, person);
    patient
        .examined()
        .says("approvals", "warning", &undecidable);
    reviewer(&mut sql, Uuid::from_u128(11));
    patient
        .examined()
        .says("approvals", "ok", "1 approvals wait");
}

#[test]
fn the_doctor_finds_settings_that_name_another_tenant_than_the_database_has() {
    let database = Database::migrated();
    let mut sql = database.client();
    let [own, other] = [7, 8].map(Uuid::from_u128);
    let naming = |tenant_id: Uuid| {
        let patient = Patient::on(&database.url());
        patient.with("SVC_TENANT_ID", &tenant_id.to_string())
    };
    let report = naming(own).examined();
    report
        .has_faults(&[])
        .says("tenant", "ok", "the first start creates");
    let tenant = "insert into tenants (tenant_id, name, created_at) values ($1, 'One', now())";
    sql.execute(tenant, &[&own]).unwrap();
    let report = naming(own).examined();
    report
        .has_faults(&[])
        .says("tenant", "ok", &format!("{own} is in"));
    let report = naming(other).examined();
    let oldest = format!("oldest tenant is {own}");
    report
        .has_faults(&["tenant"])
        .says("tenant", "fault", &other.to_string())
        .says("tenant", "fault", &oldest);
    let mut without = Patient::on(&database.url());
    let report = without.examined();
    report
        .has_faults(&[])
        .says("tenant", "skipped", "in development");
    without.vars.remove("SVC_DEV");
    let report = without.examined();
    report
        .has_faults(&["license"])
        .says("tenant", "warning", &oldest);
}

#[test]
fn several_hosts_take_more_connections_and_each_says_what_it_is() {
    let database = Database::migrated();
    let patient = Patient::on(&database.url());
    let few = patient.examined_with(&["--replicas", "900"]);
    few.has_faults(&["connections"]).says(
        "connections",
        "fault",
        "900 replicas take up to 16200 connections",
    );
    few.says("database-primary", "skipped", "one host");
    let away = database.url().replacen('@', "@%2Fnowhere:5432,", 1);
    assert_ne!(away, database.url());
    let few = Patient::on(&away).examined_with(&["--replicas", "900"]);
    few.has_faults(&["connections"]).says(
        "connections",
        "fault",
        "900 replicas take up to 18000 connections",
    );
    few.says("database-primary", "warning", "is the primary, on")
        .says(
            "database-primary",
            "warning",
            "/nowhere:5432 does not answer",
        );
}

#[test]
fn the_doctor_finds_what_is_wrong_with_the_database() {
    let empty = Database::empty();
    Patient::on(&empty.url())
        .examined()
        .has_faults(&[])
        .says("schema", "warning", "0001_baseline")
        .says("permissions", "skipped", "first see schema");

    let database = Database::migrated();
    let mut sql = database.client();
    let role = format!("stranger_{}", std::process::id());
    sql.batch_execute(&format!("create role {role} login"))
        .unwrap();
    let stranger = Patient::on(&as_role(&database.url(), &role)).examined();
    stranger
        .says("database", "ok", &role)
        .says("database-rights", "fault", "may not");
    assert_eq!(stranger.exit, Some(1));
    sql.batch_execute(&format!(
        "grant create on schema public to {role};
         grant select, insert, update, delete on all tables in schema public to {role};
         revoke delete on tokens from {role}"
    ))
    .unwrap();
    Patient::on(&as_role(&database.url(), &role))
        .examined()
        .has_faults(&["database-rights"])
        .says("database-rights", "fault", "these tables: tokens.");

    unknown_directory_is_a_warning(&database, &role);

    let patient = Patient::on(&database.url());
    let name = database.url();
    let name = name.rsplit_once('/').unwrap().1;
    sql.batch_execute(&format!(
        "alter database {name} set default_transaction_read_only = on"
    ))
    .unwrap();
    patient.examined().has_faults(&["database-writable"]).says(
        "database-writable",
        "fault",
        "read-only",
    );
    let newer = "begin read write; update agent_runtime_requirements set oldest_binary = '99.0.0'";
    sql.batch_execute(&format!("{newer}; commit; alter database {name} reset all"))
        .unwrap();
    patient
        .examined()
        .has_faults(&["schema"])
        .says("schema", "fault", "99.0.0");

    let latin = "create database latin1_doctor encoding 'LATIN1' locale 'C' template template0";
    sql.batch_execute(latin).unwrap();
    let (server, _) = database
        .url()
        .rsplit_once('/')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    Patient::on(&format!("{server}/latin1_doctor"))
        .examined()
        .has_faults(&["database-encoding"])
        .says("database-encoding", "fault", "LATIN1");
}

/// A directory that an ordinary role may not know is not guessed.
#[track_caller]
fn unknown_directory_is_a_warning(database: &Database, role: &str) {
    let as_stranger = || Patient::on(&as_role(&database.url(), role)).examined();
    let hidden = as_stranger();
    hidden.says("database-disk", "warning", &format!("to {role}"));
    let checks = hidden.json["checks"].as_array().unwrap().iter();
    let mut of_disk = checks.filter(|finding| finding["code"] == "database-disk");
    let remedy = of_disk.next().unwrap()["remedy"].as_str().unwrap();
    let statement = format!("grant pg_read_all_settings to \"{role}\"");
    assert!(remedy.contains(&statement), "{remedy}");
    let mut sql = database.client();
    sql.batch_execute(&statement).unwrap();
    let row = sql.query_one("show data_directory", &[]).unwrap();
    let report = as_stranger();
    let said = report.findings("database-disk");
    assert!(
        said.iter()
            .all(|(_, sentence)| sentence.contains(row.get::<_, &str>(0))),
        "{said:?}"
    );
}

#[test]
fn a_database_that_is_away_or_silent_stops_no_other_check() {
    let away = Patient::on("postgresql://nobody@%2Fnonexistent/none").with_secrets();
    away.examined()
        .has_faults(&["database"])
        .says("schema", "skipped", "first see database")
        .says("secrets", "ok", "sealed and opened");

    // It takes connections and says nothing, until the test ends.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    Patient::on(&format!("postgresql://nobody@{at}/none?sslmode=disable"))
        .with_secrets()
        .with("SVC_AUTHZ_API_URL", &format!("http://{at}"))
        .examined()
        .has_faults(&["database", "openfga"])
        .says("database", "fault", "No answer")
        .says("secrets", "ok", "sealed and opened");
}

#[test]
fn the_doctor_finds_what_is_wrong_with_settings_and_keys() {
    let database = Database::migrated();
    let patient = Patient::on(&database.url()).with_secrets();
    let open = patient.file("open", &[9; 32], 0o644);
    let key = patient.vars["SVC_SECRETS_LOCAL_KEY_PATH"].clone();
    let patient = patient.with("SVC_SECRETS_LOCAL_KEY_PATH", open.to_str().unwrap());
    patient
        .examined()
        .has_faults(&["settings"])
        .says(
            "settings",
            "fault",
            "SVC_SECRETS_LOCAL_KEY_PATH names a file of mode 0644",
        )
        .says("secrets", "skipped", "first see settings")
        .says("schema", "ok", "this version's");
    fs::remove_file(&key).unwrap();
    let patient = patient.with("SVC_SECRETS_LOCAL_KEY_PATH", &key);
    patient
        .examined()
        .has_faults(&["settings"])
        .says("settings", "fault", "not there");

    // A service that wraps keys and is away.
    let mut cloud = Patient::on(&database.url()).with_secrets();
    cloud.vars.remove("SVC_SECRETS_LOCAL_KEY_PATH");
    for part in ["PROJECT_ID", "LOCATION", "KEYRING_ID", "KEY_ID"] {
        cloud = cloud.with(&format!("SVC_SECRETS_KMS_{part}"), "x");
    }
    cloud
        .with("SVC_SECRETS_BACKEND_KMS", "cloud-a")
        .with("SVC_SECRETS_KMS_BASE_URL", "http://127.0.0.1:1")
        .with("SVC_SECRETS_KMS_METADATA_URL", "http://127.0.0.1:1")
        .examined()
        .has_faults(&["secrets"]);

    // The whole of the settings' judgement, and no part that they name.
    let bad = Patient::on("mysql://x").with("SVC_HTTP_PORT", "eighty");
    bad.examined()
        .has_faults(&["settings"])
        .says("settings", "fault", "SVC_HTTP_PORT")
        .says("settings", "fault", "SVC_DATABASE_URL")
        .says("database", "skipped", "first see settings");

    let mut production = Patient::on(&database.url());
    production.vars.remove("SVC_DEV");
    production
        .examined()
        .has_faults(&["license"])
        .says("license", "fault", "required")
        .says("openfga", "warning", "Authorization is off")
        .says("descriptors", "ok", "the settings allow");
    production
        .with("SVC_MAX_CONNECTIONS", "1000000")
        .examined()
        .says("descriptors", "warning", "the settings allow 100");
}

/// An env file and credentials in a directory, as the package lays them out.
struct Laid {
    dir: tempfile::TempDir,
}

impl Laid {
    fn new(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let laid = Self { dir };
        laid.put("settings.env", settings.as_bytes(), 0o640);
        fs::create_dir(laid.path("credentials")).unwrap();
        set_mode(&laid.path("credentials"), 0o700);
        fs::create_dir(laid.path("state")).unwrap();
        set_mode(&laid.path("state"), 0o700);
        laid
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8], mode: u32) {
        fs::write(self.path(name), bytes).unwrap();
        set_mode(&self.path(name), mode);
    }

    /// As the user of this name, who need not exist: then with the eyes of who runs it.
    fn examined(&self) -> Report {
        let [env_file, credentials] = ["settings.env", "credentials"].map(|name| self.path(name));
        examine(
            &[
                "--env-file",
                env_file.to_str().unwrap(),
                "--credentials",
                credentials.to_str().unwrap(),
                "--user",
                "no-such-user-here",
            ],
            &BTreeMap::new(),
        )
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_doctor_finds_files_that_others_can_use() {
    let database = Database::migrated();
    let settings = format!("SVC_DEV=true\nSVC_DATABASE_URL={}\n", database.url());
    let laid = Laid::new(&settings);
    let state = laid.path("state");
    let settings = format!("{settings}SVC_STATE_DIR={}\n", state.display());
    laid.put("settings.env", settings.as_bytes(), 0o640);
    laid.put(
        "credentials/SVC_SEED_TOKEN",
        b"svc_bt_0123456789abcdef\n",
        0o600,
    );
    let well = laid.examined();
    well.has_faults(&[])
        .says("settings-file", "ok", "Only the service")
        .says("files", "ok", "3 files");

    set_mode(&laid.path("settings.env"), 0o666);
    set_mode(&laid.path("credentials"), 0o755);
    set_mode(&state, 0o777);
    laid.examined()
        .has_faults(&["settings-file", "files"])
        .says("settings-file", "fault", "0666")
        .says("files", "fault", "credentials has mode 0755")
        .says("files", "fault", "state has mode 0777");
    set_mode(&laid.path("credentials"), 0o700);
    set_mode(&state, 0o700);
    let settings = format!("{settings}export SVC_LOG_LEVEL=warn\nSVC_DOCS=true # why\n");
    laid.put("settings.env", settings.as_bytes(), 0o640);
    laid.examined().has_faults(&["settings-file"]).says(
        "settings-file",
        "fault",
        "SVC_LOG_LEVEL, SVC_DOCS",
    );
}

#[test]
fn a_reader_gets_text_and_a_wrong_command_line_is_2() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_agent-runtime"))
            .arg("doctor")
            .args(arguments)
            .env_clear()
            .env("SVC_DEV", "true")
            .env(
                "SVC_DATABASE_URL",
                "postgresql://u:hunter2@127.0.0.1:1/none",
            )
            .output()
            .unwrap()
    };
    let said = run(&[]);
    assert_eq!(said.status.code(), Some(1));
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("\nfault    database             "), "{text}");
    assert!(text.contains("→ See that PostgreSQL runs"), "{text}");
    assert!(text.contains("1 fault, "), "{text}");
    assert!(
        !text.contains("hunter2") && !text.contains('\x1b'),
        "{text}"
    );
    assert_eq!(run(&["--replicas", "0"]).status.code(), Some(2));
    let listed = run(&["--list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(CODES.iter().all(|code| listed.contains(code)), "{listed}");
}

#[test]
fn a_key_that_what_is_stored_was_not_made_with_is_a_fault() {
    let keys = Keys {
        aad: [7; 32],
        local: [8; 32],
        ..Keys::new()
    };
    let app = App::start_with(|options| options.secrets = keys.options());
    let patient = Patient::on(&app.database.url()).with_secrets();
    patient
        .examined()
        .has_faults(&[])
        .says("secrets", "ok", "No secret is stored");
    let put = app.put("/v1/secrets/prod/A", &json!({"value": "hunter2hunter2"}));
    put.expect(201);
    patient
        .examined()
        .has_faults(&[])
        .says("secrets", "ok", "The newest stored secret");
    for (setting, name) in [
        ("SVC_SECRETS_AAD_KEY_PATH", "other-aad"),
        ("SVC_SECRETS_LOCAL_KEY_PATH", "other-local"),
    ] {
        let patient = Patient::on(&app.database.url()).with_secrets();
        let other = patient.file(name, &[9; 32], 0o600);
        let report = patient.with(setting, other.to_str().unwrap()).examined();
        report
            .has_faults(&["secrets"])
            .says("secrets", "fault", "version 1, cannot be read");
        assert!(!report.json.to_string().contains("hunter2"));
    }
    // A database of which nothing is known yet.
    Patient::on(&Database::empty().url())
        .with_secrets()
        .examined()
        .says("secrets", "skipped", "first see schema");
}

#[test]
fn webhook_endpoints_that_fail_are_named() {
    let app = App::start_with_webhooks();
    let failing = app.endpoint("https://public.example/T0KEN");
    let other = app.endpoint("https://public.example/other");
    let patient = Patient::on(&app.database.url()).with_secrets();
    patient.examined().says(
        "webhooks",
        "ok",
        "2 endpoints are registered; in development they may be on private networks",
    );
    app.sql(&format!(
        "insert into webhook_endpoint_counts as c (tenant_id, endpoint_id, is_failing, last_failed_at, last_error, last_status)
         select tenant_id, endpoint_id, true, now(), 'http-status', 503 from webhook_endpoints where endpoint_id = '{failing}'
         on conflict (tenant_id, endpoint_id) do update set is_failing = true, last_error = 'http-status', last_status = 503"
    ));
    let report = patient.examined();
    let named = format!("{failing} (public.example)");
    report.says("webhooks", "warning", &named).says(
        "webhooks",
        "warning",
        "http-status 503, no success yet",
    );
    let report = report.json.to_string();
    assert!(
        !report.contains("T0KEN") && !report.contains(&other),
        "{report}"
    );
}

/// Nothing that the doctor connected to is changed by it.
#[test]
fn the_doctor_changes_nothing() {
    let database = Database::migrated();
    let counts = |client: &mut Client| -> Vec<(String, i64)> {
        let statement = "select relname::text, n_tup_ins + n_tup_upd + n_tup_del
            from pg_stat_user_tables order by 1";
        client
            .batch_execute("select pg_stat_force_next_flush()")
            .ok();
        let rows = client.query(statement, &[]).unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let mut sql = Client::connect(&database.url(), NoTls).unwrap();
    let before = counts(&mut sql);
    Patient::on(&database.url())
        .with_secrets()
        .examined()
        .has_faults(&[]);
    assert_eq!(counts(&mut sql), before);
}
