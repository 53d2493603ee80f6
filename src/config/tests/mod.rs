//! The settings as a whole: every fault by name, nothing ignored, no secret shown.

mod secrecy;
mod secrets;
mod sign_in;
mod sources;
mod wrong;

use super::license::tests::{claims, key_pair};
use super::read::value;
use super::table::{self, KeyForm, Kind, State};
use super::*;
use crate::http::door;
use crate::secret::Secret;
use crate::webhooks;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn clock() -> Clock {
    Clock::system()
}

fn development(pairs: &[(&str, &str)]) -> Vars {
    Vars::from_pairs(pairs.iter().copied()).with("SVC_DEV", "true")
}

/// A production environment that starts, and the keys that make it start.
fn production(pairs: &[(&str, &str)]) -> (Vars, TrustedKeys) {
    let (pem, public) = key_pair();
    let license = license::sign(&claims(100), &pem).unwrap();
    let vars = Vars::from_pairs(pairs.iter().copied())
        .with("SVC_LICENSE_KEY", license)
        .with("SVC_DATABASE_URL", "postgres://u:p@db.example.com/x");
    (vars, TrustedKeys::of(&[public]))
}

fn faults(vars: &Vars) -> Vec<Fault> {
    load(vars, &clock()).err().unwrap_or_default()
}

/// Asserts that these are the settings at fault, in the order in which they are found.
#[track_caller]
fn faulty(vars: &Vars, expected: &[&str]) -> Vec<Fault> {
    let faults = faults(vars);
    let names: Vec<_> = faults.iter().map(|f| f.setting.as_str()).collect();
    assert_eq!(names, expected, "{faults:?}");
    faults
}

