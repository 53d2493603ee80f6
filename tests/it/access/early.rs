//! Checks that are sent before the statement that says what they stand on has an answer.

use super::world::World;
use crate::authz_store::client;
use crate::harness::openfga::{OpenFga, Relay};
use crate::harness::{App, Database, eventually};
use agent_runtime::authz::desired::Object;
use agent_runtime::authz::fga::{Pinned, Question, Tuple};
use agent_runtime::authz::permissions::Model;
use agent_runtime::outbound::Meanwhile;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// While it lives, what it locked stays so.
struct Held(postgres::Client);

impl Held {
    /// No statement finds a project.
    fn projects(app: &App) -> Self {
        let mut client = app.database.client();
        client
            .batch_execute("begin; lock table projects in access exclusive mode")
            .unwrap();
        Self(client)
    }

    /// The statement's changes and the object's mark stand, and nobody tells the object.
    fn marked(app: &App, object: Object, statement: &str) -> Self {
        let mut client = app.database.client();
        let object = object.to_string();
        app.marked_sql(&object, statement);
        let lock = "select from authz_objects where object = $1 and applied < desired for update";
        loop {
            client.batch_execute("begin").unwrap();
            if client.execute(lock, &[&object]).unwrap() == 1 {
                return Self(client);
            }
            // The keeper was faster.
            client.batch_execute("rollback").unwrap();
            app.marked_sql(&object, "select");
        }
    }

    fn release(mut self) {
        self.0.batch_execute("rollback").unwrap();
    }
}

/// A request whose check was sent and whose statement waits.
fn is_under_way(world: &World, client: &mut postgres::Client) -> bool {
    let waits = "select count(*) from pg_locks l join pg_database d on d.oid = l.database
                 where d.datname = current_database() and relation = 'projects'::regclass and not granted";
    let waiting: i64 = client.query_one(waits, &[]).unwrap().get(0);
    let metrics = world.app.get("/metrics").text;
    waiting == 1 && metrics.contains("agent_runtime_authorization_checks_in_flight 1")
}

/// The person's role of the tenant was changed before the request, and is told, by the one or the other replica, after
/// the authorization server has answered and before the statement finds what the request is about.
fn changed_meanwhile(by_another: bool) {
    let world = World::start();
    let another = world.app.replica_logged(|_| {}).0;
    another.is_in_step();
    let person = world.person("admin");
    let (tenant, project) = (
        Object::Tenant(world.tenant_id()),
        format!("/v1/projects/{}", world.project),
    );
    let tells = if by_another { &another } else { &world.app };
    let mut client = world.app.database.client();
    for (role, before, after) in [("member", 200, 403), ("admin", 403, 200)] {
        // What is seen is remembered.
        for _ in 0..2 {
            assert_eq!(person.client.get(&project).status, before);
        }
        let change = format!(
            "update users set tenant_role = '{role}' where user_id = '{}'",
            person.user_id
        );
        let untold = Held::marked(&world.app, tenant, &change);
        let unread = Held::projects(&world.app);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| person.client.get(&project));
            eventually("the statement to wait beside the check", || {
                is_under_way(&world, &mut client).then_some(())
            });
            untold.release();
            tells
                .permissions()
                .settle(world.tenant_id(), &[tenant])
                .unwrap();
            unread.release();
            assert_eq!(asking.join().unwrap().status, after, "{role}");
        });
    }
}

#[test]
fn a_change_that_is_told_while_the_check_is_under_way_is_seen() {
    changed_meanwhile(false);
}

#[test]
fn a_change_that_another_replica_tells_while_the_check_is_under_way_is_seen() {
    changed_meanwhile(true);
}

#[test]
fn a_change_that_is_not_told_is_told_after_the_check_and_asked_for_again() {
    let world = World::start();
    let person = world.person("admin");
    let project = format!("/v1/projects/{}", world.project);
    person.client.get(&project).expect(200);
    person.client.get(&project).expect(200);
    let change = format!(
        "update users set tenant_role = 'member' where user_id = '{}'",
        person.user_id
    );
    let untold = Held::marked(&world.app, Object::Tenant(world.tenant_id()), &change);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| person.client.get(&project));
        let mut client = world.app.database.client();
        eventually("the request to wait for the object", || {
            let waits = "select count(*) from pg_stat_activity
                         where datname = current_database() and wait_event_type = 'Lock' and query like '%for share of s%'";
            let waiting: i64 = client.query_one(waits, &[]).unwrap().get(0);
            (waiting >= 1).then_some(())
        });
        untold.release();
        let refused = asking.join().unwrap();
        assert_eq!(world.decisions(&refused).len(), 1, "the one that stands");
        refused.expect_error(403, "permission-denied");
    });
}

#[test]
fn what_is_not_found_is_no_decision_though_its_check_was_answered() {
    let world = World::start();
    let provider = format!("/v1/model-providers/{}", world.model_provider);
    for _ in 0..2 {
        let found = world.app.get(&provider);
        assert_eq!(world.decisions(&found).len(), 1);
        found.expect(200);
        let missing = world
            .app
            .get(&format!("/v1/model-providers/{}", Uuid::from_u128(1)));
        assert_eq!(world.decisions(&missing), []);
        missing.expect_error(404, "not-found");
    }
}

