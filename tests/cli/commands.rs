//! The commands that need no server.

use crate::harness::{database, run, run_with_input};
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) const COMMANDS: [&str; 36] = [
    "serve",
    "dev",
    "run",
    "follow",
    "agents",
    "tools",
    "model-providers",
    "runs",
    "conversations",
    "usage",
    "webhooks",
    "environments",
    "guardrails",
    "policies",
    "approvals",
    "approve",
    "reject",
    "flows",
    "flow",
    "login",
    "logout",
    "setup",
    "migrate",
    "backup",
    "restore",
    "check-config",
    "doctor",
    "settings",
    "tenant",
    "sign-in-code",
    "authz",
    "secrets",
    "license",
    "audit",
    "openapi",
    "completions",
];

/// Each command and its subcommands.
const WITH_EXAMPLES: [&[&str]; 73] = [
    &["serve"],
    &["dev"],
    &["run"],
    &["follow"],
    &["agents"],
    &["agents", "show"],
    &["agents", "push"],
    &["tools"],
    &["tools", "show"],
    &["tools", "push"],
    &["model-providers"],
    &["model-providers", "check"],
    &["runs"],
    &["runs", "show"],
    &["runs", "cancel"],
    &["runs", "retry"],
    &["runs", "hold"],
    &["runs", "release"],
    &["conversations"],
    &["conversations", "erase"],
    &["usage"],
    &["webhooks"],
    &["webhooks", "deliveries"],
    &["webhooks", "show"],
    &["webhooks", "resend"],
    &["environments"],
    &["environments", "variables"],
    &["environments", "set"],
    &["environments", "unset"],
    &["guardrails"],
    &["guardrails", "try"],
    &["policies"],
    &["policies", "show"],
    &["policies", "put"],
    &["approvals"],
    &["approvals", "show"],
    &["approvals", "assign"],
    &["approvals", "escalate"],
    &["approve"],
    &["reject"],
    &["flow"],
    &["flow", "validate"],
    &["flow", "push"],
    &["flows"],
    &["login"],
    &["logout"],
    &["sign-in-code"],
    &["setup"],
    &["migrate"],
    &["backup"],
    &["restore"],
    &["check-config"],
    &["doctor"],
    &["settings"],
    &["tenant"],
    &["tenant", "create"],
    &["authz"],
    &["authz", "verify"],
    &["authz", "repair"],
    &["secrets"],
    &["secrets", "uses"],
    &["secrets", "uses", "add"],
    &["secrets", "uses", "delete"],
    &["secrets", "rewrap"],
    &["audit"],
    &["audit", "verify"],
    &["audit", "export"],
    &["audit", "show"],
    &["license"],
    &["license", "inspect"],
    &["license", "sign"],
    &["openapi"],
    &["completions"],
];

#[test]
fn every_command_has_help_with_examples() {
    let help = run(&["--help"], &[]).expect(0).out;
    let listed: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(listed[..listed.len() - 1], COMMANDS);
    assert!(help.contains("Examples:"));
    for command in WITH_EXAMPLES {
        let arguments = [command, &["--help"]].concat();
        let help = run(&arguments, &[]).expect(0).out;
        assert!(help.contains("Examples:\n  "), "{command:?}: {help}");
        assert!(!help.contains('\x1b'), "{command:?}");
        assert_eq!(broken_early(&help), None, "{command:?}: {help}");
    }
    let help = run(&["serve", "--help"], &[]).expect(0).out;
    assert!(help.contains("SVC_LICENSE_KEY"));
}

/// A line of a paragraph that was broken although the next word had room: the text has breaks of its own, and looks torn
/// where the terminal adds others.
fn broken_early(help: &str) -> Option<&str> {
    const WIDTH: usize = 100;
    let (_, told) = help.split_once("\nExamples:\n")?;
    let (told, _) = told.split_once("\nSettings (").unwrap_or((told, ""));
    let lines: Vec<&str> = told.lines().collect();
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    lines.windows(2).find_map(|pair| {
        let word = pair[1].split(' ').next().filter(|_| is_prose(pair[1]))?;
        let is_early = pair[0].len() + 1 + word.len() <= WIDTH;
        (is_prose(pair[0]) && is_early).then_some(pair[0])
    })
}

