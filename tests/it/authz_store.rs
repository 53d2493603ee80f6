//! The life of tenants' stores at the authorization server: made, found again, lost, restored,
//! upgraded; always exactly one.

use crate::harness::openfga::{OpenFga, Relay};
use crate::harness::{
    App, Database, LogLines, PATIENCE, World, authorization, eventually, log, options, seeds,
};
use agent_runtime::authz::desired_tuples::Object;
use agent_runtime::authz::fga;
use agent_runtime::authz::permissions::Model;
use agent_runtime::error::Code;
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::server::{Options, Seeds, Server};
use std::time::Duration;
use uuid::Uuid;

const BOOTSTRAP: &str = "admin@tenant via FGA bootstrap";

/// A client of the test's own.
pub(crate) fn client(url: &str) -> fga::Client {
    let outbound = Outbound::new(outbound::Options::default()).unwrap();
    let options = fga::Options {
        url: url.to_owned(),
        timeout: Duration::from_secs(10),
        connections: 4,
    };
    fga::Client::new(&outbound, &options).unwrap()
}

pub(crate) fn name(tenant_id: Uuid) -> String {
    format!("tenant-{tenant_id}")
}

/// The tenant's one store.
#[track_caller]
fn only_store(fga: &OpenFga, world: &mut World) -> String {
    let named = client(&fga.url())
        .stores_named(&name(world.tenant_id))
        .unwrap();
    let (pinned, _, _) = world.tenant_store().expect("the tenant has a store");
    assert_eq!(named, std::slice::from_ref(&pinned));
    pinned
}

#[track_caller]
fn check_admin(app: &App) {
    let tenant = Object::Tenant(app.seeds.tenant_id);
    assert!(app.may(app.seeds.user_id, "can_admin", tenant).unwrap());
    assert!(!app.may(app.clock.new_id(), "can_read", tenant).unwrap());
}

#[test]
fn the_first_start_makes_the_store_and_names_its_admin_and_a_restart_does_not() {
    let fga = OpenFga::shared();
    let (app, lines) = App::start_at_logged(&fga.url());
    app.is_in_step();
    check_admin(&app);
    let store = only_store(fga, &mut app.world());
    let greeting = lines.with(BOOTSTRAP);
    assert_eq!(greeting.len(), 1, "{greeting:?}");
    assert!(greeting[0].contains(&app.seeds.user_id.to_string()));
    let (again, lines) = app.replica_logged(|_| {});
    again.is_in_step();
    check_admin(&again);
    assert_eq!(only_store(fga, &mut app.world()), store);
    assert!(lines.with(BOOTSTRAP).is_empty());
}

/// A server without authorization, in which somebody changed the seed user. Then it stops.
fn changed_before(change: &str) -> (Database, Clock, Seeds) {
    let app = App::start();
    let mut world = app.world();
    world.change(
        change,
        &[&app.seeds.user_id],
        &[Object::Tenant(app.seeds.tenant_id)],
    );
    app.stop()
}

fn turn_on(options: &mut Options) {
    options.authorization = Some(authorization(&OpenFga::shared().url()));
}

#[test]
fn a_seed_user_that_stands_is_made_admin_at_the_first_start_with_authorization_alone() {
    const MEMBER: &str =
        "update users set tenant_role = 'member' where tenant_id = $1 and user_id = $2";
    let (database, clock, seeds) = changed_before(MEMBER);
    let lines = LogLines::default();
    let app = App::start_logged(database, clock, seeds, &lines.logger(), turn_on);
    app.is_in_step();
    check_admin(&app);
    let greeting = lines.with(BOOTSTRAP);
    assert_eq!(greeting.len(), 1, "{greeting:?}");
    assert!(greeting[0].contains(&app.seeds.user_id.to_string()));
    // Another admin makes them a member again, and no later start undoes that.
    let mut world = app.world();
    let other = world.person("admin");
    let tenant = Object::Tenant(app.seeds.tenant_id);
    world.change(MEMBER, &[&app.seeds.user_id], &[tenant]);
    let (database, clock, seeds) = app.stop();
    let restart = |database, clock, seeds| {
        let lines = LogLines::default();
        let app = App::start_logged(database, clock, seeds, &lines.logger(), turn_on);
        app.is_in_step();
        assert!(!app.may(app.seeds.user_id, "can_admin", tenant).unwrap());
        assert!(app.may(other, "can_admin", tenant).unwrap());
        assert!(
            lines.with(BOOTSTRAP).is_empty(),
            "the seed user is no admin"
        );
        app
    };
    let app = restart(database, clock, seeds);
    // Nor one that makes the store anew.
    let store = only_store(OpenFga::shared(), &mut app.world());
    let (database, clock, seeds) = app.stop();
    client(&OpenFga::shared().url())
        .delete_store(&store)
        .unwrap();
    let app = restart(database, clock, seeds);
    assert_ne!(only_store(OpenFga::shared(), &mut app.world()), store);
}

