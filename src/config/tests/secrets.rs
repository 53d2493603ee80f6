//! The settings of secrets together.

use super::*;

const LOCAL: [(&str, &str); 2] = [
    ("SVC_SECRETS_BACKEND", "postgres"),
    ("SVC_SECRETS_BACKEND_KMS", "local"),
];
const CLOUD_A: [(&str, &str); 2] = [
    ("SVC_SECRETS_BACKEND", "postgres"),
    ("SVC_SECRETS_BACKEND_KMS", "cloud-a"),
];
const KEY_TEXT: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

fn key(dir: &Path, byte: u8) -> String {
    file(dir, &format!("key-{byte}"), [byte; 32], 0o600)
}

fn with(vars: &[(&str, &str)], more: &[(&str, &str)]) -> Vars {
    development(&[vars, more].concat())
}

#[test]
fn a_backend_needs_what_it_reads() {
    let postgres = development(&[("SVC_SECRETS_BACKEND", "postgres")]);
    faulty(
        &postgres,
        &["SVC_SECRETS_BACKEND_KMS", "SVC_SECRETS_AAD_KEY_PATH"],
    );
    let faults = faulty(
        &development(&LOCAL),
        &["SVC_SECRETS_LOCAL_KEY_PATH", "SVC_SECRETS_AAD_KEY_PATH"],
    );
    assert!(faults[0].remedy.contains("head -c 32"), "{}", faults[0]);
    faulty(
        &with(&CLOUD_A, &[("SVC_SECRETS_AAD_KEY", KEY_TEXT)]),
        &[
            "SVC_SECRETS_KMS_PROJECT_ID",
            "SVC_SECRETS_KMS_LOCATION",
            "SVC_SECRETS_KMS_KEYRING_ID",
            "SVC_SECRETS_KMS_KEY_ID",
        ],
    );
    faulty(
        &development(&[("SVC_SECRETS_BACKEND", "dotenv")]),
        &["SVC_SECRETS_DOTENV_DIR"],
    );
    for vendor in ["cloud-b", "cloud-c"] {
        let vars = development(&[
            ("SVC_SECRETS_BACKEND", "postgres"),
            ("SVC_SECRETS_BACKEND_KMS", vendor),
            ("SVC_SECRETS_AAD_KEY", KEY_TEXT),
        ]);
        let faults = faulty(&vars, &["SVC_SECRETS_BACKEND_KMS"]);
        assert!(faults[0].problem.contains("reserved"), "{}", faults[0]);
    }
    let reserved = development(&[("SVC_SECRETS_BACKEND", "secret-manager")]);
    let faults = faulty(&reserved, &["SVC_SECRETS_BACKEND"]);
    assert!(faults[0].problem.contains("reserved"), "{}", faults[0]);
}

#[test]
fn what_nothing_reads_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (key(dir.path(), 1), key(dir.path(), 2));
    for (name, value) in [
        ("SVC_SECRETS_DOTENV_DIR", "/secrets"),
        ("SVC_SECRETS_DOTENV_FILES", ".env"),
        ("SVC_SECRETS_BACKEND_KMS", "local"),
        ("SVC_SECRETS_AAD_KEY", KEY_TEXT),
        ("SVC_SECRETS_AAD_KEY_PATH", &one),
        ("SVC_SECRETS_LOCAL_KEY_PATH", &one),
        ("SVC_SECRETS_KMS_PROJECT_ID", "p"),
        ("SVC_SECRETS_KMS_BASE_URL", "http://kms"),
    ] {
        let faults = faulty(&development(&[(name, value)]), &[name]);
        assert!(faults[0].problem.contains("is read with"), "{}", faults[0]);
    }
    let local = [
        ("SVC_SECRETS_LOCAL_KEY_PATH", one.as_str()),
        ("SVC_SECRETS_AAD_KEY_PATH", two.as_str()),
    ];
    assert!(faults(&with(&LOCAL, &local)).is_empty());
    let vars = with(&LOCAL, &local).with("SVC_SECRETS_KMS_LOCATION", "global");
    let faults = faulty(&vars, &["SVC_SECRETS_KMS_LOCATION"]);
    assert!(faults[0].problem.contains("=cloud-a"), "{}", faults[0]);
}

