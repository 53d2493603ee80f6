//! Lists hold what their reader may read, page by page, and one decision stands behind each.

use super::world::{Key, Person, World};
use crate::harness::made::column;
use crate::harness::{Client, Deaf};
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

#[test]
fn a_list_of_runs_by_label_holds_what_its_reader_may_read() {
    let world = World::start();
    let (member, admin) = (world.person("member"), world.person("admin"));
    let maker = world.app.maker();
    let (mut own, mut every) = (Vec::new(), Vec::new());
    for index in 0..4 {
        let project = world.another_project();
        let agent = maker.agent_of(project, &world.provider.base_url(), |_| {});
        if index % 2 == 1 {
            world.grant(project, member.user_id, "viewer");
            world.grant_by_team(project, member.user_id, "editor");
        }
        for tier in ["1", "2"] {
            let body =
                json!({"agentId": agent, "message": "a", "labels": {"env": "prod", "tier": tier}});
            let run = world.app.post("/v1/runs", &body).expect(202)["run"].clone();
            let id = run["id"].as_str().unwrap().to_owned();
            world.app.finished(&id);
            if tier == "1" {
                every.push(id.clone());
                own.extend((index % 2 == 1).then_some(id));
            }
        }
    }
    let path = "/v1/runs?order=asc&label=env:prod&label=tier:1";
    assert_eq!(all(&member, path), own);
    assert_eq!(all(&admin, path), every);
    own.reverse();
    let newest = "/v1/runs?label=env:prod&label=tier:1&status=completed";
    assert_eq!(all(&member, newest), own);
}

#[test]
fn a_reader_s_lists_leave_out_what_is_archived_and_pages_are_full() {
    let world = World::start();
    let (member, editor) = (world.person("member"), world.person("member"));
    let maker = world.app.maker();
    let projects: Vec<Uuid> = (0..9).map(|_| world.another_project()).collect();
    let agents: Vec<Uuid> = projects.iter().map(|id| maker.bare_agent(*id)).collect();
    for project in &projects {
        world.grant(*project, member.user_id, "viewer");
        world.grant(*project, editor.user_id, "editor");
    }
    let archive = |client: &Client, noun: &str, id: Uuid, act: &str| {
        client.send("POST", &format!("/v1/{noun}/{id}/{act}"), None, &[])
    };
    // The archived ones stand together, longer than a page.
    for project in &projects[2..7] {
        archive(&world.app, "projects", *project, "archive").expect(200);
    }
    archive(&world.app, "agents", agents[8], "archive").expect(200);
    let own = |all: &[Uuid], wanted: &[usize]| -> Vec<String> {
        wanted.iter().map(|index| all[*index].to_string()).collect()
    };
    for (path, expected) in [
        ("/v1/projects?order=asc", own(&projects, &[0, 1, 7, 8])),
        ("/v1/projects?order=desc", own(&projects, &[8, 7, 1, 0])),
        (
            "/v1/projects?order=asc&archived=true",
            own(&projects, &[2, 3, 4, 5, 6]),
        ),
        ("/v1/agents?order=asc", own(&agents, &[0, 1, 7])),
        (
            "/v1/agents?order=desc&archived=true",
            own(&agents, &[8, 6, 5, 4, 3, 2]),
        ),
    ] {
        assert_eq!(all(&member, path), expected, "{path}");
    }
    for act in ["archive", "unarchive"] {
        for (noun, id) in [("projects", projects[0]), ("agents", agents[0])] {
            archive(&editor.client, noun, id, act).expect_error(403, "permission-denied");
        }
    }
}

#[test]
fn usage_is_summed_of_what_its_reader_may_read() {
    let world = World::start();
    let calls = |person: &Person, query: &str| {
        let report = person.client.get(&format!("/v1/usage?{query}")).expect(200);
        let sums = report["data"].as_array().unwrap().clone();
        sums.iter()
            .map(|sum| sum["calls"].as_i64().unwrap())
            .sum::<i64>()
    };
    let run = world.app.run(&world.run);
    let used = run["usage"]["calls"].as_i64().unwrap();
    assert!(used > 0);
    let (reader, stranger) = (world.person("member"), world.person("member"));
    world.grant(world.project, reader.user_id, "viewer");
    assert_eq!(calls(&world.person("admin"), "by=day"), used);
    assert_eq!(calls(&reader, "by=project"), used);
    assert_eq!(
        calls(&reader, &format!("projectId={}", world.project)),
        used
    );
    assert_eq!(calls(&stranger, ""), 0);
    assert_eq!(calls(&stranger, &format!("projectId={}", world.project)), 0);
    let elsewhere = world.another_project();
    world.grant(elsewhere, stranger.user_id, "viewer");
    assert_eq!(calls(&stranger, "by=agent"), 0);
}

#[test]
fn that_calls_of_a_provider_fail_is_told_to_tenant_admins_alone() {
    let world = World::start();
    let deaf = Deaf::new();
    let base_url = format!("http://{}/v1", deaf.address());
    let agent = world.app.maker().agent_of(world.project, &base_url, |_| {});
    let run = world.app.start_turn(agent, "a");
    assert_eq!(world.app.finished(&run)["status"], json!("failed"));
    let sees = |person: &Person| {
        let listed = person.client.get("/v1/model-providers").expect(200);
        let rows = listed["data"].as_array().unwrap();
        let row = rows.iter().find(|row| row["baseUrl"] == json!(base_url));
        let row = row.unwrap();
        let path = format!("/v1/model-providers/{}", row["id"].as_str().unwrap());
        assert_eq!(&person.client.get(&path).expect(200), row);
        row.get("failing").is_some()
    };
    let admin = world.person("admin");
    let owner = world.person("member");
    world.grant(world.project, owner.user_id, "owner");
    assert!(sees(&admin));
    assert!(!sees(&owner));
    let member_key = Key {
        role: "member",
        ..Key::whole()
    };
    assert!(!sees(&world.key(admin.user_id, &member_key)));
    let of_project = Key {
        project_id: Some(world.project),
        ..Key::whole()
    };
    assert!(!sees(&world.key(admin.user_id, &of_project)));
}