#[test]
fn what_was_changed_by_one_replica_is_so_at_every_other() {
    let world = World::start();
    let another = world.app.replica_logged(|_| {}).0;
    another.is_in_step();
    let (owner, member) = (world.person("admin"), world.person("member"));
    let project = format!("/v1/projects/{}", world.project);
    let members = format!("{project}/memberships");
    let of_both = |user_id| [world.app.as_user(user_id), another.as_user(user_id)];
    let (asking, changing) = (of_both(member.user_id), of_both(owner.user_id));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Others ask all the time, so that what is remembered is old and new.
        for client in of_both(world.person("admin").user_id) {
            let (is_over, project) = (&is_over, &project);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    client.get(project).expect(200);
                    client.get("/v1/projects").expect(200);
                }
            });
        }
        for round in 0..40 {
            let change = &changing[round % 2];
            let body = json!({"userId": member.user_id, "role": "viewer"});
            change.post(&members, &body).expect(201);
            for client in &asking {
                client.get(&project).expect(200);
            }
            let one = format!("{members}/{}", member.user_id);
            assert_eq!(change.delete(&one).status, 204);
            for client in &asking {
                client.get(&project).expect_error(403, "permission-denied");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_database_notes_each_telling_whoever_does_it() {
    let (database, tenant_id) = (Database::migrated(), Uuid::nil());
    let mut client = database.client();
    let mark = "insert into authz_objects (tenant_id, object) values ($1, 'org:1')
                on conflict (tenant_id, object) do update set desired = authz_objects.desired + 1";
    client
        .execute("insert into tenants values ($1, 't', now())", &[&tenant_id])
        .unwrap();
    let mut known: Vec<Option<Uuid>> = vec![None];
    for (statement, is_telling) in [
        (mark, false),
        // As every program has said it since the table is there.
        (
            "update authz_objects set applied = desired where tenant_id = $1 and object = 'org:1'",
            true,
        ),
        (mark, false),
        (
            "update authz_objects set applied = desired where tenant_id = $1 and object = 'org:1'",
            true,
        ),
        (
            "delete from authz_objects where tenant_id = $1 and object = 'org:1'",
            true,
        ),
    ] {
        client.execute(statement, &[&tenant_id]).unwrap();
        let last = "select telling from authz_tellings where tenant_id = $1";
        let last = client.query_opt(last, &[&tenant_id]).unwrap();
        let last = last.map(|row| row.get(0));
        assert_eq!(is_telling, !known.contains(&last), "{statement}");
        assert!(is_telling || known.last() == Some(&last), "{statement}");
        known.push(last);
    }
}

#[test]
fn what_a_comparison_puts_right_is_a_telling() {
    let world = World::start();
    let (store_id, model_id, _) = world.app.world().standing().unwrap();
    let nobody_asked = Tuple {
        user: format!("user:{}", Uuid::from_u128(1)),
        relation: "viewer".to_owned(),
        object: Object::Project(world.project).to_string(),
    };
    let on = Pinned { store_id, model_id };
    let fga = client(&OpenFga::shared().url());
    let mut database = world.app.database.client();
    let mut repaired = || {
        let permissions = world.app.permissions();
        let report = permissions.repair(world.tenant_id(), 20, &mut |_| {});
        let last = "select telling from authz_tellings where tenant_id = $1";
        let last = database.query_one(last, &[&world.tenant_id()]).unwrap();
        (report.unwrap().extra.count, last.get::<_, Uuid>(0))
    };
    let (_, before) = repaired();
    assert_eq!(repaired(), (0, before), "nothing was told");
    fga.write(&on, &[], &[nobody_asked]).unwrap();
    let (extra, after) = repaired();
    assert!(extra == 1 && after != before, "{extra} {before} {after}");
}

#[test]
fn a_connection_that_breaks_under_a_check_runs_what_is_beside_it_once() {
    let relay = Arc::new(Relay::before(OpenFga::shared().address()));
    let client = client(&relay.url());
    let store_id = client.create_store("early").unwrap();
    let model_id = client.write_model(&store_id, &Model::own().json).unwrap();
    let on = Pinned { store_id, model_id };
    let question = Question {
        user: "user:1",
        relation: "can_read",
        object: "project:1",
        contextual: &[],
    };
    let breaks = Arc::clone(&relay);
    relay.slow(Duration::from_secs(60));
    let (meanwhile, done) = Meanwhile::new(move || {
        breaks.cut_once();
        breaks.heal();
    });
    let deadline = Instant::now() + Duration::from_secs(30);
    let doing = client.until(deadline).doing(Some(meanwhile));
    assert_eq!(doing.check(&on, &question), Ok(false));
    assert_eq!(done.try_iter().count(), 1);
}
