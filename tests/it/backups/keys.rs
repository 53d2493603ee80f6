//! Secrets after a restore: read with the same keys, and named keys otherwise.

use super::{Shell, count};
use crate::harness::secrets::{Keys, key};
use crate::harness::{App, Database};
use agent_runtime::secrets::SecretRef;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// The shell with these keys in files.
fn with_keys(shell: Shell, keys: &Keys) -> Shell {
    let file = |name: &str, bytes: &[u8]| {
        let path = shell.path(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (local, aad) = (file("local.key", &keys.local), file("aad.key", &keys.aad));
    shell
        .with("SVC_SECRETS_BACKEND", "postgres")
        .with("SVC_SECRETS_BACKEND_KMS", "local")
        .with("SVC_SECRETS_LOCAL_KEY_PATH", local)
        .with("SVC_SECRETS_AAD_KEY_PATH", aad)
}

#[track_caller]
fn rehearse(shell: &Shell, code: i32, word: &str) {
    let said = shell.run(&["secrets", "rewrap", "--dry-run"]).expect(code);
    assert!(said.out.contains(word), "{}", said.out);
}

fn manifest_names_keys_and_holds_no_value(path: &std::path::Path) {
    let manifest = std::fs::read_to_string(path.join("manifest.json")).unwrap();
    assert!(!manifest.contains("hunter2"));
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["secretVersions"], 1);
    let listed = manifest["keys"].as_array().unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(
        listed[0]["path"].as_str().unwrap().ends_with("aad.key"),
        "{listed:?}"
    );
}

#[test]
fn secrets_are_readable_with_the_same_keys_and_others_are_named() {
    let keys = Keys::new();
    let app = App::start_with(|options| options.secrets = keys.options());
    let put = app.send(
        "PUT",
        "/v1/secrets/prod/KEY",
        Some(json!({"value": "hunter2hunter2"}).to_string()),
        &[],
    );
    put.expect(201);
    let shell = with_keys(Shell::on(&app.database), &keys);
    let path = shell.backup("b");
    manifest_names_keys_and_holds_no_value(&path);

    let target = Database::empty();
    let other = Keys {
        aad: key(),
        ..keys.clone()
    };
    let wrong = with_keys(Shell::on(&target), &other);
    let said = wrong.restore(&path, &[]).expect(1);
    let named = "The key of SVC_SECRETS_AAD_KEY_PATH is not the backup's";
    assert!(
        said.err.contains(named) && said.err.contains("aad.key"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("LOCAL_KEY"), "{}", said.err);
    let none = Shell::on(&target);
    let said = none.restore(&path, &[]).expect(1);
    assert!(
        said.err
            .contains("The key of SVC_SECRETS_LOCAL_KEY_PATH is missing"),
        "{}",
        said.err
    );
    let right = with_keys(Shell::on(&target), &keys);
    right.restore(&path, &["--dry-run"]).expect(0);
    let said = none.restore(&path, &["--without-keys"]).expect(0);
    assert!(
        said.out
            .contains("note: The key of SVC_SECRETS_AAD_KEY_PATH is missing"),
        "{}",
        said.out
    );
    right.restore(&path, &["--replace"]).expect(0);
    // A rehearsal of wrapping anew reads them all, those of the present key as well.
    rehearse(
        &right,
        0,
        "1 versions: 1 already wrapped with the present key",
    );
    rehearse(&wrong, 2, "1 could not be read");
    let at = SecretRef {
        environment: "prod".to_owned(),
        name: "KEY".to_owned(),
    };
    let (_, clock, seeds) = (app.database.clone(), app.clock.clone(), app.seeds.clone());
    let read = |keys: &Keys| {
        let app = App::start_on(target.clone(), clock.clone(), seeds.clone(), |options| {
            options.secrets = keys.options();
        });
        app.server().shared().secrets.resolve(seeds.tenant_id, &at)
    };
    assert_eq!(read(&keys).unwrap().expose(), "hunter2hunter2");
    assert!(read(&other).is_err());
}

#[test]
fn a_key_that_was_rotated_since_counts_as_the_previous_one() {
    let keys = Keys::new();
    let app = App::start_with(|options| options.secrets = keys.options());
    app.send(
        "PUT",
        "/v1/secrets/prod/KEY",
        Some(json!({"value": "a"}).to_string()),
        &[],
    )
    .expect(201);
    let path = with_keys(Shell::on(&app.database), &keys);
    let path = (path.backup("b"), path);
    let rotated = keys.rotated();
    let target = Database::empty();
    let shell = with_previous(with_keys(Shell::on(&target), &rotated), &rotated);
    shell.restore(&path.0, &[]).expect(0);
    wraps_one_anew(&shell);
}

fn with_previous(shell: Shell, keys: &Keys) -> Shell {
    let previous = shell.path("previous.key");
    std::fs::write(&previous, keys.previous.unwrap()).unwrap();
    std::fs::set_permissions(&previous, PermissionsExt::from_mode(0o600)).unwrap();
    shell.with(
        "SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH",
        previous.to_str().unwrap(),
    )
}

#[track_caller]
fn wraps_one_anew(shell: &Shell) {
    let said = shell.run(&["secrets", "rewrap"]).expect(0);
    assert!(said.out.contains("1 wrapped anew"), "{}", said.out);
}

/// The backup is older than the rotation, which has ended: the previous key is no longer set.
#[test]
fn a_backup_from_before_a_rotation_needs_the_retired_key_as_the_previous_one() {
    let keys = Keys::new();
    let app = App::start_with(|options| options.secrets = keys.options());
    let put = json!({"value": "a"}).to_string();
    app.send("PUT", "/v1/secrets/prod/KEY", Some(put), &[])
        .expect(201);
    let shell = with_keys(Shell::on(&app.database), &keys);
    let path = shell.backup("b");
    let (_database, ..) = app.stop();
    let rotated = keys.rotated();
    let shell = with_previous(with_keys(shell, &rotated), &rotated);
    wraps_one_anew(&shell);
    let target = Database::empty();
    let ended = with_keys(Shell::on(&target), &rotated);
    let said = ended.restore(&path, &[]).expect(1);
    let way_back = "name the backup's key in SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH";
    assert!(said.err.contains(way_back), "{}", said.err);
    assert!(said.err.contains("secrets rewrap"), "{}", said.err);
    let again = with_previous(ended, &rotated);
    again.restore(&path, &[]).expect(0);
    wraps_one_anew(&again);
}

#[test]
fn how_many_secrets_are_in_it_is_counted_in_what_was_dumped() {
    let keys = Keys::new();
    let app = App::start_with(|options| options.secrets = keys.options());
    let put = json!({"value": "a"}).to_string();
    app.send("PUT", "/v1/secrets/prod/KEY", Some(put), &[])
        .expect(201);
    // They change while the dump begins.
    let shell = with_keys(Shell::on(&app.database), &keys).in_place_of(
        "pg_dump",
        "\"$(dirname $real)/psql\" -qc 'delete from secrets' >&2 && exec $real \"$@\"",
    );
    let path = shell.backup("b");
    assert_eq!(count(&app.database, "secret_versions"), 0);
    let manifest = std::fs::read_to_string(path.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let target = Database::empty();
    let shell = with_keys(Shell::on(&target), &keys);
    shell.restore(&path, &[]).expect(0);
    let dumped = count(&target, "secret_versions");
    assert_eq!(manifest["secretVersions"], dumped);
}
