//! Restores: of a running service, of two dumps of different ages, and those that are refused.

use super::{Said, Shell, count, text};
use crate::harness::openfga::OpenFga;
use crate::harness::{
    App, Database, NewTool, Puppet, ToolAnswer, ToolServer, authorization, eventually,
};
use agent_runtime::authz::desired_tuples::Object;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Verifies permissions and the record of decisions, as an operator does.
#[track_caller]
fn check_whole(shell: &Shell) {
    let said = shell.run(&["authz", "verify"]).expect(0);
    assert!(said.out.contains("All are equal"), "{}", said.out);
    shell.run(&["audit", "verify"]).expect(0);
}

#[test]
fn a_backup_taken_under_load_restores_to_runs_that_go_on() {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let done = app.start_turn(agent, "a");
    let mut call = puppet.call();
    call.say("Done.");
    call.finish();
    app.finished(&done);
    let id = app.start_turn(agent, "b");
    let mut call = puppet.call();
    call.say("Lost ");
    let shell = Shell::on(&app.database)
        .with("SVC_AUTHZ_API_URL", fga.url())
        .with("SVC_AUTHZ_DATABASE_URL", fga.database().url());
    let path = shell.backup("b");
    // It knows nothing of what came later.
    call.finish();
    app.finished(&id);
    let decisions = count(&app.database, "audit_decisions");
    let (_before, clock, seeds) = app.stop();
    let restored = Database::empty();
    let shell = shell.with("SVC_DATABASE_URL", restored.url());
    let said = shell.restore(&path, &["--replace"]).expect(0);
    assert!(said.out.contains("Restored."), "{}", said.out);
    check_whole(&shell);
    assert!(count(&restored, "audit_decisions") <= decisions);
    let app = App::start_on(restored, clock, seeds, |options| {
        options.authorization = Some(authorization(&fga.url()));
    });
    app.is_in_step();
    assert_eq!(app.output(&done), json!({"text": "Done."}));
    let mut call = puppet.call();
    call.say("Found.");
    call.finish();
    let run = app.finished(&id);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["usage"]["calls"], 2, "the lost call is counted");
    assert_eq!(app.output(&id), json!({"text": "Found."}));
    check_whole(&shell);
}

#[test]
fn a_turn_that_thinks_goes_on_after_a_restore_with_what_its_model_gave() {
    let app = App::start();
    let puppet = Puppet::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("sunny"));
    let (maker, url) = (app.maker(), tool.url());
    let project = maker.project();
    let weather = maker.tool(project, &NewTool::new("weather", &url));
    let agent = maker.agent_of(project, &puppet.base_url(), |version| {
        version.tools = vec![weather];
    });
    let id = app.start_turn(agent, "a");
    let mut call = puppet.call();
    call.think("Which place?");
    let details = json!([{"type": "reasoning.encrypted", "data": "c2VhbGVk", "index": 0}]);
    let given = json!({"reasoning_details": details, "tool_calls": [{"index": 0, "id": "call_1", "type": "function",
        "extra_content": {"google": {"thought_signature": "c2lnbmVk"}},
        "function": {"name": "weather", "arguments": "{}"}}]});
    call.event(&json!({"choices": [{"index": 0, "delta": given}]}));
    call.finish_for("tool_calls");
    let mut lost = puppet.call();
    lost.think("Lost.");
    let shell = Shell::on(&app.database);
    let path = shell.backup("b");
    let (_before, clock, seeds) = app.stop_within(Duration::from_millis(300));
    drop(lost);
    let restored = Database::empty();
    let shell = shell.with("SVC_DATABASE_URL", restored.url());
    shell.restore(&path, &["--replace"]).expect(0);
    let app = App::start_on(restored, clock, seeds, |_| {});
    let mut call = puppet.call();
    let message = call.body["messages"][2].clone();
    assert_eq!(message["reasoning_content"], json!("Which place?"));
    assert_eq!(message["reasoning_details"], details, "{message}");
    let signature = &message["tool_calls"][0]["extra_content"]["google"]["thought_signature"];
    assert_eq!(*signature, json!("c2lnbmVk"), "{message}");
    call.think("Now I know.").say("It is sunny.");
    call.finish();
    let run = app.finished(&id);
    assert_eq!(run["status"], "completed", "{run}");
    let steps = app
        .get(&format!("/v1/runs/{id}/steps?order=asc"))
        .expect(200);
    let thought = |step: usize| steps["data"][step]["result"]["reasoning"].clone();
    assert_eq!(
        (thought(0), thought(2)),
        (json!("Which place?"), json!("Now I know."))
    );
    assert_eq!(tool.asked().len(), 1, "the call was not made again");
}