fn file(dir: &Path, name: &str, bytes: impl AsRef<[u8]>, mode: u32) -> String {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn signing_key_pem() -> String {
    key_pair().0
}

#[test]
fn development_starts_with_nothing_else() {
    let settings = load(&development(&[]), &clock()).unwrap();
    assert!(settings.development);
    // Off the network on Linux (section 1.3).
    let expected = if cfg!(target_os = "linux") {
        "127.0.0.1:4000"
    } else {
        "[::]:4000"
    };
    assert_eq!(settings.http.address.to_string(), expected);
    assert_eq!(
        settings.database_url.expose(),
        "postgres://localhost:5432/agent_runtime"
    );
    assert_eq!(settings.outbound.host_access, HostAccess::Local);
    let limits = door::Limits::from_settings(&settings);
    assert_eq!(limits.request_threads, 16);
    assert_eq!(limits.body_bytes, 2 * 1024 * 1024);
    assert_eq!(
        settings.values.duration("SVC_RUN_LEASE_MS"),
        Duration::from_secs(15)
    );
    assert_eq!(
        settings.state_directory,
        PathBuf::from("/var/lib/agent-runtime")
    );
    assert!(matches!(
        settings.public_token_key,
        PublicTokenKey::MakeAtStart
    ));
    assert!(settings.http.docs && settings.http.allowed_origins.is_empty());
    assert_eq!(settings.log.level, LogLevel::Info);
    assert!(settings.log.levels.is_empty() && !settings.log.no_color);
}

#[test]
fn webhooks_have_bounds_and_one_word_opens_private_networks() {
    let webhooks = |pairs: &[(&str, &str)]| {
        webhooks::Options::from_settings(&load(&development(pairs), &clock()).unwrap())
    };
    let plain = webhooks(&[]);
    assert!(!plain.private_networks);
    assert_eq!(plain.timeout, Duration::from_secs(10));
    assert_eq!((plain.threads, plain.endpoint_concurrency), (32, 8));
    assert_eq!(plain.retention_days, 30);
    assert!(webhooks(&[("SVC_WEBHOOK_PRIVATE_NETWORKS", "allow")]).private_networks);
    for (name, wrong) in [
        ("SVC_WEBHOOK_PRIVATE_NETWORKS", "true"),
        ("SVC_WEBHOOK_TIMEOUT_MS", "30001"),
        ("SVC_WEBHOOK_THREADS", "0"),
        ("SVC_WEBHOOK_ENDPOINT_CONCURRENCY", "0"),
        ("SVC_WEBHOOK_RETENTION_DAYS", "13"),
    ] {
        faulty(&development(&[(name, wrong)]), &[name]);
    }
}

#[test]
fn payloads_are_kept_unless_it_is_said_how_long() {
    let days = |pairs: &[(&str, &str)]| {
        let settings = load(&development(pairs), &clock()).unwrap();
        settings
            .values
            .maybe_number::<u32>("SVC_PAYLOAD_RETENTION_DAYS")
    };
    let name = "SVC_PAYLOAD_RETENTION_DAYS";
    assert_eq!(days(&[]), None);
    assert_eq!(days(&[(name, "90")]), Some(90));
    for wrong in ["0", "36501", "a week"] {
        faulty(&development(&[(name, wrong)]), &[name]);
    }
}

#[test]
fn production_needs_a_license_and_a_database() {
    let faults = faulty(&Vars::default(), &["SVC_LICENSE_KEY", "SVC_DATABASE_URL"]);
    assert!(
        faults[0]
            .to_string()
            .contains("required outside development")
    );
    let (vars, trusted) = production(&[]);
    let settings = load_trusting(&vars, &clock(), &trusted).unwrap();
    assert!(!settings.development && settings.warnings.is_empty());
    assert_eq!(settings.license.unwrap().licensee, "Example Works");
    assert_eq!(settings.http.address.to_string(), "[::]:4000");
    assert_eq!(settings.outbound.host_access, HostAccess::Deployed);
    assert!(settings.outbound.host_access_origins.is_empty());
    assert!(matches!(settings.public_token_key, PublicTokenKey::Off));
    // The keys that this build trusts do not include the test's.
    faulty(&vars, &["SVC_LICENSE_KEY"]);
}

#[test]
fn a_license_that_does_not_hold_stops_production_and_warns_development() {
    let (pem, public) = key_pair();
    let trusted = TrustedKeys::of(&[public]);
    // An hour is enough, unless the license says more.
    let mut over = claims(0);
    over.expires_at -= time::Duration::hours(1);
    let ended = license::sign(&over, &pem).unwrap();
    over.grace_days = 1;
    let grace = license::sign(&over, &pem).unwrap();
    let (vars, _) = production(&[]);
    let stopped = load_trusting(
        &vars.clone().with("SVC_LICENSE_KEY", &ended),
        &clock(),
        &trusted,
    );
    let stopped = stopped.unwrap_err();
    assert_eq!(stopped.len(), 1);
    assert!(stopped[0].problem.contains("expired"));
    assert!(!stopped[0].to_string().contains(&ended));
    let started = load_trusting(&vars.with("SVC_LICENSE_KEY", &grace), &clock(), &trusted);
    assert_eq!(started.unwrap().warnings.len(), 1);
    let vars = development(&[("SVC_LICENSE_KEY", &ended)]);
    let started = load_trusting(&vars, &clock(), &trusted).unwrap();
    assert_eq!(started.warnings.len(), 1);
    assert!(started.license.is_none());
}

#[test]
fn right_values_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let keys = file(dir.path(), "OTHER.key", "abc\n", 0o600);
    let keys = Path::new(&keys).parent().unwrap().to_str().unwrap();
    let settings = load(
        &development(&[
            ("SVC_HTTP_PORT", "8080"),
            ("SVC_BIND_ADDRESS", "127.0.0.1"),
            ("SVC_DOCS", "0"),
            ("SVC_ALLOWED_ORIGINS", "https://a.com, http://localhost:3000"),
            ("SVC_HOST_ACCESS", "deployed"),
            ("SVC_HOST_ACCESS_ORIGINS", "http://127.0.0.1:11434, http://[::1]:8000"),
            ("SVC_LOG_LEVEL", "debug"),
            ("SVC_LOG_LEVELS", "http=warn, runtime.steps=trace"),
            ("SVC_LOG_REDACT_KEYS", "ssn,x-internal"),
            ("SVC_LOG_FORMAT", "json"),
            ("NO_COLOR", "1"),
            ("SVC_SEED_TOKEN", "my-own-token-of-a-kind"),
            ("SVC_TENANT_ID", "01234567-89ab-7cde-8f01-23456789abcd"),
            ("SVC_DATABASE_URL", "postgresql://u:p%20w@a:5432,b:5433/x?sslmode=verify-full&sslrootcert=/etc/ca.pem&target_session_attrs=read-write"),
            ("SVC_DEV_HOST_ALIAS", "host.internal"),
            ("SVC_SECRETS_BACKEND", "none"),
            ("SVC_MODEL_KEYS", "PROVIDER_KEY=https://api.example.com,OTHER.key=http://localhost:8000"),
            ("PROVIDER_KEY", "sk-123"),
            ("SVC_MODEL_KEYS_DIR", keys),
            ("STATE_DIRECTORY", "/var/lib/one:/var/lib/two"),
            ("SVC_DATABASE_POOL_SIZE", "20"),
        ]),
        &clock(),
    )
    .unwrap();
    assert_eq!(settings.http.address.to_string(), "127.0.0.1:8080");
    assert!(!settings.http.docs);
    assert_eq!(
        settings.http.allowed_origins[1].text(),
        "http://localhost:3000"
    );
    assert_eq!(door::Limits::from_settings(&settings).request_threads, 24);
    assert_eq!(settings.outbound.host_access, HostAccess::Deployed);
    let opened = settings.outbound.host_access_origins.iter();
    let opened: Vec<_> = opened.map(|origin| origin.text()).collect();
    assert_eq!(opened, ["http://127.0.0.1:11434", "http://[::1]:8000"]);
    assert_eq!(
        settings.outbound.dev_host_alias.as_deref(),
        Some("host.internal")
    );
    assert_eq!(settings.log.level, LogLevel::Debug);
    assert_eq!(settings.log.levels, "http=warn,runtime.steps=trace");
    assert_eq!(settings.log.format, LogFormat::Json);
    assert_eq!(settings.log.redact_keys, ["ssn", "x-internal"]);
    assert!(settings.log.no_color);
    assert_eq!(settings.state_directory, PathBuf::from("/var/lib/one"));
    let token = settings.tenant.seed_token.unwrap();
    assert_eq!(token.expose(), "my-own-token-of-a-kind");
    let keys: Vec<_> = settings
        .model_keys
        .iter()
        .map(|k| (k.name.as_str(), k.origin.text(), k.key.expose()))
        .collect();
    assert_eq!(
        keys,
        [
            ("PROVIDER_KEY", "https://api.example.com", "sk-123"),
            ("OTHER.key", "http://localhost:8000", "abc"),
        ]
    );
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    for (name, hint) in [
        ("SVC_HTTP_PROT", "Did you mean SVC_HTTP_PORT?"),
        ("SVC_LICENCE_KEY", "Did you mean SVC_LICENSE_KEY?"),
        ("SVC_SEED_TOKEN_FIEL", "Did you mean SVC_SEED_TOKEN_FILE?"),
        ("SVC_HTTP_PORT_FILE", "SVC_HTTP_PORT is no secret"),
        ("SVC_SOMETHING_ELSE_ALTOGETHER", "Remove it"),
        ("SVC_", "Remove it"),
    ] {
        let faults = faulty(&development(&[(name, "hunter2-hunter2")]), &[name]);
        assert!(faults[0].remedy.contains(hint), "{}", faults[0]);
        assert!(!faults[0].to_string().contains("hunter2"));
    }
    let odd = std::ffi::OsStr::from_bytes(b"SVC_\x1b[31m\xff").to_owned();
    let vars = Vars::from_pairs([(odd, "x")]).with("SVC_DEV", "1");
    faulty(&vars, &["SVC_?[31m?"]);
    assert!(faults(&development(&[("svc_http_port", "x"), ("SVCX", "x")])).is_empty());
}

