//! Lists hold what their reader may read, page by page, and one decision stands behind each.

use super::world::{Person, World};
use crate::harness::made::column;
use serde_json::json;
use uuid::Uuid;

/// Every id of a list, by small pages.
#[track_caller]
fn all(person: &Person, path: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    let mark = if path.contains('?') { '&' } else { '?' };
    loop {
        let page = format!("{path}{mark}limit=2{cursor}");
        let page = person.client.get(&page).expect(200);
        let found = column(&page, "id");
        assert!(found.len() <= 2);
        ids.extend(found);
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

fn sorted(ids: &[Uuid]) -> Vec<String> {
    let mut texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    texts.sort();
    texts
}

#[test]
fn a_member_lists_what_lies_in_the_projects_they_have_a_way_into() {
    let world = World::start();
    let member = world.person("member");
    let maker = world.app.maker();
    let projects: Vec<Uuid> = (0..7).map(|_| world.another_project()).collect();
    let agents: Vec<Uuid> = projects.iter().map(|id| maker.bare_agent(*id)).collect();
    world.grant(projects[1], member.user_id, "viewer");
    world.grant(projects[2], member.user_id, "member");
    world.grant_by_team(projects[2], member.user_id, "editor");
    world.grant_by_team(projects[4], member.user_id, "viewer");
    world.grant_by_org(projects[5], member.user_id);
    let readable = [1, 2, 4, 5];
    let own = |all: &[Uuid]| sorted(&readable.map(|index| all[index]));
    let reversed = |mut ids: Vec<String>| {
        ids.reverse();
        ids
    };
    assert_eq!(all(&member, "/v1/projects?order=asc"), own(&projects));
    assert_eq!(
        all(&member, "/v1/projects?order=desc"),
        reversed(own(&projects))
    );
    assert_eq!(all(&member, "/v1/agents?order=asc"), own(&agents));
    assert_eq!(
        all(&member, "/v1/agents?order=desc"),
        reversed(own(&agents))
    );
    for (index, (project, agent)) in projects.iter().zip(&agents).enumerate() {
        let path = format!("/v1/agents?projectId={project}");
        let expected = readable.contains(&index).then(|| agent.to_string());
        assert_eq!(all(&member, &path), Vec::from_iter(expected));
    }
    // Nobody's way leads into the first: the tenant admin sees all.
    let admin = world.person("admin");
    assert_eq!(all(&admin, "/v1/projects").len(), 8);
    world.revoke(projects[1], member.user_id);
    assert_eq!(all(&member, "/v1/projects").len(), 3);
}

#[test]
fn every_kind_is_narrowed_and_filters_show_nothing_else() {
    let world = World::start();
    let (member, reader) = (world.person("member"), world.person("member"));
    world.grant(world.project, reader.user_id, "viewer");
    let elsewhere = world.another_project();
    world.grant(elsewhere, member.user_id, "viewer");
    for (noun, id) in [
        ("tools", world.tool.to_string()),
        ("agents", world.agent.to_string()),
        ("conversations", world.conversation.to_string()),
        ("runs", world.run.clone()),
    ] {
        for order in ["asc", "desc"] {
            let path = format!("/v1/{noun}?order={order}");
            assert_eq!(all(&member, &path), [""; 0], "{path}");
            assert_eq!(all(&reader, &path), std::slice::from_ref(&id), "{path}");
        }
    }
    for path in [
        format!("/v1/runs?agentId={}", world.agent),
        format!("/v1/runs?projectId={}", world.project),
        format!(
            "/v1/runs?projectId={}&agentId={}",
            world.project, world.agent
        ),
        format!("/v1/runs?status=completed&agentId={}", world.agent),
        "/v1/runs?status=completed".to_owned(),
        format!("/v1/conversations?agentId={}", world.agent),
        format!("/v1/conversations?projectId={}", world.project),
    ] {
        assert_eq!(all(&member, &path), [""; 0], "{path}");
        assert_eq!(all(&reader, &path).len(), 1, "{path}");
    }
    let path = format!("/v1/runs?projectId={elsewhere}&agentId={}", world.agent);
    assert_eq!(all(&member, &path), [""; 0]);
    assert_eq!(all(&reader, "/v1/runs?status=failed"), [""; 0]);
    // Model providers are every member's to read.
    let providers = all(&world.person("admin"), "/v1/model-providers");
    assert!(providers.contains(&world.model_provider.to_string()));
    assert_eq!(all(&member, "/v1/model-providers"), providers);
}

#[test]
fn one_decision_about_the_tenant_stands_behind_a_list() {
    let world = World::start();
    let member = world.person("member");
    let answer = member.client.get("/v1/agents");
    let rows = world.decisions(&answer);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].action, "read");
    assert_eq!(rows[0].resource, format!("tenant:{}", world.tenant_id()));
    assert_eq!(rows[0].outcome, "allowed");
    assert_eq!(answer.expect(200)["data"], json!([]));
}