#[test]
fn the_keys_of_the_vendor_local_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two, three] = [1, 2, 3].map(|byte| key(dir.path(), byte));
    let vars = with(
        &LOCAL,
        &[
            ("SVC_SECRETS_LOCAL_KEY_PATH", &one),
            ("SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH", &two),
            ("SVC_SECRETS_AAD_KEY_PATH", &three),
        ],
    );
    let settings = load(&vars, &clock()).unwrap();
    let Secrets::Postgres {
        kms: Kms::Local { key, previous },
        aad_key,
    } = settings.secrets
    else {
        panic!("{:?}", settings.secrets);
    };
    let texts =
        [Some(key), previous, Some(aad_key)].map(|key| key.unwrap().expose()[..4].to_owned());
    assert_eq!(texts, ["AQEB", "AgIC", "AwMD"]);
    for (name, other) in [
        (
            "SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH",
            "SVC_SECRETS_LOCAL_KEY_PATH",
        ),
        ("SVC_SECRETS_AAD_KEY_PATH", "SVC_SECRETS_LOCAL_KEY_PATH"),
    ] {
        let faults = faulty(&vars.clone().with(name, &one), &[name]);
        assert!(faults[0].problem.contains(other), "{}", faults[0]);
    }
    let both = vars.clone().with("SVC_SECRETS_AAD_KEY", KEY_TEXT);
    faulty(&both, &["SVC_SECRETS_AAD_KEY"]);
    let open = file(dir.path(), "open", [4; 32], 0o644);
    let faults = faulty(
        &vars.with("SVC_SECRETS_LOCAL_KEY_PATH", open),
        &["SVC_SECRETS_LOCAL_KEY_PATH"],
    );
    assert!(faults[0].problem.contains("0644"), "{}", faults[0]);
}

#[test]
fn the_aad_key_has_32_bytes_in_a_private_file() {
    let dir = tempfile::tempdir().unwrap();
    let local = key(dir.path(), 1);
    let vars = with(&LOCAL, &[("SVC_SECRETS_LOCAL_KEY_PATH", &local)]);
    for (name, bytes, mode, problem) in [
        ("short", 31, 0o600, "31 bytes instead of 32"),
        ("long", 33, 0o600, "33 bytes instead of 32"),
        ("open", 32, 0o644, "0644"),
        ("group", 32, 0o640, "0640"),
    ] {
        let path = file(dir.path(), name, vec![7; bytes], mode);
        let vars = vars.clone().with("SVC_SECRETS_AAD_KEY_PATH", path);
        let faults = faulty(&vars, &["SVC_SECRETS_AAD_KEY_PATH"]);
        assert!(faults[0].problem.contains(problem), "{}", faults[0]);
    }
    let short = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBw==";
    faulty(
        &vars.clone().with("SVC_SECRETS_AAD_KEY", short),
        &["SVC_SECRETS_AAD_KEY"],
    );
    load(&vars.with("SVC_SECRETS_AAD_KEY", KEY_TEXT), &clock()).unwrap();
}

#[test]
fn a_systemd_credential_holds_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("credentials");
    fs::create_dir(&inside).unwrap();
    // systemd makes them readable for the unit alone, by other means than the mode.
    let local = file(&inside, "secrets-key", [1; 32], 0o440);
    file(&inside, "SVC_SECRETS_AAD_KEY", KEY_TEXT, 0o440);
    let vars = with(
        &LOCAL,
        &[
            ("CREDENTIALS_DIRECTORY", inside.to_str().unwrap()),
            ("SVC_SECRETS_LOCAL_KEY_PATH", &local),
        ],
    );
    let settings = load(&vars, &clock()).unwrap();
    assert!(matches!(settings.secrets, Secrets::Postgres { .. }));
}