#[test]
fn runs_that_were_held_at_the_backup_are_held_after_the_restore() {
    let database = Database::migrated();
    let shell = Shell::on(&database);
    shell.run(&["runs", "hold"]).expect(0);
    let path = shell.backup("b");
    shell.run(&["runs", "release"]).expect(0);
    assert_eq!(count(&database, "run_hold"), 0);
    shell.restore(&path, &["--replace"]).expect(0);
    assert_eq!(count(&database, "run_hold"), 1);
    let said = shell.run(&["runs", "hold"]).expect(0);
    assert!(said.out.contains("were held already"), "{}", said.out);
}

/// Two backups of one service, between which a person lost a role and another got one.
struct Two {
    fga: OpenFga,
    shell: Shell,
    older: PathBuf,
    newer: PathBuf,
}

fn two() -> Two {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let (leaver, joiner) = (world.person("member"), world.person("member"));
    let project = world.project(None);
    world.join(project, leaver, "editor");
    let told = |world: &mut crate::harness::World| {
        eventually("the reconciler to tell them", || {
            (world.unapplied() == 0).then_some(())
        });
    };
    told(&mut world);
    let shell = Shell::on(&app.database)
        .with("SVC_AUTHZ_API_URL", fga.url())
        .with("SVC_AUTHZ_DATABASE_URL", fga.database().url());
    let older = shell.backup("older");
    world.leave(project, leaver);
    world.join(project, joiner, "viewer");
    told(&mut world);
    assert!(
        app.may(joiner, "can_read", Object::Project(project))
            .unwrap()
    );
    let newer = shell.backup("newer");
    // It would keep its own tuples in the store that is restored.
    app.stop();
    Two {
        fga,
        shell,
        older,
        newer,
    }
}

