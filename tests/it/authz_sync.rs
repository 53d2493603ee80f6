//! Keeping the authorization server in step with Postgres: what is changed, what is lost on the way,
//! what differs, and the commands that look and repair.

use crate::authz_store::client;
use crate::harness::openfga::{OpenFga, Relay};
use crate::harness::{App, Database, PATIENCE, World, authorization, eventually, within};
use agent_runtime::authz::desired_tuples::Object;
use agent_runtime::authz::fga::{Pinned, Tuple};
use agent_runtime::authz::report::Report;
use agent_runtime::error::{Code, Error};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use uuid::Uuid;

fn verify(app: &App) -> Report {
    let tenant_id = app.seeds.tenant_id;
    app.permissions()
        .verify(tenant_id, 20, &mut |_| {})
        .unwrap()
}

#[track_caller]
fn check_equal(app: &App) {
    let report = verify(app);
    assert!(report.is_equal(), "{report:?}");
}

fn pinned(world: &mut World) -> Pinned {
    let (store_id, model_id, _) = world.tenant_store().unwrap();
    Pinned { store_id, model_id }
}

fn tuple(user: Uuid, relation: &str, object: Object) -> Tuple {
    Tuple {
        user: format!("user:{user}"),
        relation: relation.to_owned(),
        object: object.to_string(),
    }
}

/// What the user may do to the object: read, write, admin.
#[track_caller]
fn may(app: &App, user: Uuid, object: Object) -> [bool; 3] {
    ["can_read", "can_write", "can_admin"].map(|relation| app.may(user, relation, object).unwrap())
}

/// As [`may`], once OpenFGA is seen to be back.
fn may_soon(app: &App, user: Uuid, object: Object) -> [bool; 3] {
    ["can_read", "can_write", "can_admin"].map(|relation| app.may_soon(user, relation, object))
}

/// A server that waits three seconds for OpenFGA.
fn start_hasty(url: &str) -> App {
    let mut options = authorization(url);
    options.timeout = Duration::from_secs(3);
    App::start_with(|all| all.authorization = Some(options))
}

const NOTHING: [bool; 3] = [false, false, false];
const READ: [bool; 3] = [true, false, false];
const WRITE: [bool; 3] = [true, true, false];
const ADMIN: [bool; 3] = [true, true, true];

/// Whether any tuple of the tenant names the user.
fn is_named(world: &mut World, user: Uuid) -> bool {
    let (mut is_named, user) = (false, format!("user:{user}"));
    client(&OpenFga::shared().url())
        .read_all(&pinned(world).store_id, &mut |tuple| {
            is_named |= tuple.user == user;
            true
        })
        .unwrap();
    is_named
}

#[test]
fn every_way_into_every_kind_of_object_follows_postgres() {
    let app = App::start_authorized();
    let mut world = app.world();
    let org = world.org();
    let (inside, outside) = (world.project(Some(org)), world.project(None));
    let team = world.team();
    world.grant(outside, team, "editor");
    let [admin, head, lead, mate, owner, old, direct] = [
        "admin", "member", "member", "member", "member", "member", "member",
    ]
    .map(|role| world.person(role));
    world.change(
        "insert into org_admins (tenant_id, org_id, user_id, joined_at) values ($1, $2, $3, now())",
        &[&org, &head],
        &[Object::Org(org)],
    );
    world.join_team(team, lead, "admin");
    world.join_team(team, mate, "member");
    world.join(outside, owner, "owner");
    // Rows that only older versions wrote.
    world.join(outside, old, "member");
    world.change(
        "insert into project_direct_roles (tenant_id, project_id, user_id, role)
         values ($1, $2, $3, 'admin')",
        &[&outside, &direct],
        &[Object::Project(outside)],
    );
    let objects = [
        Object::Tenant(world.tenant_id),
        Object::Org(org),
        Object::Team(team),
        Object::Project(inside),
        Object::Project(outside),
    ];
    for (who, expected) in [
        (admin, [ADMIN, ADMIN, ADMIN, ADMIN, ADMIN]),
        (head, [READ, ADMIN, NOTHING, ADMIN, NOTHING]),
        (lead, [READ, NOTHING, ADMIN, NOTHING, WRITE]),
        (mate, [READ, NOTHING, READ, NOTHING, WRITE]),
        (owner, [READ, NOTHING, NOTHING, NOTHING, ADMIN]),
        (old, [READ, NOTHING, NOTHING, NOTHING, READ]),
        (direct, [READ, NOTHING, NOTHING, NOTHING, ADMIN]),
    ] {
        assert_eq!(objects.map(|object| may(&app, who, object)), expected);
    }
    // A membership stands before the role that was there without one.
    world.join(outside, direct, "viewer");
    assert_eq!(may(&app, direct, Object::Project(outside)), READ);
    // Who is deactivated has nothing left, wherever it came from.
    for who in [admin, head, lead, owner, old] {
        world.change(
            "update users set deactivated_at = now() where tenant_id = $1 and user_id = $2",
            &[&who],
            &objects,
        );
        for object in objects {
            assert_eq!(may(&app, who, object), NOTHING, "{who} {object}");
        }
        assert!(!is_named(&mut world, who));
    }
    // A team that is gone gives nothing.
    world.change(
        "delete from teams where tenant_id = $1 and team_id = $2",
        &[&team],
        &[Object::Team(team), Object::Project(outside)],
    );
    assert_eq!(may(&app, mate, Object::Project(outside)), NOTHING);
    // Of the team itself nobody asks.
    eventually("the reconciler to tell it", || {
        (world.unapplied() == 0).then_some(())
    });
    check_equal(&app);
}