#[test]
fn cloud_a_takes_its_credentials_from_the_setting_or_the_usual_variable() {
    let four = [
        ("SVC_SECRETS_KMS_PROJECT_ID", "p"),
        ("SVC_SECRETS_KMS_LOCATION", "l"),
        ("SVC_SECRETS_KMS_KEYRING_ID", "r"),
        ("SVC_SECRETS_KMS_KEY_ID", "k"),
        ("SVC_SECRETS_AAD_KEY", KEY_TEXT),
    ];
    let file = |vars: &Vars| {
        let Secrets::Postgres {
            kms:
                Kms::CloudA {
                    key,
                    credentials,
                    base_url,
                    metadata_url,
                },
            ..
        } = load(vars, &clock()).unwrap().secrets
        else {
            panic!("cloud-a");
        };
        assert_eq!(
            key.map(|part| part.expose().to_owned()),
            ["p", "l", "r", "k"]
        );
        assert!(base_url.starts_with("https://") && metadata_url.starts_with("http://"));
        credentials.map(|(path, named)| (path.to_str().unwrap().to_owned(), named))
    };
    let vars = with(&CLOUD_A, &four);
    assert_eq!(file(&vars), None);
    let usual = vars.with("GOOGLE_APPLICATION_CREDENTIALS", "/usual.json");
    let found = file(&usual).unwrap();
    assert_eq!(
        found,
        ("/usual.json".to_owned(), "GOOGLE_APPLICATION_CREDENTIALS")
    );
    let own = usual.with("SVC_SECRETS_KMS_CREDENTIALS_PATH", "/own.json");
    let found = file(&own).unwrap();
    assert_eq!(
        found,
        ("/own.json".to_owned(), "SVC_SECRETS_KMS_CREDENTIALS_PATH")
    );
}

#[test]
fn the_backend_dotenv_has_defaults() {
    let vars = development(&[
        ("SVC_SECRETS_BACKEND", "dotenv"),
        ("SVC_SECRETS_DOTENV_DIR", "/secrets"),
    ]);
    let read = |vars: &Vars| match load(vars, &clock()).unwrap().secrets {
        Secrets::Dotenv {
            directory,
            files,
            environment,
        } => (directory, files, environment),
        other => panic!("{other:?}"),
    };
    let (directory, files, environment) = read(&vars);
    assert_eq!(directory, Path::new("/secrets"));
    assert_eq!(files, [".env", ".env.local"]);
    assert_eq!(environment, "local");
    assert_eq!(read(&vars.with("SVC_ENVIRONMENT", "mine")).2, "mine");
    assert!(faults(&development(&[("SVC_ENVIRONMENT", "prod")])).is_empty());
}

#[test]
fn a_key_that_dev_made_is_refused_outside_development() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, byte: u8| {
        let content = development_key(&[byte; 32]);
        file(dir.path(), name, content.as_slice(), 0o600)
    };
    let (key, aad) = (made("key", 1), made("aad", 2));
    let vars = [
        LOCAL[0],
        LOCAL[1],
        ("SVC_SECRETS_LOCAL_KEY_PATH", key.as_str()),
        ("SVC_SECRETS_AAD_KEY_PATH", aad.as_str()),
    ];
    let settings = load(&development(&vars), &clock()).unwrap();
    let Secrets::Postgres { aad_key, .. } = settings.secrets else {
        panic!("{:?}", settings.secrets);
    };
    assert_eq!(aad_key.expose()[..4], *"AgIC");
    let (vars, trusted) = production(&vars);
    let faults = load_trusting(&vars, &clock(), &trusted).unwrap_err();
    for name in ["SVC_SECRETS_LOCAL_KEY_PATH", "SVC_SECRETS_AAD_KEY_PATH"] {
        let fault = faults.iter().find(|fault| fault.setting == name).unwrap();
        assert!(fault.problem.contains("development only"), "{fault}");
    }
}

#[test]
fn tools_get_the_secrets_of_the_environment_that_is_set_and_of_local_in_development() {
    let environment = |vars: &Vars| load(vars, &clock()).unwrap().environment;
    assert_eq!(environment(&development(&[])).as_deref(), Some("local"));
    let named = development(&[("SVC_ENVIRONMENT", "mine")]);
    assert_eq!(environment(&named).as_deref(), Some("mine"));
}