#[test]
fn a_seed_user_that_cannot_be_admin_keeps_the_first_start_with_authorization_from_being_ready() {
    const DEACTIVATED: &str =
        "update users set deactivated_at = now() where tenant_id = $1 and user_id = $2";
    for (change, why) in [
        (DEACTIVATED, "deactivated"),
        (
            "update users set kind = 'service-account', tenant_role = 'member'
             where tenant_id = $1 and user_id = $2",
            "service account",
        ),
    ] {
        let (database, clock, seeds) = changed_before(change);
        let mut options = options(&database.url(), &seeds);
        turn_on(&mut options);
        let server = Server::start(options, &clock, &log()).unwrap();
        let error = server.ready().recv_timeout(PATIENCE).unwrap().unwrap_err();
        assert_eq!(error.code(), Code::Conflict);
        let message = error.message();
        assert!(message.starts_with("SVC_SEED_USER_ID: "), "{message}");
        assert!(message.contains(why), "{message}");
        assert!(server.stop(PATIENCE));
        // As the sentence says: another user.
        let seeds = Seeds {
            user_id: clock.new_id(),
            ..seeds
        };
        let app = App::start_on(database, clock, seeds, turn_on);
        app.is_in_step();
        check_admin(&app);
        // A later start does not ask.
        let mut world = app.world();
        let tenant = [Object::Tenant(app.seeds.tenant_id)];
        world.change(DEACTIVATED, &[&app.seeds.user_id], &tenant);
        let (database, clock, seeds) = app.stop();
        App::start_on(database, clock, seeds, turn_on).is_in_step();
    }
}

#[test]
fn replicas_that_start_at_once_make_one_store() {
    let fga = OpenFga::shared();
    let database = Database::migrated();
    let clock = Clock::system();
    let seeds = seeds(&clock);
    let start = || {
        App::start_on(database.clone(), clock.clone(), seeds.clone(), |options| {
            options.authorization = Some(authorization(&fga.url()));
        })
    };
    let apps: Vec<App> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for app in &apps {
        app.is_in_step();
        check_admin(app);
    }
    only_store(fga, &mut apps[0].world());
}

#[test]
fn a_tenant_made_while_the_server_runs_gets_its_own_store_and_admin() {
    let fga = OpenFga::shared();
    let (app, lines) = App::start_at_logged(&fga.url());
    app.is_in_step();
    let other = seeds(&app.clock);
    let shared = app.server().shared();
    agent_runtime::server::seed(&shared.store, &app.clock, &other).unwrap();
    // Asked at once, before the reconciler looks.
    let tenant = Object::Tenant(other.tenant_id);
    let may = |user| app.may_in(other.tenant_id, user, "can_admin", tenant);
    assert!(may(other.user_id).unwrap());
    assert!(!may(app.seeds.user_id).unwrap());
    let mut world = World::of(&app.database, other.tenant_id, other.user_id);
    let theirs = only_store(fga, &mut world);
    assert_ne!(theirs, only_store(fga, &mut app.world()));
    assert_eq!(lines.with(BOOTSTRAP).len(), 2);
    // Not asked at all.
    let third = seeds(&app.clock);
    agent_runtime::server::seed(&shared.store, &app.clock, &third).unwrap();
    let mut world = World::of(&app.database, third.tenant_id, third.user_id);
    eventually("the third tenant's store", || world.tenant_store());
    only_store(fga, &mut world);
}

