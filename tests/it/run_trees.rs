//! Lists of runs by what they run, by the tree that they stand in, and by what they wait for.

use crate::harness::{App, Client};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// The ids of a whole list, oldest first, by pages of two.
#[track_caller]
pub(crate) fn list(client: &Client, query: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/runs?limit=2&order=asc&{query}{cursor}");
        let page = client.get(&path).expect(200);
        let runs = page["data"].as_array().unwrap();
        ids.extend(
            runs.iter()
                .map(|run| run["id"].as_str().unwrap().to_owned()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// A tree in one project, and a run in another.
struct Forest {
    app: App,
    project: Uuid,
    other_project: Uuid,
    agent: Uuid,
    /// The root, its children, the second child's children, and a root elsewhere.
    root: String,
    children: [String; 3],
    grandchildren: [String; 2],
    elsewhere: String,
}

/// Runs that were turns, made what they are asked for as.
fn forest() -> Forest {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    let maker = app.maker();
    let (project, other_project) = (maker.project(), maker.project());
    let agent = maker.agent_of(project, &provider.base_url(), |_| {});
    let other_agent = maker.agent_of(other_project, &provider.base_url(), |_| {});
    let turn = |agent: Uuid| {
        let body = json!({"agentId": agent, "message": "a", "labels": {"env": "test"}});
        let started = app.post("/v1/runs", &body).expect(202);
        let run = started["run"]["id"].as_str().unwrap().to_owned();
        app.finished(&run);
        run
    };
    let root = turn(agent);
    let children = [(); 3].map(|()| turn(agent));
    let grandchildren = [(); 2].map(|()| turn(agent));
    let elsewhere = turn(other_agent);
    let mut client = app.database.client();
    let mut below = |run: &String, parent: &String, slot: i32| {
        let statement = "update runs set root_run_id = $1, parent_run_id = $2, parent_slot = $3, origin = 'run' where run_id = $4";
        let id = |text: &String| text.parse::<Uuid>().unwrap();
        let ids = [&root, parent, run].map(id);
        client
            .execute(statement, &[&ids[0], &ids[1], &slot, &ids[2]])
            .unwrap();
    };
    for (slot, child) in (0..).zip(&children) {
        below(child, &root, slot);
    }
    for (slot, grandchild) in (0..).zip(&grandchildren) {
        below(grandchild, &children[1], slot);
    }
    let flow = format!(
        "update runs set flow_id = 'billing.refund', agent_id = null, agent_version = null, via = null
           where run_id in ('{root}', '{elsewhere}');
         update runs set status = 'waiting', waiting_for = 'approval', completed_at = null, wake_at = now(), parked_at = now()
           where run_id in ('{}', '{elsewhere}')",
        children[2]
    );
    client.batch_execute(&flow).unwrap();
    Forest {
        app,
        project,
        other_project,
        agent,
        root,
        children,
        grandchildren,
        elsewhere,
    }
}

/// Each query with what it finds.
#[track_caller]
fn finds(app: &App, queries: &[(String, Vec<&String>)]) {
    for (query, expected) in queries {
        let found = list(app, query);
        assert_eq!(found.iter().collect::<Vec<_>>(), *expected, "{query}");
    }
}

#[test]
fn runs_are_listed_by_the_tree_that_they_stand_in() {
    let forest = forest();
    let (root, agent, elsewhere) = (&forest.root, forest.agent, &forest.elsewhere);
    let (project, other_project) = (forest.project, forest.other_project);
    let (children, grandchildren) = (&forest.children, &forest.grandchildren);
    let below: Vec<&String> = children.iter().chain(grandchildren).collect();
    let grandchildren: Vec<&String> = grandchildren.iter().collect();
    let (middle, waits) = (&children[1], vec![&children[2]]);
    let of_root = |filter: String, found| (format!("rootRunId={root}{filter}"), found);
    let of_middle = |filter: String, found| (format!("parentRunId={middle}{filter}"), found);
    let none = Vec::new();
    finds(
        &forest.app,
        &[
            of_root(String::new(), below.clone()),
            of_root("&label=env:test".to_owned(), below.clone()),
            of_root("&label=env:prod".to_owned(), none.clone()),
            of_root(format!("&agentId={agent}"), below),
            of_root("&status=waiting".to_owned(), waits.clone()),
            of_root(format!("&projectId={project}&waitingFor=approval"), waits),
            of_root("&origin=app".to_owned(), none.clone()),
            of_root(format!("&projectId={other_project}"), none.clone()),
            of_root("&flowId=billing.refund".to_owned(), none.clone()),
            (format!("rootRunId={middle}"), none.clone()),
            (format!("rootRunId={elsewhere}"), none.clone()),
            (format!("rootRunId={agent}"), none.clone()),
            (format!("parentRunId={root}"), children.iter().collect()),
            of_middle(String::new(), grandchildren.clone()),
            of_middle(format!("&rootRunId={root}"), grandchildren),
            of_middle(format!("&rootRunId={elsewhere}"), none.clone()),
            of_middle(format!("&projectId={other_project}"), none.clone()),
            (format!("parentRunId={agent}"), none),
        ],
    );
    for query in [format!("rootRunId={root}"), format!("parentRunId={root}")] {
        assert_eq!(list(&forest.app.other_tenant(), &query), [""; 0], "{query}");
    }
}

#[test]
fn runs_are_listed_by_flow_and_by_what_they_wait_for() {
    let forest = forest();
    let (app, root, agent, elsewhere) =
        (&forest.app, &forest.root, forest.agent, &forest.elsewhere);
    let (project, other_project) = (forest.project, forest.other_project);
    let child = &forest.children[2];
    let (both, waits) = (vec![root, elsewhere], vec![child, elsewhere]);
    let of_flow = |filter: String, found| (format!("flowId=billing.refund{filter}"), found);
    let of_wait = |filter: String, found| (format!("waitingFor=approval{filter}"), found);
    finds(
        app,
        &[
            of_flow(String::new(), both.clone()),
            of_flow("&label=env:test".to_owned(), both),
            of_flow(format!("&projectId={project}"), vec![root]),
            of_flow(format!("&agentId={agent}"), Vec::new()),
            ("flowId=billing.other".to_owned(), Vec::new()),
            of_wait(String::new(), waits.clone()),
            of_wait("&label=env:test".to_owned(), waits),
            of_wait(format!("&agentId={agent}"), vec![child]),
            of_wait(format!("&projectId={other_project}"), vec![elsewhere]),
            ("waitingFor=timer".to_owned(), Vec::new()),
        ],
    );
    assert_eq!(list(&app.other_tenant(), "flowId=billing.refund"), [""; 0]);
    assert_eq!(app.run(child)["waitingFor"], "approval");
    assert_eq!(app.run(root).get("waitingFor"), None, "it does not wait");
}

#[test]
fn a_cursor_is_of_its_filters_and_a_filter_has_its_form() {
    let Forest { app, root, .. } = &forest();
    let page = app
        .get(&format!("/v1/runs?limit=1&rootRunId={root}"))
        .expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    for other in ["", "flowId=agent.turn&", "waitingFor=approval&"] {
        app.get(&format!("/v1/runs?{other}limit=1&cursor={cursor}"))
            .expect_error(400, "invalid-cursor");
    }
    let parent = format!("/v1/runs?limit=1&parentRunId={root}&cursor={cursor}");
    app.get(&parent).expect_error(400, "invalid-cursor");
    for bad in ["flowId=", "rootRunId=x", "parentRunId=x", "waitingFor=rain"] {
        let fault: Value = app
            .get(&format!("/v1/runs?{bad}"))
            .expect_error(400, "invalid-request");
        let parameter = bad.split('=').next().unwrap();
        assert_eq!(fault["details"]["parameter"], parameter, "{fault}");
    }
}
