//! A restore that is killed in the middle.

use super::{Shell, count, text};
use crate::harness::{App, Database, eventually, seeds};
use agent_runtime::ids::Clock;

/// Leaves `pg_restore` after the first part of what it writes, as long as who started it stands.
const STALL: &str = "for last; do :; done
if [ \"$1\" = --list ]; then exec $real \"$@\"; fi
$real \"$@\" | head -c 60000
touch $place/reached
while kill -0 $PPID 2>/dev/null; do sleep 1; done";

/// The connections of psql to the database.
fn psql(database: &Database) -> Vec<postgres::Row> {
    let psql = "select 1 from pg_stat_activity where application_name = 'psql' and datname = current_database()";
    database.client().query(psql, &[]).unwrap()
}

#[test]
fn a_killed_restore_leaves_the_old_state_says_so_and_can_be_run_again() {
    let database = Database::migrated();
    let tenant = |name: &str| {
        let mut client = database.client();
        let text = "insert into tenants (tenant_id, name, created_at) values (gen_random_uuid(), $1, now())";
        client.execute(text, &[&name]).unwrap();
    };
    tenant("before");
    let shell = Shell::on(&database);
    let path = shell.backup("b");
    tenant("after");
    let stalling = Shell::on(&database).in_place_of("pg_restore", STALL);
    let mut running = stalling
        .command(&["restore", text(&path), "--replace"])
        .spawn()
        .unwrap();
    eventually("the restore to be in its middle", || {
        if let Some(status) = running.try_wait().unwrap() {
            panic!("it ended: {status}");
        }
        // psql may be slower than what it is to read.
        let is_begun = !psql(&database).is_empty();
        (is_begun && stalling.path("reached").exists()).then_some(())
    });
    running.kill().unwrap();
    running.wait().unwrap();
    // psql has met the end of its script, without a commit.
    eventually("the transaction to end", || {
        psql(&database).is_empty().then_some(())
    });
    assert_eq!(count(&database, "tenants"), 2);
    let shell = shell.with("SVC_HTTP_PORT", "0");
    let said = shell.run(&["serve"]).expect(78);
    assert!(
        said.err.contains("A restore of this database was begun"),
        "{}",
        said.err
    );
    let said = shell.run(&["migrate", "--check"]).expect(1);
    assert!(
        said.err.contains("agent-runtime restore DIR --replace"),
        "{}",
        said.err
    );
    let said = shell.run(&["backup", text(&shell.path("c"))]).expect(1);
    assert!(
        said.err
            .contains("A restore of this database is not finished"),
        "{}",
        said.err
    );
    shell.restore(&path, &["--replace"]).expect(0);
    assert_eq!(count(&database, "tenants"), 1);
    let clock = Clock::system();
    let seeds = seeds(&clock);
    let app = App::start_on(database, clock, seeds, |_| {});
    app.get("/v1/projects").expect(200);
}

#[test]
fn a_restore_that_fails_leaves_the_old_state() {
    let database = Database::migrated();
    let shell = Shell::on(&database);
    let path = shell.backup("b");
    let failing = Shell::on(&database).in_place_of(
        "pg_restore",
        "if [ \"$1\" = --list ]; then exec $real \"$@\"; fi\n$real \"$@\" | head -c 60000\necho 'pg_restore: error: no luck' >&2\nexit 1",
    );
    let said = failing.restore(&path, &["--replace"]).expect(1);
    assert!(said.err.contains("no luck"), "{}", said.err);
    shell.run(&["migrate", "--check"]).expect(0);
    assert_eq!(
        count(&database, "agent_runtime_migrations"),
        count(&Database::migrated(), "agent_runtime_migrations")
    );
    let wrong = Shell::on(&database).in_place_of(
        "pg_restore",
        "if [ \"$1\" = --list ]; then exec $real \"$@\"; fi\n$real \"$@\" | head -c 60000\necho; echo 'select no_such_function();'",
    );
    let said = wrong.restore(&path, &["--replace"]).expect(1);
    assert!(said.err.contains("psql failed"), "{}", said.err);
    assert_eq!(
        count(&database, "agent_runtime_migrations"),
        count(&Database::migrated(), "agent_runtime_migrations")
    );
    shell.restore(&path, &["--replace"]).expect(0);
    shell.run(&["migrate", "--check"]).expect(0);
}