#[test]
fn what_is_not_built_is_refused_by_name_and_never_ignored() {
    for setting in table::settings() {
        let State::NotBuilt(feature) = setting.state else {
            continue;
        };
        for name in [setting.name.to_owned(), setting.file_name()] {
            if name != setting.name && !setting.secret {
                continue;
            }
            let found = faults(&development(&[(&name, "/any/value")]));
            assert!(!found.is_empty(), "{name}");
            assert!(
                found
                    .iter()
                    .any(|f| f.setting == setting.name && f.problem.contains(feature))
            );
        }
    }
}

#[test]
fn the_console_s_own_login_needs_the_console() {
    let login = ("SVC_DEV_CONSOLE_LOGIN", "true");
    let both = development(&[("SVC_CONSOLE", "false"), login]);
    let found = faulty(&both, &["SVC_DEV_CONSOLE_LOGIN"]);
    assert!(
        found[0].problem.contains("SVC_CONSOLE=false"),
        "{}",
        found[0]
    );
    let is_mounted =
        |pairs: &[(&str, &str)]| load(&development(pairs), &clock()).unwrap().http.console;
    assert!(is_mounted(&[]) && is_mounted(&[login]));
    assert!(!is_mounted(&[("SVC_CONSOLE", "0")]));
}

#[test]
fn development_settings_need_development() {
    for (name, value) in [
        ("SVC_DEV_HOST_ALIAS", "host.internal"),
        ("SVC_PACK_DIR", "/packs"),
        ("SVC_DEV_CONSOLE_LOGIN", "true"),
        ("SVC_SECRETS_BACKEND", "dotenv"),
    ] {
        let (vars, trusted) = production(&[(name, value)]);
        let faults = load_trusting(&vars, &clock(), &trusted).unwrap_err();
        assert!(faults.iter().all(|fault| fault.setting == name));
        assert!(
            faults[0].problem.contains("development only"),
            "{}",
            faults[0]
        );
    }
    // A wrong SVC_DEV is one fault, not one for each setting that depends on it.
    let vars = Vars::from_pairs([("SVC_DEV", "yes"), ("SVC_DEV_HOST_ALIAS", "host")]);
    faulty(&vars, &["SVC_DEV"]);
}

