//! Changes that the database has and the authorization server has not: whoever asks tells first what the answer depends on,
//! and nothing else.

use super::world::World;
use crate::harness::Database;
use agent_runtime::{in_sync_sql, sql};
use postgres::types::ToSql;
use uuid::Uuid;

#[test]
fn no_request_is_answered_from_a_role_that_was_taken_away_and_not_told() {
    let world = World::start();
    let (person, admin) = (world.person("member"), world.person("admin"));
    let project = format!("project:{}", world.project);
    let agent = format!("/v1/agents/{}", world.agent);
    for _ in 0..3 {
        world.grant(world.project, person.user_id, "viewer");
        person.client.get(&agent).expect(200);
        let leave = format!(
            "delete from project_memberships where user_id = '{}'",
            person.user_id
        );
        world.app.marked_sql(&project, &leave);
        let refused = person.client.get(&agent);
        refused.expect_error(403, "permission-denied");
    }
    // Of a list, the standing on the tenant.
    let listed = admin.client.get("/v1/projects").expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let deactivate = format!(
        "update users set deactivated_at = now() where user_id = '{}'",
        admin.user_id
    );
    let tenant = format!("tenant:{}", world.tenant_id());
    world.app.marked_sql(&tenant, &deactivate);
    assert_ne!(admin.client.get("/v1/projects").status, 200);
}

#[test]
fn what_is_left_untold_of_another_object_holds_nobody_up() {
    let world = World::start();
    let another = format!("project:{}", world.another_project());
    let mut client = world.app.database.client();
    // Nobody can tell it while its row is locked. Until then the reconciler may have done so.
    let held = loop {
        world.app.marked_sql(&another, "select");
        let mut held = client.transaction().unwrap();
        let lock = "select from authz_objects where object = $1 and applied < desired for update";
        if held.execute(lock, &[&another]).unwrap() == 1 {
            break held;
        }
    };
    let own = format!("/v1/projects/{}", world.project);
    world.app.get(&own).expect(200);
    world.app.get("/v1/projects").expect(200);
    held.commit().unwrap();
    world
        .app
        .get(&format!("/v1/projects/{}", &another["project:".len()..]))
        .expect(200);
}

/// Rows of `authz_objects` that a statement reads, in full scans and by index.
fn objects_read(
    client: &mut postgres::Client,
    mode: &str,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> i64 {
    let mut tx = client.transaction().unwrap();
    tx.batch_execute(&format!("set local plan_cache_mode = {mode}"))
        .unwrap();
    tx.query_one(statement, parameters).unwrap();
    let read = "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables
                where relname = 'authz_objects'";
    tx.query_one(read, &[]).unwrap().get(0)
}

#[test]
fn what_was_told_is_not_read_to_learn_that_nothing_is_left() {
    let (database, tenant_id) = (Database::migrated(), Uuid::nil());
    let mut client = database.client();
    client
        .batch_execute(&format!(
            "insert into tenants (tenant_id, name, created_at) values ('{tenant_id}', 't', now());
             insert into authz_stores
             values ('{tenant_id}', 's', 'm', 1, sha256('m'), now(), now());
             insert into authz_objects (tenant_id, object, desired, applied)
             select '{tenant_id}', 'project:' || gen_random_uuid(), 2, 2 from generate_series(1, 5000);
             analyze authz_objects"
        ))
        .unwrap();
    let (objects, nowhere) = (vec![format!("tenant:{tenant_id}")], None::<Uuid>);
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let in_sync = in_sync_sql!("tenants/is_admin");
        let read = objects_read(&mut client, mode, in_sync, &[&tenant_id, &tenant_id]);
        assert_eq!(read, 0, "in_sync, {mode}");
        let asked: [&(dyn ToSql + Sync); 3] = [&tenant_id, &objects, &nowhere];
        let read = objects_read(&mut client, mode, sql!("authz/guard"), &asked);
        assert_eq!(read, 0, "guard, {mode}");
    }
}
