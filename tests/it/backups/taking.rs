//! What a backup is, and what becomes of one that is cut off.

use super::{Shell, text};
use crate::harness::openfga::OpenFga;
use crate::harness::{App, Database, eventually};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn entries(path: &Path) -> Vec<String> {
    let names = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_backup_is_private_named_in_full_and_never_written_over() {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let shell = Shell::on(&app.database).with("SVC_AUTHZ_DATABASE_URL", fga.database().url());
    let path = shell.path("b");
    let said = shell.run(&["backup", "--json", text(&path)]).expect(0);
    assert_eq!(
        entries(&path),
        ["manifest.json", "openfga.dump", "runtime.dump"]
    );
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
    for name in entries(&path) {
        let found = std::fs::metadata(path.join(&name)).unwrap();
        assert_eq!(found.mode() & 0o7777, 0o600, "{name}");
    }
    let told = said.json();
    let manifest = &told["manifest"];
    let written = std::fs::read_to_string(path.join("manifest.json")).unwrap();
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(manifest, &written);
    assert_eq!(manifest["program"], env!("CARGO_PKG_VERSION"));
    let migrations = manifest["runtime"]["migrations"].as_array().unwrap();
    assert!(
        migrations.iter().any(|name| name == "0001_baseline"),
        "{migrations:?}"
    );
    assert!(
        manifest["openfga"]["version"].as_i64().unwrap() > 0,
        "{manifest}"
    );
    for (what, file) in [("runtime", "runtime.dump"), ("openfga", "openfga.dump")] {
        let bytes = std::fs::metadata(path.join(file)).unwrap().len();
        assert_eq!(manifest[what]["bytes"], bytes);
        let summed = std::process::Command::new("sha256sum")
            .arg(path.join(file))
            .output();
        let summed = String::from_utf8(summed.unwrap().stdout).unwrap();
        assert!(
            summed.starts_with(manifest[what]["sha256"].as_str().unwrap()),
            "{summed}"
        );
    }
    let again = shell.run(&["backup", text(&path)]).expect(1);
    assert!(
        again.err.contains("not an empty directory"),
        "{}",
        again.err
    );
    assert_eq!(entries(shell.place.path()), ["b"]);
}

#[test]
fn a_backup_needs_no_license_and_no_keys_and_says_what_is_left_out() {
    let database = Database::migrated();
    let shell = Shell::on(&database)
        .with("SVC_DEV", "false")
        .with("SVC_SECRETS_BACKEND", "postgres")
        .with("SVC_SECRETS_BACKEND_KMS", "local")
        .with("SVC_SECRETS_LOCAL_KEY_PATH", "/nonexistent/local.key")
        .with("SVC_SECRETS_AAD_KEY_PATH", "/nonexistent/aad.key");
    let said = shell.run(&["backup", text(&shell.path("b"))]).expect(0);
    assert!(said.out.contains("openfga: left out"), "{}", said.out);
    assert!(said.err.contains("SVC_LICENSE_KEY"), "{}", said.err);
    let shell = shell.with("SVC_DATABASE_POOL_SIZE", "none");
    let said = shell.run(&["backup", text(&shell.path("c"))]).expect(1);
    assert!(said.err.contains("SVC_DATABASE_POOL_SIZE"), "{}", said.err);
    assert!(!said.err.contains("SVC_LICENSE_KEY"), "{}", said.err);
}

#[test]
fn what_there_is_nothing_of_or_no_way_to_is_said_and_leaves_nothing() {
    let empty = Database::empty();
    let shell = Shell::on(&empty);
    let said = shell.run(&["backup", text(&shell.path("b"))]).expect(1);
    assert!(said.err.contains("nothing to back up"), "{}", said.err);
    let url = empty.url();
    let (server, _) = url.rsplit_once('/').unwrap();
    let shell = shell.with("SVC_DATABASE_URL", format!("{server}/no_such_database"));
    let said = shell.run(&["backup", text(&shell.path("b"))]).expect(1);
    assert!(said.err.contains("no_such_database"), "{}", said.err);
    let database = Database::migrated();
    let shell =
        Shell::on(&database).in_place_of("pg_dump", "echo 'pg_dump: error: no luck' >&2; exit 1");
    let said = shell.run(&["backup", text(&shell.path("b"))]).expect(1);
    assert!(said.err.contains("pg_dump: error: no luck"), "{}", said.err);
    assert_eq!(entries(shell.place.path()), ["bin"]);
}

#[test]
fn a_schema_that_no_release_made_is_not_backed_up() {
    let database = Database::migrated();
    database
        .client()
        .batch_execute(
            "update agent_runtime_migrations set name = '0001_tenants' where name = '0001_baseline'",
        )
        .unwrap();
    let shell = Shell::on(&database);
    let said = shell.run(&["backup", text(&shell.path("b"))]).expect(1);
    assert!(
        said.err.contains("from before the first release"),
        "{}",
        said.err
    );
    assert!(!shell.path("b").exists());
}

#[test]
fn a_backup_that_is_told_to_end_takes_its_child_and_its_files_with_it() {
    let database = Database::migrated();
    let url = database
        .url()
        .replacen("agent_runtime@", "agent_runtime:hunter2hunter2@", 1);
    // It stalls with half of the dump written.
    let shell = Shell::on(&database).with("SVC_DATABASE_URL", url).in_place_of(
        "pg_dump",
        "echo \"$@\" > $place/arguments; $real \"$@\" | head -c 1000; echo $$ > $place/pid.new; \
         mv $place/pid.new $place/pid; exec sleep 60",
    );
    let path = shell.path("b");
    let running = shell.command(&["backup", text(&path)]).spawn().unwrap();
    let pid = eventually("the dump to stall", || {
        let pid = std::fs::read_to_string(shell.path("pid")).ok()?;
        Pid::from_raw(pid.trim().parse().unwrap())
    });
    assert!(shell.path("b.partial/runtime.dump").exists());
    let arguments = std::fs::read_to_string(shell.path("arguments")).unwrap();
    assert!(!arguments.contains("hunter2"), "{arguments}");
    let own = Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
    kill_process(own, Signal::TERM).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "agent-runtime: Interrupted.\n");
    assert!(test_kill_process(pid).is_err(), "the child has ended");
    assert_eq!(entries(shell.place.path()), ["arguments", "bin", "pid"]);
}
