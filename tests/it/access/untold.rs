//! Changes that the database has and the authorization server has not: whoever asks tells first what the answer depends on,
//! and nothing else.

use super::world::World;

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
    // Nobody can tell it while its row is locked. Until then the keeper may have done so.
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