#[test]
fn an_answer_lost_between_commit_and_apply_leaves_no_old_state_to_answer_from() {
    let fga = OpenFga::shared();
    let (relay, other) = (Relay::before(fga.address()), Relay::before(fga.address()));
    let app = App::start_at(&relay.url());
    app.is_in_step();
    let replica = {
        let (replica, _) = app.replica_logged(|options| options.url = other.url());
        replica
    };
    replica.is_in_step();
    let mut world = app.world();
    let (person, project) = (world.person("member"), world.project(None));
    let object = Object::Project(project);
    for round in 0..3 {
        world.join(project, person, "editor");
        app.apply_soon(object);
        assert_eq!(may_soon(&replica, person, object), WRITE, "round {round}");
        relay.cut();
        other.cut();
        world.leave(project, person);
        let error = app
            .permissions()
            .apply(world.tenant_id, &[object])
            .unwrap_err();
        assert_eq!(error.code(), Code::AuthorizationUnavailable);
        assert!(error.message().starts_with("FGA Error: "), "{error}");
        // The change stands, and nobody answers from before it.
        for app in [&app, &replica] {
            assert!(app.may(person, "can_read", object).is_err());
        }
        other.heal();
        assert_eq!(may_soon(&replica, person, object), NOTHING);
        relay.heal();
        // A repeat is as done.
        app.apply_soon(object);
        assert_eq!(may_soon(&app, person, object), NOTHING);
    }
    // Nobody asks: the reconciler tells it.
    relay.cut();
    other.cut();
    world.join(project, person, "viewer");
    assert!(app.permissions().apply(world.tenant_id, &[object]).is_err());
    assert_eq!(world.unapplied(), 1);
    other.heal();
    eventually("the reconciler to tell it", || {
        (world.unapplied() == 0).then_some(())
    });
    relay.heal();
    app.is_in_step();
    assert_eq!(may_soon(&app, person, object), READ);
    check_equal(&app);
}

#[test]
fn replicas_that_tell_the_same_objects_at_once_end_as_postgres_has_it() {
    let app = App::start_authorized();
    let replica = app.replica(|_| {});
    let mut world = app.world();
    let people: Vec<Uuid> = (0..4).map(|_| world.person("member")).collect();
    let project = world.project(None);
    let object = Object::Project(project);
    std::thread::scope(|scope| {
        for (number, app) in [&app, &replica, &app, &replica].into_iter().enumerate() {
            let people = &people;
            let mut world = app.world();
            scope.spawn(move || {
                for round in 0..25 {
                    let person = people[(number + round) % people.len()];
                    match (number + round) % 3 {
                        0 => world.leave(project, person),
                        1 => world.join(project, person, "viewer"),
                        _ => world.join(project, person, "admin"),
                    }
                    // One that waits too long for the others is told so, and asks again.
                    app.apply_soon(object);
                }
            });
        }
    });
    eventually("the reconciler to tell the people", || {
        (world.unapplied() == 0).then_some(())
    });
    check_equal(&app);
}