#[test]
fn a_store_that_a_crash_left_behind_is_taken_and_others_are_removed() {
    let fga = OpenFga::shared();
    let clock = Clock::system();
    let seeds = seeds(&clock);
    let by_hand = client(&fga.url());
    let left: Vec<String> = (0..3)
        .map(|_| by_hand.create_store(&name(seeds.tenant_id)).unwrap())
        .collect();
    let app = App::start_on(Database::migrated(), clock, seeds, |options| {
        options.authorization = Some(authorization(&fga.url()));
    });
    app.is_in_step();
    check_admin(&app);
    assert_eq!(Some(&only_store(fga, &mut app.world())), left.iter().min());
    // One that came late.
    by_hand.create_store(&name(app.seeds.tenant_id)).unwrap();
    let replica = app.replica(|_| {});
    replica.is_in_step();
    assert_eq!(Some(&only_store(fga, &mut app.world())), left.iter().min());
}

#[test]
fn an_answer_lost_while_a_store_is_made_leaves_one_store() {
    let fga = OpenFga::shared();
    let relay = Relay::before(fga.address());
    // Requests arrive, answers are cut off.
    relay.slow(Duration::from_millis(300));
    let app = App::start_at(&relay.url());
    for _ in 0..5 {
        relay.wait_for_answer();
        relay.cut_once();
    }
    relay.heal();
    app.is_in_step();
    check_admin(&app);
    only_store(fga, &mut app.world());
}

#[test]
fn a_server_that_forgot_everything_gets_a_whole_new_store() {
    let fga = OpenFga::own_in_memory();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let replica = app.replica(|_| {});
    replica.is_in_step();
    let mut world = app.world();
    let (person, project) = (world.person("member"), world.project(None));
    world.join(project, person, "editor");
    let object = Object::Project(project);
    assert!(app.may(person, "can_write", object).unwrap());
    let before = only_store(&fga, &mut world);
    fga.kill();
    fga.start();
    for app in [&app, &replica] {
        let may = app.may_soon(person, "can_write", object);
        assert!(may, "no answer comes from a store that is not whole");
        assert!(!app.may_soon(person, "can_admin", object));
        check_admin(app);
    }
    assert_ne!(only_store(&fga, &mut world), before);
}

#[test]
fn a_store_that_was_deleted_is_made_again_although_its_ghost_still_answers() {
    let fga = OpenFga::own_in_memory();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let before = only_store(&fga, &mut world);
    client(&fga.url()).delete_store(&before).unwrap();
    eventually("another store", || {
        world
            .tenant_store()
            .filter(|(store, _, _)| *store != before)
    });
    eventually("the new store to be whole", || {
        app.may(app.seeds.user_id, "can_admin", world.tenant()).ok()
    });
    check_admin(&app);
    only_store(&fga, &mut world);
}

#[test]
fn an_openfga_that_is_away_at_the_start_stops_nothing_else_and_is_found_again() {
    let fga = OpenFga::own();
    fga.kill();
    let app = App::start_at(&fga.url());
    assert_eq!(app.get("/healthz").status, 200);
    let ready = eventually("the probe to say why", || {
        let answer = app.get("/readyz");
        let why = answer.json()["missing"]["authz"].as_str()?.to_owned();
        why.starts_with("FGA Error: ").then_some(why)
    });
    assert!(ready.contains("refused"), "{ready}");
    let tenant = Object::Tenant(app.seeds.tenant_id);
    let error = app
        .may(app.seeds.user_id, "can_read", tenant)
        .expect_err("it is away");
    assert_eq!(error.code(), Code::AuthorizationUnavailable);
    assert!(error.message().starts_with("FGA Error: "), "{error}");
    assert!(error.message().contains("refused"), "{error}");
    fga.start();
    app.is_in_step();
    check_admin(&app);
    // And away once more, and back.
    fga.kill();
    let error = app.may(app.seeds.user_id, "can_read", tenant).unwrap_err();
    assert!(error.message().starts_with("FGA Error: "), "{error}");
    eventually("the probe to say so", || {
        (app.get("/readyz").status == 503).then_some(())
    });
    fga.start();
    app.is_in_step();
    check_admin(&app);
    only_store(&fga, &mut app.world());
}

/// The version of the program's own model, and of the newer one.
pub(crate) fn versions() -> (i32, i32) {
    let version = |model: Model| i32::try_from(model.version).unwrap();
    (version(Model::own()), version(newer()))
}

pub(crate) fn newer() -> Model {
    let mut model = Model::own();
    model.version += 1;
    // A relation that the older program knows nothing of.
    let types = model.json["type_definitions"].as_array_mut().unwrap();
    let project = types
        .iter_mut()
        .find(|kind| kind["type"] == "project")
        .unwrap();
    let this = serde_json::json!({ "this": {} });
    project["relations"]["auditor"] = this;
    project["metadata"]["relations"]["auditor"] =
        serde_json::json!({"directly_related_user_types": [{"type": "user"}]});
    model
}

