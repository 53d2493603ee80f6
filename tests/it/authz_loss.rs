//! What the authorization server loses under running servers, is slow with or is refused, and what
//! that costs: the right answers, those who wait, and the other tenants.

use crate::authz_store::{client, name, newer, versions};
use crate::harness::openfga::{OpenFga, Relay};
use crate::harness::{App, World, authorization, eventually, seeds, within};
use agent_runtime::authz::desired_tuples::Object;
use agent_runtime::authz::fga::{Pinned, Tuple};
use agent_runtime::error::Code;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use uuid::Uuid;

const TIMEOUT: Duration = Duration::from_secs(3);
/// What a busy machine adds to each of some rounds.
const SLACK: Duration = Duration::from_millis(1200);

/// A server that waits for OpenFGA no longer than [`TIMEOUT`].
fn hasty(url: &str) -> App {
    let mut options = authorization(url);
    options.timeout = TIMEOUT;
    let app = App::start_with(|all| all.authorization = Some(options));
    app.is_in_step();
    app
}

fn lose_everything(fga: &OpenFga) {
    let lose = "truncate store, authorization_model, tuple, changelog";
    fga.database().client().batch_execute(lose).unwrap();
}

/// A person with a role on a project that nothing in Postgres gives.
fn sneak(fga: &OpenFga, world: &mut World) -> (Uuid, Object, Tuple) {
    let (person, project) = (world.person("member"), world.project(None));
    eventually("the reconciler to tell them", || {
        (world.unapplied() == 0).then_some(())
    });
    let object = Object::Project(project);
    let tuple = Tuple {
        user: format!("user:{person}"),
        relation: "owner".to_owned(),
        object: object.to_string(),
    };
    let (store_id, model_id, _) = world.tenant_store().unwrap();
    let on = Pinned { store_id, model_id };
    let by_hand = client(&fga.url());
    by_hand
        .write(&on, &[], std::slice::from_ref(&tuple))
        .unwrap();
    (person, object, tuple)
}

fn tuples(fga: &OpenFga, world: &mut World, object: Object) -> BTreeSet<Tuple> {
    let (store_id, _, _) = world.tenant_store().unwrap();
    let by_hand = client(&fga.url());
    by_hand.read_object(&store_id, &object.to_string()).unwrap()
}

#[test]
fn nobody_is_denied_by_a_store_that_was_lost_a_moment_ago() {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let (person, project) = (world.person("member"), world.project(None));
    world.join(project, person, "editor");
    let object = Object::Project(project);
    assert!(app.may(person, "can_write", object).unwrap());
    for round in 0..3 {
        lose_everything(&fga);
        let may = app.may(person, "can_write", object);
        assert!(may.unwrap(), "round {round}");
        assert!(!app.may(person, "can_admin", object).unwrap());
    }
}

#[test]
fn what_is_told_to_a_store_that_was_lost_reaches_the_one_that_takes_its_place() {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let (person, project) = (world.person("member"), world.project(None));
    let object = Object::Project(project);
    app.apply_soon(object);
    app.apply_soon(world.tenant());
    for role in ["editor", "viewer", "owner"] {
        let (before, _, _) = world.tenant_store().unwrap();
        // First: what stands in Postgres may be told by the reconciler before it is applied here.
        lose_everything(&fga);
        world.join(project, person, role);
        app.apply_soon(object);
        let (after, _, _) = world.tenant_store().unwrap();
        assert_ne!(before, after);
        let tuples = tuples(&fga, &mut world, object);
        assert!(
            tuples.iter().any(|tuple| tuple.relation == role),
            "{tuples:?}"
        );
    }
}

#[test]
fn nobody_is_answered_from_an_older_state_that_came_back_with_openfga() {
    let fga = OpenFga::own();
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    for round in 0..3 {
        let (person, object, _) = sneak(&fga, &mut world);
        fga.kill();
        assert!(app.may(person, "can_write", object).is_err());
        eventually("the probe to say so", || {
            (app.get("/readyz").status == 503).then_some(())
        });
        fga.start();
        assert!(!app.may_soon(person, "can_write", object), "round {round}");
    }
}