#[test]
fn a_wrong_command_line_is_2() {
    for arguments in [
        &[][..],
        &["no-such-command"],
        &["serve", "--no-such-flag"],
        &["run", "assistant"],
        &["run", "--input", "order.json"],
        &["run", "--flow", "a.b", "--fixtures", "answers.json"],
        &["run", "--flow", "a.b", "--models", "skip"],
        &["run", "--flow", "a.b", "--dry-run", "--models", "none"],
        &[
            "run",
            "--flow",
            "a.b",
            "--dry-run",
            "--input",
            "-",
            "--fixtures",
            "-",
        ],
        &["run", "assistant", "Hello", "--flow", "billing.refund"],
        &["flow", "push", "refund.yaml"],
        &["runs", "show", "no-uuid"],
        &["runs", "--status", "lost"],
        &["runs", "--since", "soon"],
        &["runs", "--limit", "0"],
        &["conversations", "erase", "no-uuid"],
        &["approve", "no-uuid"],
        &["webhooks", "resend", "https://hooks.example.com"],
        &[
            "webhooks",
            "deliveries",
            "https://a.example",
            "--state",
            "lost",
        ],
        &["approvals", "--status", "lost"],
        &["approvals", "--assigned-to", "somebody"],
        &["tenant", "create", "--name", ""],
        &["tenant", "create", "--name", "a", "--email", "no-email"],
        &["license", "sign", "--key", "x", "--licensee", "y"],
        &["dev", "--exit"],
        &["dev", "--provider-url", "http://127.0.0.1:1/v1"],
        &["dev", "--database-url", "postgres://u:hunter2@h/d"],
        &["run", "assistant", "Hello", "--url", "not a url"],
    ] {
        let said = run(arguments, &[("AGENT_RUNTIME_TOKEN", "x")]).expect(2);
        assert!(said.out.is_empty(), "{arguments:?}: {}", said.out);
        assert!(!said.err.is_empty(), "{arguments:?}");
    }
    let said = run(&["run", "assistant", "Hello"], &[("HOME", "/nonexistent")]).expect(2);
    assert!(said.err.contains("--token-file"), "{}", said.err);
}

#[test]
fn serve_names_every_fault_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let open = file(dir.path(), "key.pem", &key_pem(), 0o644);
    let said = run(
        &["serve"],
        &[
            ("SVC_HTTP_PORT", "eighty"),
            ("SVC_NO_SUCH_SETTING", "1"),
            ("SVC_LOG_LEVEL", "loud"),
            ("SVC_DEV_HOST_ALIAS", "host.internal"),
            ("SVC_SECRETS_BACKEND", "postgres"),
            ("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH", open.to_str().unwrap()),
        ],
    )
    .expect(78);
    for named in [
        "SVC_HTTP_PORT",
        "SVC_NO_SUCH_SETTING",
        "SVC_LOG_LEVEL",
        "SVC_DEV_HOST_ALIAS",
        "SVC_SECRETS_BACKEND",
        "SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH names a file of mode 0644",
        "SVC_LICENSE_KEY is required",
        "SVC_DATABASE_URL is required",
        "EnvironmentFile=/etc/agent-runtime/agent-runtime.env",
    ] {
        assert!(said.err.contains(named), "{named}: {}", said.err);
    }
    assert!(said.out.is_empty(), "{}", said.out);
}

#[test]
fn check_config_says_the_same_and_shows_no_secret() {
    let variables = [
        ("SVC_DEV", "1"),
        ("SVC_SEED_TOKEN", "hunter2hunter2hunter2"),
    ];
    let said = run(&["check-config"], &variables).expect(0);
    assert!(said.out.contains("The settings are right."), "{}", said.out);
    assert!(!said.out.contains("hunter2"));
    let said = run(&["check-config", "--json"], &[("SVC_DEV", "maybe")]).expect(1);
    let report = said.json();
    assert_eq!(report["ok"], json!(false));
    assert_eq!(report["faults"][0]["setting"], json!("SVC_DEV"));
}

#[test]
fn check_config_warns_of_a_subsystem_that_nobody_logs_under() {
    let variables = [
        ("SVC_DEV", "1"),
        ("SVC_LOG_LEVELS", "http=warn,htpt=debug"),
        ("SVC_DATABASE_URL", "postgres://127.0.0.1:1/none"),
    ];
    let said = run(&["check-config"], &variables).expect(0);
    let warning = "warning: SVC_LOG_LEVELS: no code logs under the subsystem \"htpt\"; known are ";
    assert!(said.out.contains(warning), "{}", said.out);
    assert!(said.out.contains("The settings are right."), "{}", said.out);
    let report = run(&["check-config", "--json"], &variables)
        .expect(0)
        .json();
    assert_eq!(report["ok"], json!(true));
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1, "{report}");
    // The doctor says what check-config says.
    let said = run(&["doctor", "--json"], &variables);
    assert!(said.out.contains("htpt"), "{}", said.out);
}