/// A backup with the runtime's dump of one and the authorization server's of another.
fn mixed(shell: &Shell, runtime: &Path, openfga: &Path) -> PathBuf {
    let path = shell.path("mixed");
    std::fs::create_dir(&path).unwrap();
    let manifest = |from: &Path| -> serde_json::Value {
        let text = std::fs::read_to_string(from.join("manifest.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let mut made = manifest(runtime);
    made["openfga"] = manifest(openfga)["openfga"].clone();
    std::fs::write(path.join("manifest.json"), made.to_string()).unwrap();
    std::fs::copy(runtime.join("runtime.dump"), path.join("runtime.dump")).unwrap();
    std::fs::copy(openfga.join("openfga.dump"), path.join("openfga.dump")).unwrap();
    path
}

/// Restores the mixture; what the comparison added and removed.
fn restored(two: &Two, runtime: &Path, openfga: &Path) -> (u64, u64) {
    let path = mixed(&two.shell, runtime, openfga);
    let target = Database::empty();
    let shell = Shell::on(&target)
        .with("SVC_AUTHZ_API_URL", two.fga.url())
        .with("SVC_AUTHZ_DATABASE_URL", two.fga.database().url());
    let said = shell.restore(&path, &["--replace", "--json"]).expect(0);
    check_whole(&shell);
    let told = said.json();
    let number = |name: &str| told["permissions"][name].as_u64().unwrap();
    (number("added"), number("removed"))
}

#[test]
fn a_runtime_older_than_its_openfga_takes_back_what_it_does_not_know() {
    let two = two();
    let (added, removed) = restored(&two, &two.older, &two.newer);
    assert!(added >= 1 && removed >= 1, "{added} {removed}");
}

#[test]
fn an_openfga_older_than_its_runtime_is_told_what_it_missed() {
    let two = two();
    let (added, removed) = restored(&two, &two.newer, &two.older);
    assert!(added >= 1 && removed >= 1, "{added} {removed}");
}

#[test]
fn without_a_dump_of_openfga_its_stores_are_made_again() {
    let two = two();
    // Its database is lost as a whole.
    let other = OpenFga::own();
    let target = Database::empty();
    let shell = Shell::on(&target).with("SVC_AUTHZ_API_URL", other.url());
    let said = shell.restore(&two.newer, &[]).expect(0);
    assert!(
        said.out.contains("rebuilt from the runtime's database"),
        "{}",
        said.out
    );
    check_whole(&shell);
}

#[test]
fn a_dump_of_openfga_before_its_upgrade_is_put_back_and_upgraded_again() {
    let fga = OpenFga::own_at("1.9.0");
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let shell = Shell::on(&app.database)
        .with("SVC_AUTHZ_API_URL", fga.url())
        .with("SVC_AUTHZ_DATABASE_URL", fga.database().url());
    let path = shell.backup("b");
    app.stop();
    fga.change_version("1.22.1");
    let target = Database::empty();
    let shell = shell.with("SVC_DATABASE_URL", target.url());
    let said = shell.restore(&path, &["--replace"]).expect(0);
    assert!(said.out.contains("run openfga migrate"), "{}", said.out);
    check_whole(&shell);
    fga.change_version("1.22.1");
    check_whole(&shell);
}

#[test]
fn an_openfga_that_is_away_leaves_a_restore_that_says_what_is_left_to_do() {
    let two = two();
    let target = Database::empty();
    let shell = Shell::on(&target).with("SVC_AUTHZ_API_URL", two.fga.url());
    two.fga.kill();
    let said = shell.restore(&two.older, &["--without-openfga"]).expect(1);
    assert!(
        said.err.contains("agent-runtime authz repair"),
        "{}",
        said.err
    );
    shell.run(&["migrate", "--check"]).expect(0);
    two.fga.start();
    shell.run(&["authz", "repair"]).expect(0);
    check_whole(&shell);
}

/// That a restore is refused with this, and has changed nothing.
#[track_caller]
fn refused(shell: &Shell, path: &Path, flags: &[&str], what: &str) -> Said {
    let said = shell.restore(path, flags).expect(1);
    assert!(said.err.contains(what), "{}", said.err);
    said
}

#[test]
fn a_damaged_backup_is_refused_before_anything_is_changed() {
    let database = Database::migrated();
    let shell = Shell::on(&database);
    let path = shell.backup("b");
    database
        .client()
        .batch_execute("insert into tenants (tenant_id, name, created_at) values (gen_random_uuid(), 'later', now())")
        .unwrap();
    let dump = path.join("runtime.dump");
    let whole = std::fs::read(&dump).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [&flipped[..], &whole[..whole.len() - 1], b""] {
        std::fs::write(&dump, damaged).unwrap();
        let said = refused(&shell, &path, &["--replace"], "is damaged");
        assert!(said.err.contains("Nothing was changed"), "{}", said.err);
    }
    std::fs::remove_file(&dump).unwrap();
    refused(&shell, &path, &["--replace"], "runtime.dump: No such file");
    std::fs::write(&dump, &whole).unwrap();
    let manifest = path.join("manifest.json");
    let good = std::fs::read_to_string(&manifest).unwrap();
    for (wrong, what) in [
        ("{}".to_owned(), "no manifest"),
        (
            good.replacen("\"format\": 1", "\"format\": 2", 1),
            "later version",
        ),
        (
            good.replacen("\"file\": \"runtime.dump\"", "\"file\": \"../x\"", 1),
            "cannot be in a backup",
        ),
        (
            good.replacen("\"oldestProgram\": \"", "\"oldestProgram\": \"9", 1),
            "or later; this is",
        ),
        (
            good.replacen("\"0001_baseline\"", "\"0001_tenants\"", 1),
            "from before the first release",
        ),
        (
            good.replacen("\"postgresqlNumber\": ", "\"postgresqlNumber\": 9", 1),
            "or later",
        ),
    ] {
        assert_ne!(wrong, good);
        std::fs::write(&manifest, wrong).unwrap();
        refused(&shell, &path, &["--replace"], what);
    }
    std::fs::remove_file(&manifest).unwrap();
    refused(&shell, &path, &["--replace"], "no whole backup");
    assert_eq!(count(&database, "tenants"), 1);
    std::fs::write(&manifest, good).unwrap();
    refused(&shell, &path, &[], "is not empty");
    shell.restore(&path, &["--replace", "--dry-run"]).expect(0);
    assert_eq!(count(&database, "tenants"), 1);
    shell.restore(&path, &["--replace"]).expect(0);
    assert_eq!(count(&database, "tenants"), 0);
}

#[test]
fn a_database_that_is_served_is_not_replaced() {
    let app = App::start();
    let shell = Shell::on(&app.database);
    let path = shell.backup("b");
    let said = refused(&shell, &path, &["--replace"], "The database is in use");
    assert!(
        said.err.contains("agent-runtime (role agent_runtime"),
        "{}",
        said.err
    );
    app.get("/v1/projects").expect(200);
    // Nothing is left that would keep the server from its next start.
    drop(App::start_on(
        app.database.clone(),
        app.clock.clone(),
        app.seeds.clone(),
        |_| {},
    ));
}

#[test]
fn who_is_about_to_end_is_waited_for() {
    let database = Database::migrated();
    let shell = Shell::on(&database);
    let path = shell.backup("b");
    let is_restored = || {
        let mut client = database.client();
        let mut restoring = shell
            .command(&["restore", text(&path), "--replace"])
            .spawn()
            .unwrap();
        eventually("it to look who is connected, or to refuse", || {
            let begun = client.query_one(
                include_str!("../../../sql/queries/schema/is_in_restore.sql"),
                &[],
            );
            let is_begun: bool = begun.unwrap().get(0);
            (is_begun || restoring.try_wait().unwrap().is_some()).then_some(())
        });
        let looks = "select query_start::text from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid() and query like '%client backend%'";
        let mut seen = std::collections::BTreeSet::new();
        eventually("some of its looks, or its refusal", || {
            let rows = client.query(looks, &[]).unwrap();
            seen.extend(rows.iter().map(|row| row.get::<_, String>(0)));
            let is_over = restoring.try_wait().unwrap().is_some();
            (seen.len() > 2 || is_over).then_some(())
        });
        drop(client);
        restoring.wait_with_output().unwrap().status.success()
    };
    // A busy machine may be too late with the end of the connection.
    assert!((0..4).any(|_| is_restored()));
}

#[test]
fn what_stands_in_the_way_and_was_made_since_goes_and_an_extension_stays() {
    let database = Database::migrated();
    let shell = Shell::on(&database);
    let path = shell.backup("b");
    database
        .client()
        .batch_execute(
            "create table made_since (tenant_id uuid references tenants);
             create view seen_since as select * from made_since;
             create function since() returns int language sql as 'select 1';
             create type kind_since as enum ('a');
             create extension pg_trgm;
             drop table webhook_attempts",
        )
        .unwrap();
    shell.restore(&path, &["--replace"]).expect(0);
    let found = |name: &str| -> bool {
        let mut client = database.client();
        let row = client.query_one("select to_regclass($1) is not null", &[&name]);
        row.unwrap().get(0)
    };
    assert!(!found("made_since") && !found("seen_since") && found("webhook_attempts"));
    let mut client = database.client();
    let row = client.query_one(
        "select similarity('a', 'a') = 1 and to_regproc('since') is null and to_regtype('kind_since') is null",
        &[],
    );
    assert!(row.unwrap().get::<_, bool>(0));
    drop(client);
    let said = shell.run(&["migrate", "--check"]).expect(0);
    assert_eq!(said.out, "The schema is up to date.\n");
    assert_eq!(text(&path), shell.path("b").to_str().unwrap());
}

#[test]
fn a_tenant_of_the_settings_that_is_not_in_the_backup_is_told() {
    let app = App::start();
    let shell = Shell::on(&app.database);
    let path = shell.backup("b");
    let (_database, clock, seeds) = app.stop();
    let manifest = std::fs::read_to_string(path.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["tenants"], json!([seeds.tenant_id]));
    let target = Database::empty();
    let named = |tenant_id: uuid::Uuid| {
        let shell = Shell::on(&target).with("SVC_TENANT_ID", tenant_id.to_string());
        shell.restore(&path, &["--dry-run"]).expect(0).out
    };
    let said = named(clock.new_id());
    let oldest = format!("oldest tenant is {}", seeds.tenant_id);
    assert!(
        said.contains("note: SVC_TENANT_ID is") && said.contains(&oldest),
        "{said}"
    );
    let said = named(seeds.tenant_id);
    assert!(!said.contains("SVC_TENANT_ID"), "{said}");
}

/// An installation some years old has thousands of partitions, and a restore locks all of them until it commits.
#[test]
fn a_restore_that_needs_more_locks_than_the_server_has_is_refused_with_the_value_to_set() {
    let app = App::start();
    let from = Shell::on(&app.database);
    let path = from.backup("b");
    let target = Database::empty();
    let list = "if [ \"$1\" = --list ]; then
  yes '215; 1259 16385 TABLE public runs owner' | head -n 1000000; exit; fi
exec $real \"$@\"";
    let shell = Shell::on(&target).in_place_of("pg_restore", list);
    let said = shell.restore(&path, &[]).expect(1);
    let row = target.client().query_one(
        "select ceil(1250000.0 / (current_setting('max_connections')::int
           + current_setting('max_prepared_transactions')::int))::bigint",
        &[],
    );
    let wanted: i64 = row.unwrap().get(0);
    let wanted = format!("Set max_locks_per_transaction = {wanted} ");
    assert!(said.err.contains(&wanted), "{}", said.err);
    // The real one has room.
    Shell::on(&target).restore(&path, &["--dry-run"]).expect(0);
}
