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
           where run_id in ('{0}', '{elsewhere}');
         insert into job_jobs (run_at, max_attempts, priority, queue, name, fairness_key, payload)
           select now() + interval '1 day', 1, 1, 'runs', 'run.advance', tenant_id, json_build_object('runId', run_id)
           from runs where run_id in ('{0}', '{elsewhere}')",
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
fn child_runs_are_listed_where_they_are_asked_for() {
    let forest = forest();
    let (root, agent, elsewhere) = (&forest.root, forest.agent, &forest.elsewhere);
    let project = forest.project;
    let below = || forest.children.iter().chain(&forest.grandchildren);
    let all: Vec<&String> = std::iter::once(root).chain(below()).collect();
    let every: Vec<&String> = all.iter().copied().chain([elsewhere]).collect();
    let (roots, none) = (vec![root, elsewhere], Vec::new());
    let of = |filter: &str, found: &Vec<_>| (filter.to_owned(), found.clone());
    finds(
        &forest.app,
        &[
            of("", &roots),
            of("children=false", &roots),
            of("children=true", &every),
            of("label=env:test", &roots),
            of("label=env:test&children=true", &every),
            of("origin=app", &roots),
            of("origin=run", &below().collect()),
            of("origin=run&children=false", &none),
            of("status=completed&dryRun=false", &vec![root]),
            of(&format!("projectId={project}"), &vec![root]),
            of(&format!("projectId={project}&children=true"), &all),
            of(&format!("agentId={agent}"), &none),
            of(
                &format!("agentId={agent}&children=true"),
                &below().collect(),
            ),
            of(&format!("rootRunId={root}&children=false"), &none),
        ],
    );
    let app = &forest.app;
    app.get("/v1/runs?children=1")
        .expect_error(400, "invalid-request");
    let page = app.get("/v1/runs?limit=1&children=true").expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    for other in ["", "children=false&"] {
        app.get(&format!("/v1/runs?{other}limit=1&cursor={cursor}"))
            .expect_error(400, "invalid-cursor");
    }
}

#[test]
fn a_row_of_a_list_has_its_parent_its_children_and_its_branch() {
    let forest = forest();
    let mut client = forest.app.database.client();
    let (root, middle) = (&forest.root, &forest.children[1]);
    let rows = format!(
        "insert into run_children (tenant_id, parent_run_id, slot, child_run_id, path, state)
           select tenant_id, parent_run_id, parent_slot, run_id, '/do/0/each', 'completed' from runs
           where parent_run_id is not null;
         update runs set branch = '/do/0/each/' || parent_slot where parent_run_id = '{root}'"
    );
    client.batch_execute(&rows).unwrap();
    let page = forest
        .app
        .get("/v1/runs?children=true&order=asc")
        .expect(200);
    let row = |id: &String| {
        let rows = page["data"].as_array().unwrap();
        rows.iter()
            .find(|row| row["id"] == json!(id))
            .unwrap()
            .clone()
    };
    assert_eq!(row(root)["childCount"], 3);
    assert_eq!(row(root).get("parentRunId"), None, "no run began it");
    assert_eq!(row(root).get("branch"), None);
    assert_eq!(row(middle)["childCount"], 2);
    assert_eq!(row(middle)["parentRunId"], json!(root));
    assert_eq!(
        row(middle)["branch"],
        json!({"path": "/do/0/each", "index": 1})
    );
    let last = &forest.grandchildren[1];
    assert_eq!(row(last)["childCount"], 0);
    assert_eq!(row(last)["parentRunId"], json!(middle));
    assert_eq!(
        forest.app.run(root).get("childCount"),
        None,
        "in a list alone"
    );
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
    let of_wait =
        |filter: String, found| (format!("waitingFor=approval&children=true{filter}"), found);
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
            ("waitingFor=approval".to_owned(), vec![elsewhere]),
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