#[test]
fn an_openfga_that_is_slow_or_broke_one_connection_is_not_compared_over_and_over() {
    let fga = OpenFga::own_in_memory();
    let relay = Relay::before(fga.address());
    let app = hasty(&relay.url());
    let mut world = app.world();
    let (person, object, tuple) = sneak(&fga, &mut world);
    relay.slow(TIMEOUT * 2);
    assert!(app.may(person, "can_write", object).is_err());
    eventually("the probe to say so", || {
        (app.get("/readyz").status == 503).then_some(())
    });
    relay.heal();
    app.is_in_step();
    // Untold objects are looked for at the end of a round.
    world.team();
    eventually("the end of another round", || {
        (world.unapplied() == 0).then_some(())
    });
    assert!(tuples(&fga, &mut world, object).contains(&tuple));
    let report = app.permissions().repair(world.tenant_id, 1, &mut |_| {});
    assert_eq!(report.unwrap().extra.count, 1);
}

/// Another tenant, of the same servers.
fn other_tenant(app: &App) -> World {
    let other = seeds(&app.clock);
    let shared = app.server().shared();
    agent_runtime::server::seed(&shared.store, &app.clock, &other).unwrap();
    let mut world = World::of(&app.database, other.tenant_id, other.user_id);
    eventually("the other tenant's store", || world.tenant_store());
    world
}

#[test]
fn the_fault_of_one_tenant_is_said_and_leaves_the_others_alone() {
    let fga = OpenFga::shared();
    let (app, _) = App::start_at_logged(&fga.url());
    app.is_in_step();
    let mut other = other_tenant(&app);
    let (store_id, _, _) = other.tenant_store().unwrap();
    // A newer program's model, which is lost.
    other.change(
        "update authz_stores set model_version = 7, model_id = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
         where tenant_id = $1",
        &[],
        &[],
    );
    let (again, lines) = app.replica_logged(|_| {});
    again.is_in_step();
    let tenant = Object::Tenant(app.seeds.tenant_id);
    assert!(again.may(app.seeds.user_id, "can_admin", tenant).unwrap());
    let error = again
        .may_in(
            other.tenant_id,
            app.seeds.user_id,
            "can_read",
            other.tenant(),
        )
        .unwrap_err();
    assert!(error.message().contains("version 7"), "{error}");
    let said = lines.with("version 7");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(&other.tenant_id.to_string()), "{said:?}");
    let figures = again.get("/metrics").text;
    for line in [
        "agent_runtime_authorization_tenants{state=\"compared\"} 1",
        "agent_runtime_authorization_tenants{state=\"failed\"} 1",
    ] {
        assert!(figures.contains(line), "{figures}");
    }
    assert_eq!(other.tenant_store().unwrap().0, store_id);
    // It goes by as it came.
    other.change(
        "update authz_stores set model_version = 1 where tenant_id = $1",
        &[],
        &[],
    );
    eventually("the tenant's answers", || {
        again
            .may_in(
                other.tenant_id,
                app.seeds.user_id,
                "can_read",
                other.tenant(),
            )
            .ok()
    });
}

#[test]
fn an_older_program_gives_a_tenant_that_lost_its_newer_model_no_older_one() {
    let fga = OpenFga::shared();
    let by_hand = client(&fga.url());
    let app = App::start_at(&fga.url());
    app.is_in_step();
    let mut world = app.world();
    let (upgraded, _) = app.replica_logged(|options| options.model = newer());
    upgraded.is_in_step();
    let (database, _, _) = upgraded.stop();
    drop(database);
    let before = world.tenant_store().unwrap();
    let (_, next) = versions();
    let said = format!("version {next}");
    assert_eq!(before.2, next);
    by_hand.delete_store(&before.0).unwrap();
    let ask = |app: &App| {
        app.may(
            app.seeds.user_id,
            "can_admin",
            Object::Tenant(app.seeds.tenant_id),
        )
    };
    let message = eventually("the older program to say so", || {
        let missing = app.get("/readyz").json()["missing"]["authz"]
            .as_str()?
            .to_owned();
        missing.contains(&said).then_some(missing)
    });
    let error = ask(&app).unwrap_err();
    assert_eq!(error.message(), message);
    assert_eq!(by_hand.stores_named(&name(world.tenant_id)), Ok(Vec::new()));
    assert_eq!(world.tenant_store().unwrap(), before);
    // A start of it changes nothing either.
    let (older, lines) = app.replica_logged(|_| {});
    eventually("the line", || lines.with(&said).pop());
    assert!(ask(&older).is_err());
    assert_eq!(world.tenant_store().unwrap(), before);
    let (newer, _) = app.replica_logged(|options| options.model = newer());
    newer.is_in_step();
    assert!(ask(&newer).unwrap());
    assert_eq!(world.tenant_store().unwrap().2, next);
    assert!(eventually("the older program to go on", || ask(&app).ok()));
}

