//! No secret is shown, whatever the environment.

use super::*;
use proptest::prelude::*;

fn all_texts(vars: &Vars) -> Vec<String> {
    let report = check(vars, &clock());
    let reading = read::read(vars, &clock(), &TrustedKeys::default());
    let mut texts = vec![
        format!("{vars:?}"),
        format!("{report:?}"),
        report.text(),
        serde_json::to_string(&report).unwrap(),
        format!("{reading:?}"),
    ];
    match load(vars, &clock()) {
        Ok(settings) => texts.push(format!("{settings:?}")),
        Err(faults) => texts.extend(faults.iter().map(Fault::to_string)),
    }
    texts
}

#[test]
fn a_whole_environment_of_secrets_shows_none() {
    let dir = tempfile::tempdir().unwrap();
    let pem = SigningKey::from_bytes(&[9; 32])
        .to_pkcs8_pem(LineEnding::LF)
        .unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let (license_pem, _) = key_pair();
    let license = license::sign(&claims(100), &license_pem).unwrap();
    let token = file(dir.path(), "token", "file-secret-file-secret", 0o600);
    let vars = development(&[
        ("SVC_DATABASE_URL", "postgres://u:url-secret@db/x"),
        ("SVC_SEED_TOKEN_FILE", &token),
        ("SVC_PUBLIC_TOKEN_SIGNING_KEY", &body),
        ("SVC_LICENSE_KEY", &license),
        ("SVC_MODEL_KEYS", "KEY=https://a.com"),
        ("KEY", "model-secret"),
        ("SVC_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("SVC_OTLP_HEADERS", "authorization=Bearer%20otlp-secret"),
    ]);
    assert!(load(&vars, &clock()).is_ok());
    let reading = read::read(&vars, &clock(), &TrustedKeys::default());
    assert!(value(&reading.rows, "SVC_PUBLIC_TOKEN_SIGNING_KEY").is_some());
    for text in all_texts(&vars) {
        for secret in [
            "url-secret",
            "file-secret",
            &body,
            &license[20..],
            "model-secret",
            "otlp-secret",
            "9, 9, 9",
        ] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever is given for whatever setting: no panic, and no secret's value in any text.
    #[test]
    fn no_environment_panics_or_shows_a_secret(
        given in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..6, ".{0,40}"), 0..12),
        development in any::<bool>(),
    ) {
        let mut vars = Vars::default();
        let marker = "QuiteSecretMarker";
        if development {
            vars = vars.with("SVC_DEV", "1");
        }
        let names: Vec<_> = table::settings().collect();
        for (index, form, text) in given {
            let setting = names[index.index(names.len())];
            let text = text.replace('\0', "");
            vars = match (form, setting.secret) {
                (0, true) => vars.with(setting.name, format!("{marker}{text}")),
                (1, true) => vars.with(setting.name, format!("postgres://u:{marker}@h/{text}")),
                (2, true) => vars.with(setting.name, format!("svc_lk_{marker}.{text}")),
                (3, true) => vars.with(setting.file_name(), text),
                (4, _) => vars.with(format!("SVC_{text}").replace('=', ""), marker),
                (_, true) => vars.with(setting.name, format!("{text}{marker}{text}")),
                (_, false) => vars.with(setting.name, text),
            };
        }
        for text in all_texts(&vars) {
            prop_assert!(!text.contains(marker), "{}", text);
        }
    }
}
