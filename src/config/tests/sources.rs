//! Where values come from: variables, files, systemd credentials.

use super::*;
use crate::audit;

#[test]
fn a_secret_comes_from_one_place() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("credentials");
    fs::create_dir(&inside).unwrap();
    let credentials = inside.to_str().unwrap();
    let token = |vars: &Vars| {
        let settings = load(vars, &clock()).unwrap();
        settings
            .tenant
            .seed_token
            .map(|t: Secret| t.expose().to_owned())
    };
    let path = file(dir.path(), "token", "token-from-a-file-1\n", 0o600);
    let by_file = development(&[("SVC_SEED_TOKEN_FILE", &path)]);
    assert_eq!(token(&by_file).as_deref(), Some("token-from-a-file-1"));
    let twice = by_file
        .clone()
        .with("SVC_SEED_TOKEN", "token-from-a-variable");
    assert!(
        faulty(&twice, &["SVC_SEED_TOKEN"])[0]
            .problem
            .contains("SVC_SEED_TOKEN_FILE")
    );

    let credential = file(&inside, "SVC_SEED_TOKEN", "token-of-systemd-123\n", 0o440);
    let by_credential = development(&[("CREDENTIALS_DIRECTORY", credentials)]);
    assert_eq!(
        token(&by_credential).as_deref(),
        Some("token-of-systemd-123")
    );
    let same = by_credential
        .clone()
        .with("SVC_SEED_TOKEN_FILE", &credential);
    assert_eq!(token(&same).as_deref(), Some("token-of-systemd-123"));
    let twice = by_credential.clone().with("SVC_SEED_TOKEN_FILE", &path);
    faulty(&twice, &["SVC_SEED_TOKEN"]);
    file(&inside, "SVC_SEED_TOKN", "x", 0o400);
    file(&inside, "OTHER", "x", 0o400);
    faulty(&by_credential, &["SVC_SEED_TOKN"]);
}

/// As `LoadCredential=credentials:DIRECTORY` hands them over, which is what the packages' unit says.
#[test]
fn a_directory_of_credentials_gives_settings_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let vars = development(&[("CREDENTIALS_DIRECTORY", dir.path().to_str().unwrap())]);
    let loaded = "credentials_SVC_SEED_TOKEN";
    file(dir.path(), loaded, "token-of-a-directory\n", 0o440);
    let key = "credentials_SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH";
    let key = file(dir.path(), key, signing_key_pem(), 0o440);
    let settings = load(&vars, &clock()).unwrap();
    let token = settings.tenant.seed_token.unwrap();
    assert_eq!(token.expose(), "token-of-a-directory");
    assert!(matches!(
        settings.public_token_key,
        PublicTokenKey::Given(_)
    ));
    let same = vars.clone().with("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH", &key);
    assert!(faults(&same).is_empty());
    let other = file(dir.path(), "other.pem", signing_key_pem(), 0o600);
    let twice = vars
        .clone()
        .with("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH", &other);
    let found = faulty(&twice, &["SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH"]);
    assert!(found[0].problem.contains("more than once"), "{}", found[0]);
    // One that was loaded by itself counts before the directory's.
    file(
        dir.path(),
        "SVC_SEED_TOKEN",
        "token-loaded-by-itself",
        0o440,
    );
    let token = load(&vars, &clock()).unwrap().tenant.seed_token.unwrap();
    assert_eq!(token.expose(), "token-loaded-by-itself");
    file(dir.path(), "credentials_SVC_HTTP_PORT", "4000", 0o440);
    faulty(&vars, &["SVC_HTTP_PORT"]);
}