#[test]
fn a_newer_program_upgrades_the_model_with_one_line_and_an_older_one_leaves_it() {
    let fga = OpenFga::shared();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let first = world.tenant_store().unwrap();
    let (upgraded, lines) = app.replica_logged(|options| options.model = newer());
    upgraded.is_in_step();
    let second = world.tenant_store().unwrap();
    let (own, next) = versions();
    assert_eq!((first.2, second.2), (own, next));
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
    let said = lines.with(&format!("from version {own} to {next}"));
    assert_eq!(said.len(), 1, "{said:?}");
    check_admin(&upgraded);
    // Of the newer program's own tuples the older one knows nothing.
    let (person, project) = (world.person("member"), world.project(None));
    world.join(project, person, "viewer");
    assert!(
        app.may(person, "can_read", Object::Project(project))
            .unwrap()
    );
    let own = fga::Tuple {
        user: format!("user:{person}"),
        relation: "auditor".to_owned(),
        object: Object::Project(project).to_string(),
    };
    let by_hand = client(&fga.url());
    let on = fga::Pinned {
        store_id: second.0.clone(),
        model_id: second.1.clone(),
    };
    by_hand.write(&on, &[], std::slice::from_ref(&own)).unwrap();
    let (older, lines) = app.replica_logged(|_| {});
    older.is_in_step();
    assert_eq!(lines.with("newer than this program's").len(), 1);
    world.leave(project, person);
    assert!(
        !older
            .may(person, "can_read", Object::Project(project))
            .unwrap()
    );
    let told = by_hand.read_object(&second.0, &own.object).unwrap();
    assert!(told.contains(&own), "{told:?}");
    assert_eq!(world.tenant_store().unwrap(), second);
    check_admin(&older);
}

#[test]
fn a_model_that_is_lost_is_written_again_and_a_newer_one_is_waited_for() {
    let fga = OpenFga::shared();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let (store, model, _) = world.tenant_store().unwrap();
    let tenant_id = world.tenant_id;
    let mut lose = |version: i32| {
        // As after a restore: Postgres names a model that the store has not.
        let lost = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        world.client.execute(
            "update authz_stores set model_id = $2, model_version = $3 where tenant_id = $1",
            &[&tenant_id, &lost, &version],
        )
    };
    let (own, next) = versions();
    lose(own).unwrap();
    check_admin(&app);
    let tenant_store = app.world().tenant_store().unwrap();
    assert_eq!(tenant_store.0, store);
    assert_ne!(tenant_store.1, model);
    lose(next).unwrap();
    let error = app
        .may(app.seeds.user_id, "can_read", Object::Tenant(tenant_id))
        .unwrap_err();
    let said = format!("version {next}");
    assert!(error.message().contains(&said), "{error}");
    let (newer, _) = app.replica_logged(|options| options.model = newer());
    check_admin(&newer);
    eventually("the older program to go on", || {
        app.may(app.seeds.user_id, "can_admin", Object::Tenant(tenant_id))
            .ok()
    });
    check_admin(&app);
}

#[test]
fn an_upgrade_of_openfga_and_the_way_back_change_no_answer() {
    let fga = OpenFga::own_at("1.9.0");
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let (person, project) = (world.person("member"), world.project(None));
    let team = world.team();
    world.join_team(team, person, "member");
    world.grant(project, team, "editor");
    let object = Object::Project(project);
    let check = |app: &App| {
        assert!(app.may_soon(person, "can_write", object));
        assert!(!app.may_soon(person, "can_admin", object));
        check_admin(app);
    };
    check(&app);
    let tenant_store = world.tenant_store().unwrap();
    let tuples = |fga: &OpenFga| {
        let mut all = Vec::new();
        client(&fga.url())
            .read_all(&tenant_store.0, &mut |tuple| {
                all.push(tuple);
                true
            })
            .unwrap();
        all.sort();
        all
    };
    let before = tuples(&fga);
    for version in ["1.22.1", "1.9.0"] {
        fga.change_version(version);
        assert_eq!(tuples(&fga), before);
        check(&app);
        let again = app.replica(|_| {});
        again.is_in_step();
        check(&again);
        assert_eq!(world.tenant_store().unwrap(), tenant_store);
        assert_eq!(tuples(&fga), before);
    }
}