#[test]
fn a_grant_and_a_revoke_are_seen_elsewhere_at_once_whatever_befalls_openfga() {
    let fga = OpenFga::own();
    let app = start_hasty(&fga.url());
    app.is_in_step();
    let replica = app.replica(|_| {});
    replica.is_in_step();
    let mut world = app.world();
    let (person, project, team) = (world.person("member"), world.project(None), world.team());
    world.grant(project, team, "editor");
    let object = Object::Project(project);
    let tenant_id = world.tenant_id;
    for object in [object, world.tenant()] {
        app.apply_soon(object);
    }
    for round in 0..24 {
        let is_member = round % 2 == 0;
        if is_member {
            world.join_team(team, person, "member");
        } else {
            world.leave_team(team, person);
        }
        match round % 8 {
            2 => fga.kill(),
            5 => fga.pause(),
            _ => {}
        }
        if [2, 5].contains(&(round % 8)) {
            let applied = app.permissions().apply(tenant_id, &[Object::Team(team)]);
            applied.unwrap_err();
        } else {
            app.apply_soon(Object::Team(team));
        }
        match round % 8 {
            2 => fga.start(),
            5 => fga.go_on(),
            _ => {}
        }
        for app in [&replica, &app] {
            let allowed = app.may_soon(person, "can_write", object);
            assert_eq!(allowed, is_member, "round {round}");
        }
    }
    check_equal(&app);
}

#[test]
fn hundreds_of_people_on_one_object_come_and_go() {
    let app = App::start_authorized();
    let mut world = app.world();
    let project = world.project(None);
    let objects = [Object::Project(project), world.tenant()];
    world.change(
        "with many as (
           insert into users (tenant_id, user_id, display_name, created_at, tenant_role)
           select $1, gen_random_uuid(), 'one of many', now(), 'member' from generate_series(1, 730)
           returning user_id
         )
         select user_id from many",
        &[],
        &[],
    );
    world.change(
        "insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
         select $1, $2, user_id, 'viewer', now() from users
         where tenant_id = $1 and display_name = 'one of many'",
        &[&project],
        &objects,
    );
    for object in objects {
        app.apply_soon(object);
    }
    let report = verify(&app);
    assert!(report.is_equal(), "{report:?}");
    let by_hand = client(&OpenFga::shared().url());
    let told = |world: &mut World| {
        let store_id = pinned(world).store_id;
        by_hand
            .read_object(&store_id, &objects[0].to_string())
            .unwrap()
    };
    assert_eq!(told(&mut world).len(), 731);
    world.change(
        "update project_memberships set role = case when user_id::text < '8' then 'editor' else 'owner' end
         where tenant_id = $1 and project_id = $2",
        &[&project],
        &objects,
    );
    for object in objects {
        app.apply_soon(object);
    }
    check_equal(&app);
    assert_eq!(told(&mut world).len(), 731);
    world.change(
        "delete from project_memberships where tenant_id = $1 and project_id = $2",
        &[&project],
        &objects,
    );
    for object in objects {
        app.apply_soon(object);
    }
    assert_eq!(told(&mut world).len(), 1);
    check_equal(&app);
}

/// Changes a store as a restore from an older backup does: a revoked role is there again, a granted
/// one is gone, and so is what nothing marks. Gives what was added and what was removed.
fn tamper(fga: &OpenFga, world: &mut World) -> (Vec<Tuple>, Vec<Tuple>) {
    let (person, kept) = (world.person("member"), world.person("member"));
    let (project, team) = (world.project(None), world.team());
    world.join(project, kept, "editor");
    let objects = [world.tenant(), Object::Project(project), Object::Team(team)];
    let names: Vec<String> = objects.iter().map(Object::to_string).collect();
    eventually("the reconciler to tell them", || {
        (world.unapplied() == 0).then_some(())
    });
    let gone = Object::Project(Uuid::from_u128(7));
    let added = vec![
        tuple(person, "owner", objects[1]),
        tuple(person, "admin", objects[0]),
        tuple(person, "member", objects[2]),
        tuple(person, "viewer", gone),
        Tuple {
            user: names[1].clone(),
            relation: "project".to_owned(),
            object: "run:1".to_owned(),
        },
    ];
    let removed = vec![
        tuple(kept, "editor", objects[1]),
        tuple(kept, "member", objects[0]),
    ];
    let on = pinned(world);
    client(&fga.url()).write(&on, &removed, &added).unwrap();
    (added, removed)
}

#[test]
fn a_start_removes_what_nobody_asks_for_and_logs_each_and_adds_what_is_missing() {
    let fga = OpenFga::shared();
    let app = App::start_authorized();
    let mut world = app.world();
    let (added, _) = tamper(fga, &mut world);
    assert!(!verify(&app).is_equal());
    let (again, lines) = app.replica_logged(|_| {});
    again.is_in_step();
    check_equal(&app);
    let said = lines.with("that Postgres does not have");
    assert_eq!(said.len(), added.len(), "{said:?}");
    for tuple in added {
        let named = |line: &&String| {
            line.contains(&tuple.user)
                && line.contains(&tuple.object)
                && line.contains("\"authz\"")
                && line.contains(&tuple.relation)
        };
        assert_eq!(said.iter().filter(named).count(), 1, "{tuple:?} {said:?}");
    }
}