#[test]
fn an_origin_that_nothing_opens_is_a_fault() {
    for origin in ["http://169.254.169.254", "http://metadata.google.internal"] {
        let variables = [("SVC_DEV", "1"), ("SVC_HOST_ACCESS_ORIGINS", origin)];
        let fault = format!("SVC_HOST_ACCESS_ORIGINS lists {origin}, and opens no link-local");
        let said = run(&["check-config"], &variables).expect(1);
        assert!(said.out.contains(&fault), "{}", said.out);
        let said = run(&["serve"], &variables).expect(78);
        assert!(said.err.contains(&fault), "{}", said.err);
    }
    let variables = [
        ("SVC_DEV", "1"),
        ("SVC_HOST_ACCESS_ORIGINS", "http://127.0.0.1:11434"),
    ];
    run(&["check-config"], &variables).expect(0);
    let variables = |own: &'static str| {
        [
            ("SVC_DEV", "1"),
            ("SVC_HOST_ACCESS_ORIGINS", "http://127.0.0.1:8080"),
            (own, "http://127.0.0.1:8080/"),
        ]
    };
    for own in ["SVC_AUTHZ_API_URL", "SVC_OTLP_ENDPOINT"] {
        let variables = variables(own);
        let said = run(&["check-config"], &variables).expect(1);
        assert!(said.out.contains(&format!("({own})")), "{}", said.out);
        let said = run(&["serve"], &variables).expect(78);
        assert!(said.err.contains(&format!("({own})")), "{}", said.err);
    }
    // A collector that asks for a token keeps tenants away by itself.
    let mut with_token = variables("SVC_OTLP_ENDPOINT").to_vec();
    with_token.push(("SVC_OTLP_HEADERS", "x-token=secret"));
    run(&["check-config"], &with_token).expect(0);
}

#[test]
fn the_documents_of_the_settings_are_printed() {
    for (format, has) in [
        ("help", "SVC_HTTP_PORT\n"),
        ("environment", "#SVC_HTTP_PORT=4000"),
        ("manual", ".TH AGENT"),
        ("markdown", "| `SVC_HTTP_PORT` |"),
    ] {
        let said = run(&["settings", "--format", format], &[]).expect(0);
        assert!(said.out.contains(has), "{format}");
    }
    let document = run(&["openapi"], &[]).expect(0).json();
    assert_eq!(document["openapi"], json!("3.1.0"));
    assert!(document["paths"]["/v1/runs"]["post"].is_object());
}

#[test]
fn a_license_of_a_fresh_key_is_signed_and_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let key = file(dir.path(), "issuer.pem", &key_pem(), 0o600);
    let sign = |key: &Path, expiry: [&str; 2]| {
        run(
            &[
                "license",
                "sign",
                "--key",
                key.to_str().unwrap(),
                "--licensee",
                "Example Works",
                "--id",
                "lic-7",
                expiry[0],
                expiry[1],
            ],
            &[],
        )
    };
    let license = sign(&key, ["--days", "90"]).expect(0).out;
    assert!(license.starts_with("svc_lk_"));

    let said = run_with_input(&["license", "inspect"], &license).expect(1);
    assert!(said.out.contains("Example Works"), "{}", said.out);
    assert!(said.out.contains("NOT signed by a key"), "{}", said.out);
    let shown = run_with_input(&["license", "inspect", "--json"], &license)
        .expect(1)
        .json();
    assert_eq!(shown["claims"]["id"], json!("lic-7"));
    assert_eq!(shown["signatureValid"], json!(false));

    // Nor does a server trust it.
    let said = run(
        &["serve"],
        &[
            ("SVC_LICENSE_KEY", license.trim()),
            ("SVC_DATABASE_URL", "postgres://localhost/x"),
        ],
    )
    .expect(78);
    assert!(
        said.err.contains("SVC_LICENSE_KEY was not signed"),
        "{}",
        said.err
    );
    assert!(!said.err.contains(license.trim()));

    let said = sign(&key, ["--expires", "2020-01-01T00:00:00Z"]).expect(1);
    assert!(said.err.contains("expiry"), "{}", said.err);
    let open = file(dir.path(), "open.pem", &key_pem(), 0o640);
    let said = sign(&open, ["--days", "90"]).expect(1);
    assert!(said.err.contains("0640"), "{}", said.err);
    run_with_input(&["license", "inspect"], "svc_lk_cut").expect(1);
}