#[test]
fn no_request_waits_longer_than_once_for_an_openfga_that_is_slow() {
    let fga = OpenFga::own_in_memory();
    let relay = Relay::before(fga.address());
    let app = hasty(&relay.url());
    let mut world = app.world();
    let tenant_id = world.tenant_id;
    let teams: Vec<Object> = (0..12).map(|_| Object::Team(world.team())).collect();
    let project = world.project(None);
    let object = Object::Project(project);
    world.change(
        "with many as (
           insert into users (tenant_id, user_id, display_name, created_at, tenant_role)
           select $1, gen_random_uuid(), 'one of many', now(), 'member' from generate_series(1, 530)
           returning user_id
         )
         insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
         select $1, $2, user_id, 'viewer', now() from many",
        &[&project],
        &[object, Object::Tenant(tenant_id)],
    );
    eventually("the reconciler to tell them", || {
        (world.unapplied() == 0).then_some(())
    });
    // Six pages, each slow.
    relay.slow(Duration::from_millis(1100));
    let person = world.person("member");
    world.join(project, person, "viewer");
    within(TIMEOUT + SLACK, || {
        let began = Instant::now();
        let error = app.may(person, "can_read", object).unwrap_err();
        let codes = [Code::AuthorizationUnavailable, Code::Overloaded];
        assert!(codes.contains(&error.code()), "{error}");
        began.elapsed()
    });
    within(TIMEOUT + SLACK, || {
        let began = Instant::now();
        let error = app.permissions().apply(tenant_id, &[object]).unwrap_err();
        let codes = [Code::AuthorizationUnavailable, Code::Overloaded];
        assert!(codes.contains(&error.code()), "{error}");
        began.elapsed()
    });
    within(TIMEOUT * 3 + SLACK, || {
        for team in &teams {
            world.change("select $1::uuid", &[], &[*team]);
        }
        let began = Instant::now();
        app.permissions().apply(tenant_id, &teams).unwrap_err();
        began.elapsed()
    });
    relay.heal();
    eventually("the reconciler to tell them", || {
        (world.unapplied() == 0).then_some(())
    });
    assert!(app.may_soon(person, "can_read", object));
}

#[test]
fn what_is_gone_and_told_so_leaves_no_row() {
    let app = App::start_authorized();
    let mut world = app.world();
    let (person, tenant) = (world.person("member"), world.tenant());
    let rows = |world: &mut World, object: Object| {
        let asked = "select desired from authz_objects where object = $1";
        let found = world.client.query(asked, &[&object.to_string()]);
        found.unwrap().len()
    };
    for _ in 0..2 {
        let team = world.team();
        let object = Object::Team(team);
        world.join_team(team, person, "member");
        app.apply_soon(object);
        app.apply_soon(tenant);
        assert_eq!(rows(&mut world, object), 1);
        world.change(
            "delete from teams where tenant_id = $1 and team_id = $2",
            &[&team],
            &[object],
        );
        // A repeat of the request applies it once more.
        for _ in 0..2 {
            app.apply_soon(object);
            assert_eq!(rows(&mut world, object), 0);
        }
    }
    let report = app
        .permissions()
        .verify(world.tenant_id, 1, &mut |_| {})
        .unwrap();
    assert!(report.is_equal(), "{report:?}");
}