#[test]
fn secret_files_have_their_faults() {
    let dir = tempfile::tempdir().unwrap();
    for (path, says) in [
        (
            file(dir.path(), "open", "token-from-a-file-1", 0o640),
            "0640",
        ),
        (
            file(dir.path(), "latin", b"\xff\xfe\xff\xfe", 0o600),
            "UTF-8",
        ),
        (file(dir.path(), "empty", "\n", 0o600), "empty"),
        ("relative".to_owned(), "absolute"),
        (
            dir.path().join("absent").to_str().unwrap().to_owned(),
            "not there",
        ),
        (dir.path().to_str().unwrap().to_owned(), "plain file"),
    ] {
        let faults = faulty(
            &development(&[("SVC_SEED_TOKEN_FILE", &path)]),
            &["SVC_SEED_TOKEN_FILE"],
        );
        assert!(faults[0].problem.contains(says), "{}", faults[0]);
    }
    let path = file(dir.path(), "short", "abc", 0o600);
    faulty(
        &development(&[("SVC_SEED_TOKEN_FILE", &path)]),
        &["SVC_SEED_TOKEN"],
    );
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe").to_owned();
    for name in ["SVC_SEED_TOKEN", "SVC_HTTP_PORT"] {
        faulty(&development(&[]).with(name, odd.clone()), &[name]);
    }
}

#[test]
fn the_signing_key_comes_as_a_file_or_as_base64() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let dir = tempfile::tempdir().unwrap();
    let pem = signing_key_pem();
    let path = file(dir.path(), "key.pem", &pem, 0o600);
    let public = |vars: &Vars| match load(vars, &clock()).unwrap().public_token_key {
        PublicTokenKey::Given(key) => key.verifying_key(),
        other => panic!("{other:?}"),
    };
    let by_path = development(&[("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH", &path)]);
    let der: String = pem.lines().filter(|l| !l.starts_with('-')).collect();
    for text in [STANDARD.encode(&pem), der] {
        let by_text = development(&[("SVC_PUBLIC_TOKEN_SIGNING_KEY", &text)]);
        assert_eq!(public(&by_path), public(&by_text));
        let both = by_path.clone().with("SVC_PUBLIC_TOKEN_SIGNING_KEY", text);
        let faults = faulty(&both, &["SVC_PUBLIC_TOKEN_SIGNING_KEY"]);
        assert!(
            faults[0]
                .problem
                .contains("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH")
        );
    }
    for (path, says) in [
        (file(dir.path(), "open.pem", &pem, 0o644), "0644"),
        (file(dir.path(), "other.pem", "no key", 0o600), "Ed25519"),
        ("key.pem".to_owned(), "absolute"),
        ("/nowhere/key.pem".to_owned(), "not there"),
    ] {
        let vars = development(&[("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH", &path)]);
        let faults = faulty(&vars, &["SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH"]);
        assert!(faults[0].problem.contains(says), "{}", faults[0]);
    }
}

#[test]
fn the_audit_is_purged_with_a_key_that_signs_it_or_without() {
    let dir = tempfile::tempdir().unwrap();
    let key = file(dir.path(), "audit.pem", signing_key_pem(), 0o600);
    let purging = development(&[("SVC_COMPLIANCE_CLASSIFIER", "shipped")]);
    let retention =
        |vars: &Vars| audit::Options::from_settings(&load(vars, &clock()).unwrap()).retention;
    assert!(retention(&purging).unwrap().key.is_none());
    let signed = purging.with("SVC_AUDIT_SIGNING_KEY_PATH", &key);
    assert!(retention(&signed).unwrap().key.is_some());
    let alone = development(&[("SVC_AUDIT_SIGNING_KEY_PATH", &key)]);
    assert!(retention(&alone).is_none());
    assert!(load(&alone, &clock()).unwrap().audit_signing_key.is_some());
}

#[test]
fn model_keys_are_there_once_and_closed() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().to_str().unwrap();
    let list = "KEY=https://api.example.com";
    let vars = development(&[("SVC_MODEL_KEYS", list), ("SVC_MODEL_KEYS_DIR", keys)]);
    let says = |vars: &Vars, text: &str| {
        let faults = faulty(vars, &["SVC_MODEL_KEYS"]);
        assert!(faults[0].problem.contains(text), "{}", faults[0]);
    };
    says(&vars, "no such file");
    file(dir.path(), "KEY", "sk-12345678", 0o644);
    says(&vars, "0644");
    file(dir.path(), "KEY", "sk 12345678", 0o600);
    says(&vars, "visible ASCII");
    file(dir.path(), "KEY", "sk-12345678\n", 0o600);
    assert!(faults(&vars).is_empty());
    says(&vars.with("KEY", "sk-other"), "more than once");
    faulty(
        &development(&[("SVC_MODEL_KEYS_DIR", keys)]),
        &["SVC_MODEL_KEYS_DIR"],
    );
}