#[test]
fn a_store_is_compared_again_when_openfga_comes_back() {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    tamper(&fga, &mut world);
    fga.kill();
    eventually("the probe to say so", || {
        (app.get("/readyz").status == 503).then_some(())
    });
    fga.start();
    eventually("the store to be as it should", || {
        // Just after its start there may be no answer yet.
        let report = app
            .permissions()
            .verify(app.seeds.tenant_id, 20, &mut |_| {});
        report.is_ok_and(|report| report.is_equal()).then_some(())
    });
    app.is_in_step();
}

#[test]
fn an_openfga_that_is_back_is_asked_again_where_its_first_answer_does_not_come() {
    let fga = OpenFga::own_in_memory();
    let relay = Relay::before(fga.address());
    let mut options = authorization(&relay.url());
    // Longer than the test waits.
    options.timeout = 4 * PATIENCE;
    let app = App::start_with(|all| all.authorization = Some(options));
    app.is_in_step();
    relay.cut();
    eventually("the probe to say so", || {
        (app.get("/readyz").status == 503).then_some(())
    });
    relay.heal_after_one();
    eventually("the store to be compared", || {
        (app.get("/readyz").status == 200).then_some(())
    });
    app.is_in_step();
}

/// A person joins every team, and each team is told at once over a slow connection: how each went, and how long all took.
/// Then all of it is told.
fn apply_all(
    app: &App,
    world: &mut World,
    relay: &Relay,
    teams: &[Uuid],
) -> (Vec<Result<(), Error>>, Duration) {
    relay.slow(Duration::from_millis(700));
    let person = world.person("member");
    for team in teams {
        world.join_team(*team, person, "member");
    }
    let tenant_id = world.tenant_id;
    let began = Instant::now();
    let outcomes = std::thread::scope(|scope| {
        let apply = |team: &Uuid| {
            let object = Object::Team(*team);
            scope.spawn(move || app.permissions().apply(tenant_id, &[object]))
        };
        let threads: Vec<_> = teams.iter().map(apply).collect();
        // All the while, of the eight connections of the pool.
        let store = &app.server().shared().store;
        eventually("all to be told", || {
            let sessions: Vec<_> = (0..6).map(|_| store.session()).collect();
            assert!(sessions.iter().all(Result::is_ok));
            let mut each = threads.iter();
            each.all(|thread| thread.is_finished()).then_some(())
        });
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect::<Vec<_>>()
    });
    let took = began.elapsed();
    relay.heal();
    eventually("the reconciler to tell the rest", || {
        (world.unapplied() == 0).then_some(())
    });
    (outcomes, took)
}

#[test]
fn at_most_two_applies_hold_a_connection_and_the_others_wait_no_longer_than_they_may() {
    let relay = Relay::before(OpenFga::shared().address());
    let app = start_hasty(&relay.url());
    app.is_in_step();
    let mut world = app.world();
    let teams: Vec<Uuid> = (0..10).map(|_| world.team()).collect();
    eventually("the reconciler to tell them", || {
        (world.unapplied() == 0).then_some(())
    });
    // A busy machine may leave those that are in front too little time, or add to that of all: then once more.
    let mut rounds = Vec::new();
    let is_calm = (0..6).any(|_| {
        let (outcomes, took) = apply_all(&app, &mut world, &relay, &teams);
        let count = |code: Option<Code>| {
            let codes = outcomes
                .iter()
                .map(|one| one.as_ref().err().map(Error::code));
            codes.filter(|found| *found == code).count()
        };
        let told = count(None);
        let overloaded = count(Some(Code::Overloaded));
        // Those that came to it late had no time left.
        let late = count(Some(Code::AuthorizationUnavailable));
        assert_eq!(told + overloaded + late, teams.len(), "{outcomes:?}");
        rounds.push((told, overloaded, late, took));
        told >= 2 && overloaded >= 4 && late <= 2 && took < Duration::from_millis(4500)
    });
    assert!(is_calm, "{rounds:?}");
    check_equal(&app);
}