#[test]
fn all_faults_are_told_at_once() {
    let vars = Vars::from_pairs([
        ("SVC_HTTP_PORT", "x"),
        ("SVC_BIND_ADDRESS", "x"),
        ("SVC_PACK_SERVICE_URL", "http://localhost:8080"),
        ("SVC_DEV_HOST_ALIAS", "host"),
        ("SVC_NOPE", "x"),
    ]);
    faulty(
        &vars,
        &[
            "SVC_NOPE",
            "SVC_LICENSE_KEY",
            "SVC_HTTP_PORT",
            "SVC_BIND_ADDRESS",
            "SVC_DATABASE_URL",
            "SVC_DEV_HOST_ALIAS",
            "SVC_PACK_SERVICE_URL",
        ],
    );
}

/// The parsers of settings that are refused as yet work already.
#[test]
fn kinds_that_wait_for_their_feature_parse() {
    let dir = tempfile::tempdir().unwrap();
    let right = file(dir.path(), "32", [7; 32], 0o600);
    let short = file(dir.path(), "31", [7; 31], 0o600);
    let credentials = files::Credentials::default();
    let parse = |kind, text: &str| parse::parse(kind, text, &credentials);
    assert!(parse(Kind::KeyFile(KeyForm::Bytes32), &right).is_ok());
    let fault = parse(Kind::KeyFile(KeyForm::Bytes32), &short).unwrap_err();
    assert!(fault.contains("31 bytes instead of 32"));
    let key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    assert!(parse(Kind::KeyText(KeyForm::Bytes32), key).is_ok());
    assert!(parse(Kind::KeyText(KeyForm::Bytes32), "BwcH").is_err());
    for (kind, right, wrong) in [
        (Kind::HttpUrl, "http://fga:8080", "http://u:p@fga:8080"),
        (Kind::HttpUrl, "https://packs.example.com/base", "ftp://fga"),
        (Kind::HostAndPort, "registry.example.com:5000", "registry:0"),
        (Kind::HostAndPort, "[::1]:5000", "::1:5000"),
        (
            Kind::List(table::Item::RelativePath),
            ".env,.env.local",
            "../.env",
        ),
        (
            Kind::List(table::Item::Registry),
            "a:5000,localhost",
            "a,http://b",
        ),
    ] {
        assert!(parse(kind, right).is_ok(), "{right}");
        assert!(parse(kind, wrong).is_err(), "{wrong}");
    }
    let many = vec!["a"; 1001].join(",");
    let fault = parse(Kind::List(table::Item::KeyPattern), &many).unwrap_err();
    assert!(fault.contains("1000"));
    for setting in table::settings() {
        if let table::Absent::Value(text) = setting.absent {
            assert!(parse(setting.kind, text).is_ok(), "{}", setting.name);
        }
    }
}

