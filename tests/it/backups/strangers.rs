//! Databases that a setting names by mistake: another application's, one for both, one in the other's
//! place. None of them is changed, whatever was said.

use super::{Shell, count, text};
use crate::harness::Database;
use crate::harness::openfga::OpenFga;
use std::path::{Path, PathBuf};

/// Another application's database. It uses the same program for its migrations as OpenFGA does.
fn stranger() -> Database {
    let database = Database::empty();
    database
        .client()
        .batch_execute(
            "create table orders (id int); insert into orders values (1);
             create table goose_db_version (version_id bigint, is_applied boolean);
             insert into goose_db_version values (6, true)",
        )
        .unwrap();
    database
}

/// The same database, named otherwise.
fn otherwise(database: &Database) -> String {
    let url = database.url();
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}application_name=another")
}

/// That neither `restore` nor `restore --replace` touches what the settings name.
#[track_caller]
fn refused(shell: &Shell, path: &Path, what: &str) {
    for flags in [&[][..], &["--replace"], &["--replace", "--dry-run"]] {
        let said = shell.restore(path, flags).expect(1);
        assert!(said.err.contains(what), "{flags:?}: {}", said.err);
    }
}

/// A backup of a runtime and an OpenFGA.
fn backed_up(runtime: &Database, fga: &OpenFga) -> (Shell, PathBuf) {
    let shell = Shell::on(runtime).with("SVC_AUTHZ_DATABASE_URL", fga.database().url());
    let path = shell.backup("b");
    (shell, path)
}

#[test]
fn a_stranger_s_database_in_openfga_s_place_is_neither_replaced_nor_backed_up() {
    let (runtime, fga) = (Database::migrated(), OpenFga::own());
    let (shell, path) = backed_up(&runtime, &fga);
    let (stranger, target) = (stranger(), Database::empty());
    let shell = shell.with("SVC_AUTHZ_DATABASE_URL", stranger.url());
    let said = shell.run(&["backup", text(&shell.path("c"))]).expect(1);
    assert!(said.err.contains("is not OpenFGA's"), "{}", said.err);
    let shell = shell.with("SVC_DATABASE_URL", target.url());
    refused(&shell, &path, "holds something and is not OpenFGA's");
    stranger
        .client()
        .batch_execute("drop table goose_db_version")
        .unwrap();
    refused(&shell, &path, "holds something and is not OpenFGA's");
    assert_eq!(count(&stranger, "orders"), 1);
    // Functions are lost with a schema as well.
    let bare = Database::empty();
    bare.client()
        .batch_execute("create function f() returns int language sql as 'select 1'")
        .unwrap();
    let shell = shell.with("SVC_AUTHZ_DATABASE_URL", bare.url());
    refused(&shell, &path, "holds something and is not OpenFGA's");
    let shell = shell.with("SVC_AUTHZ_DATABASE_URL", stranger.url());
    shell.restore(&path, &["--without-openfga"]).expect(0);
    assert_eq!(count(&stranger, "orders"), 1);
}

#[test]
fn a_stranger_s_database_in_the_runtime_s_place_is_not_replaced() {
    let (runtime, fga) = (Database::migrated(), OpenFga::own());
    let (shell, path) = backed_up(&runtime, &fga);
    let stranger = stranger();
    let shell = shell.with("SVC_DATABASE_URL", stranger.url());
    refused(&shell, &path, "holds something and is not this program's");
    assert_eq!(count(&stranger, "orders"), 1);
    // The two settings in each other's place.
    let shell = shell
        .with("SVC_DATABASE_URL", fga.database().url())
        .with("SVC_AUTHZ_DATABASE_URL", runtime.url());
    refused(&shell, &path, "holds something and is not this program's");
}

#[test]
fn one_database_in_both_places_is_neither_restored_nor_backed_up() {
    let (runtime, fga) = (Database::migrated(), OpenFga::own());
    let (shell, path) = backed_up(&runtime, &fga);
    let one = "name one database, and one schema in it";
    let target = Database::empty();
    let shell = shell
        .with("SVC_DATABASE_URL", target.url())
        .with("SVC_AUTHZ_DATABASE_URL", otherwise(&target));
    refused(&shell, &path, one);
    // OpenFGA's tables beside the runtime's.
    let shell = shell
        .with("SVC_DATABASE_URL", runtime.url())
        .with("SVC_AUTHZ_DATABASE_URL", otherwise(&runtime));
    let said = shell.run(&["backup", text(&shell.path("c"))]).expect(1);
    assert!(said.err.contains(one), "{}", said.err);
    // In schemas of their own both have room.
    target.client().batch_execute("create schema fga").unwrap();
    let apart = format!("{}&options=-c%20search_path%3Dfga", otherwise(&target));
    let shell = shell
        .with("SVC_DATABASE_URL", target.url())
        .with("SVC_AUTHZ_DATABASE_URL", apart);
    let said = shell.restore(&path, &[]).expect(1);
    assert!(!said.err.contains(one), "{}", said.err);
    assert!(said.err.contains("in schema public"), "{}", said.err);
}