#[test]
fn who_waits_too_long_for_another_replica_s_apply_is_told_so() {
    let app = start_hasty(&OpenFga::shared().url());
    app.is_in_step();
    let mut world = app.world();
    let team = world.team();
    let object = Object::Team(team);
    let mut other = app.database.client();
    let mut holding = other.transaction().unwrap();
    holding
        .execute(
            "select from authz_objects where tenant_id = $1 and object = $2 for update",
            &[&world.tenant_id, &object.to_string()],
        )
        .unwrap();
    within(Duration::from_secs(4), || {
        let began = Instant::now();
        let applied = app.permissions().apply(world.tenant_id, &[object]);
        let error = applied.unwrap_err();
        assert_eq!(error.code(), Code::AuthorizationUnavailable, "{error}");
        assert!(error.message().starts_with("FGA Error: "), "{error}");
        began.elapsed()
    });
    holding.rollback().unwrap();
    app.apply_soon(object);
    check_equal(&app);
}

#[test]
fn a_stop_does_not_wait_for_an_openfga_that_stands_still() {
    let fga = OpenFga::own_in_memory();
    within(Duration::from_secs(5), || {
        let app = start_hasty(&fga.url());
        app.is_in_step();
        fga.pause();
        let began = Instant::now();
        app.stop_within(Duration::from_secs(8));
        let took = began.elapsed();
        fga.go_on();
        took
    });
}

/// Runs a command on the app's database and OpenFGA; gives its exit code and what it said.
fn command(database: &Database, url: &str, arguments: &[&str]) -> (i32, String) {
    let said = Command::new(env!("CARGO_BIN_EXE_agent-runtime"))
        .arg("authz")
        .args(arguments)
        .env_clear()
        .env("SVC_DEV", "1")
        .env("SVC_DATABASE_URL", database.url())
        .env("SVC_AUTHZ_API_URL", url)
        .env("SVC_LOG_LEVEL", "error")
        .output()
        .unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let errors = String::from_utf8(said.stderr).unwrap();
    (said.status.code().unwrap(), text + &errors)
}

#[test]
fn verify_names_what_differs_and_repair_mends_it_beside_a_running_server() {
    let fga = OpenFga::own_in_memory();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let run = |arguments: &[&str]| command(&app.database, &fga.url(), arguments);
    let (code, said) = run(&["verify"]);
    assert_eq!(
        (code, said.as_str()),
        (0, "Tenants compared: 1. All are equal.\n")
    );
    let mut world = app.world();
    let (added, removed) = tamper(&fga, &mut world);
    for arguments in [&["verify"][..], &["repair", "--dry-run"], &["verify"]] {
        let is_dry = arguments.len() > 1;
        let (code, said) = run(arguments);
        assert_eq!(code, if is_dry { 0 } else { 2 }, "{said}");
        for (tuples, word) in [
            (&added, ["extra", "to remove"]),
            (&removed, ["missing", "to add"]),
        ] {
            for Tuple {
                user,
                relation,
                object,
            } in tuples
            {
                let line = format!(
                    "  {}: {user} {relation} {object}\n",
                    word[usize::from(is_dry)]
                );
                assert!(said.contains(&line), "{line} in {said}");
            }
        }
        assert!(
            said.ends_with("They differed: 1; tuples missing: 2, extra: 5.\n"),
            "{said}"
        );
    }
    let (code, said) = run(&["verify", "--limit", "1"]);
    assert_eq!(
        (code, said.contains("  extra: 4 more\n")),
        (2, true),
        "{said}"
    );
    let (code, said) = run(&["verify", "--json"]);
    let json: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &json["equal"]), (2, &Value::Bool(false)));
    assert_eq!(json["tenants"][0]["extra"]["count"], 5);
    assert_eq!(
        json["tenants"][0]["missing"]["first"][0]["relation"],
        "editor"
    );
    let (code, said) = run(&["repair"]);
    assert_eq!(code, 0);
    assert!(said.contains("tuples added: 2, removed: 5.\n"), "{said}");
    let (code, said) = run(&["verify", "--json"]);
    let json: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &json["equal"]), (0, &Value::Bool(true)));
    // A server that forgot everything, with no other program to see it.
    let (database, _, seeds) = app.stop();
    fga.kill();
    let (code, said) = command(&database, &fga.url(), &["verify"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("FGA Error: "), "{said}");
    fga.start();
    let run = |arguments: &[&str]| command(&database, &fga.url(), arguments);
    let (code, said) = run(&["verify"]);
    assert_eq!((code, said.contains("  no store\n")), (2, true), "{said}");
    assert_eq!(run(&["repair"]).0, 0);
    assert_eq!(run(&["verify"]).0, 0);
    let tenant_id = seeds.tenant_id.to_string();
    assert_eq!(run(&["verify", "--tenant", &tenant_id]).0, 0);
}