#[test]
fn limits_fit_together() {
    let vars = development(&[
        ("SVC_MAX_BODY_BYTES", "4194304"),
        ("SVC_MAX_BODY_BYTES_IN_FLIGHT", "2097152"),
    ]);
    faulty(&vars, &["SVC_MAX_BODY_BYTES_IN_FLIGHT"]);
}

#[test]
fn the_report_says_where_each_value_comes_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "token", "token-from-a-file-1", 0o600);
    let vars = development(&[
        ("SVC_HTTP_PORT", "8080"),
        ("SVC_SEED_TOKEN_FILE", &path),
        ("SVC_DATABASE_URL", "postgres://u:hunter2@db/x"),
        ("SVC_LOG_LEVEL", "loud"),
    ]);
    let report = check(&vars, &clock());
    assert!(!report.ok);
    let json = serde_json::to_value(&report).unwrap();
    let row = |name: &str| {
        let rows = json["settings"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("SVC_HTTP_PORT")["value"], "8080");
    assert_eq!(row("SVC_HTTP_PORT")["source"], "environment");
    assert_eq!(row("SVC_SEED_TOKEN")["value"], "[redacted]");
    assert_eq!(row("SVC_SEED_TOKEN")["source"], format!("file {path}"));
    assert_eq!(row("SVC_DATABASE_URL")["value"], "[redacted]");
    assert_eq!(row("SVC_QUEUE_LENGTH")["source"], "default");
    assert_eq!(row("SVC_TENANT_ID")["source"], "not set");
    assert_eq!(row("SVC_PACK_DIR")["notBuilt"], "packs");
    assert_eq!(json["faults"][0]["setting"], "SVC_LOG_LEVEL");
    assert_eq!(
        json["settings"].as_array().unwrap().len(),
        table::settings().count()
    );
    let text = report.text();
    assert!(text.contains("SVC_HTTP_PORT=8080  (environment)"));
    assert!(text.contains("SVC_LOG_LEVEL  (environment, refused: see below)"));
    assert!(text.contains("SVC_DEV_HOST_ALIAS  (not set)"));
    assert!(text.contains("fault: SVC_LOG_LEVEL must be one of"));
    assert!(text.ends_with("1 fault: the server would not start.\n"));
    assert!(!text.contains("hunter2") && !json.to_string().contains("hunter2"));
    assert!(
        check(&development(&[]), &clock())
            .text()
            .ends_with("are right.\n")
    );
}

#[test]
fn a_forward_proxy_is_one_with_its_origins() {
    let proxy = ("SVC_FORWARD_PROXY", "http://proxy:3128");
    let origins = (
        "SVC_FORWARD_PROXY_ORIGINS",
        "https://a.com,http://b.com:8080",
    );
    let credentials = ("SVC_FORWARD_PROXY_CREDENTIALS", "user:pass:word");
    let settings = load(&development(&[proxy, origins, credentials]), &clock()).unwrap();
    let loaded = settings.outbound.forward_proxy.unwrap();
    assert_eq!(loaded.origin.text(), "http://proxy:3128");
    assert_eq!(loaded.origins.len(), 2);
    assert!(!format!("{:?}", loaded.credentials).contains("word"));
    faulty(&development(&[proxy]), &["SVC_FORWARD_PROXY"]);
    faulty(&development(&[origins]), &["SVC_FORWARD_PROXY_ORIGINS"]);
    faulty(
        &development(&[credentials]),
        &["SVC_FORWARD_PROXY_CREDENTIALS"],
    );
    let bare = ("SVC_FORWARD_PROXY_CREDENTIALS", "password");
    faulty(
        &development(&[proxy, origins, bare]),
        &["SVC_FORWARD_PROXY_CREDENTIALS"],
    );
    for url in ["https://proxy:3128", "http://proxy:3128/path"] {
        let proxy = ("SVC_FORWARD_PROXY", url);
        faulty(&development(&[proxy, origins]), &["SVC_FORWARD_PROXY"]);
    }
}