#[test]
fn migrate_says_what_it_would_do_and_does_it() {
    let url = database();
    let variables = [("SVC_DEV", "1"), ("SVC_DATABASE_URL", url.as_str())];
    let refused = run(&["tenant", "create", "--name", "Early"], &variables).expect(1);
    assert!(refused.err.contains("migrate"), "{}", refused.err);
    let pending = run(&["migrate", "--check"], &variables).expect(0).out;
    assert!(pending.contains("pending: 0001_baseline"), "{pending}");
    let again = run(&["migrate", "--check", "--json"], &variables);
    let planned = again.expect(0).json()["pending"].clone();
    let applied = run(&["migrate", "--json"], &variables).expect(0).json();
    assert_eq!(applied["applied"], planned);
    let said = run(&["migrate", "--check"], &variables).expect(0);
    assert_eq!(said.out, "The schema is up to date.\n");
    // A schema from a later version is refused, by its name.
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let changed = client
        .execute(
            "update agent_runtime_requirements set oldest_binary = '99.0.0'",
            &[],
        )
        .unwrap();
    assert_eq!(changed, 1);
    let said = run(&["migrate", "--check"], &variables).expect(1);
    assert!(said.err.contains("99.0.0"), "{}", said.err);
}

#[test]
fn a_database_that_is_away_is_said() {
    let said = run(
        &["migrate", "--check"],
        &[
            ("SVC_DEV", "1"),
            (
                "SVC_DATABASE_URL",
                "postgres://nobody:hunter2@127.0.0.1:1/none",
            ),
        ],
    )
    .expect(1);
    assert!(said.err.contains("does not answer"), "{}", said.err);
    assert!(!said.err.contains("hunter2"), "{}", said.err);
}

fn key_pem() -> String {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).unwrap();
    let key = SigningKey::from_bytes(&seed);
    key.to_pkcs8_pem(LineEnding::LF).unwrap().to_string()
}

fn file(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn secrets_rewrap_says_what_it_did_and_what_it_could_not_read() {
    let url = database();
    let dir = tempfile::tempdir().unwrap();
    let key = |name: &str, byte: u8| {
        let path = dir.path().join(name);
        fs::write(&path, [byte; 32]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (local, aad) = (key("local", 1), key("aad", 2));
    let mut variables = vec![("SVC_DEV", "1"), ("SVC_DATABASE_URL", url.as_str())];
    let said = run(&["secrets", "rewrap"], &variables).expect(1);
    assert!(said.err.contains("SVC_SECRETS_BACKEND"), "{}", said.err);
    variables.extend([
        ("SVC_SECRETS_BACKEND", "postgres"),
        ("SVC_SECRETS_BACKEND_KMS", "local"),
        ("SVC_SECRETS_LOCAL_KEY_PATH", &local),
        ("SVC_SECRETS_AAD_KEY_PATH", &aad),
    ]);
    let said = run(&["secrets", "rewrap"], &variables).expect(1);
    assert!(said.err.contains("migrate"), "{}", said.err);
    run(&["migrate"], &variables).expect(0);
    let told = run(&["secrets", "rewrap", "--json"], &variables).expect(0);
    let none =
        json!({"versions": 0, "current": 0, "rewrapped": 0, "unreadable": [], "dryRun": false});
    assert_eq!(told.json(), none);
    let create = [
        "tenant", "create", "--name", "a", "--email", "Ada@b", "--json",
    ];
    let tenant = run(&create, &variables).expect(0).json();
    let ids = ["tenantId", "userId"].map(|id| tenant[id].as_str().unwrap().to_owned());
    let insert = format!(
        "insert into secrets values ('{0}', 'prod', 'A', 1, '{1}', now(), now());
         insert into secret_versions values ('{0}', 'prod', 'A', 1, 1, '\\x000000000000000000000000',
           '\\x0000000000000000000000000000000000', 'a key of old', decode(repeat('00', 61), 'hex'),
           '{1}', now(), now())",
        ids[0], ids[1]
    );
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client.batch_execute(&insert).unwrap();
    let email = client.query_one("select email || ' ' || email_key from users", &[]);
    assert_eq!(email.unwrap().get::<_, String>(0), "Ada@b ada@b");
    for arguments in [
        &["secrets", "rewrap"][..],
        &["secrets", "rewrap", "--dry-run"],
    ] {
        let told = run(arguments, &variables).expect(2).out;
        assert!(
            told.contains(&ids[0]) && told.contains("a key of old"),
            "{told}"
        );
        assert!(
            told.contains("1 versions: 0 already wrapped with the present key, 0 "),
            "{told}"
        );
        assert!(told.ends_with("1 could not be read.\n"), "{told}");
    }
}
