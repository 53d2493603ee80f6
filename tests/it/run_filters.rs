//! Lists of runs by how they began: by version, as dry runs, at a time. What such a page reads of many runs.

use crate::harness::{Answer, App};
use crate::run_trees::{self, list};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::ids::{first_of, rfc3339};
use agent_runtime::store::Ordered;
use agent_runtime::store::page::Order;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

#[test]
fn runs_are_listed_by_how_and_when_they_began() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    let started = |more: Value| {
        let mut body = json!({"agentId": agent, "message": "a"});
        let fields = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(fields);
        let run = app.post("/v1/runs", &body).expect(202)["run"].clone();
        let id = run["id"].as_str().unwrap().to_owned();
        app.finished(&id);
        (id, run["createdAt"].as_str().unwrap().to_owned())
    };
    let (first, _) = started(json!({}));
    app.clock.advance(Duration::from_secs(3600));
    let (second, at_second) = started(json!({"version": "1.0.0", "dryRun": true}));
    app.clock.advance(Duration::from_secs(3600));
    let (third, at_third) = started(json!({"version": "1.0.0", "labels": {"env": "test"}}));
    for (query, expected) in [
        ("dryRun=true".to_owned(), vec![&second]),
        ("dryRun=false".to_owned(), vec![&first, &third]),
        ("via=explicit".to_owned(), vec![&second, &third]),
        ("via=explicit&dryRun=false".to_owned(), vec![&third]),
        ("via=latest".to_owned(), vec![&first]),
        ("via=live".to_owned(), vec![]),
        (format!("from={at_second}"), vec![&second, &third]),
        (format!("to={at_second}"), vec![&first]),
        (format!("from={at_second}&to={at_third}"), vec![&second]),
        (
            format!("agentId={agent}&from={at_third}&dryRun=false"),
            vec![&third],
        ),
        (format!("dryRun=true&from={at_third}"), vec![]),
        (format!("label=env:test&from={at_third}"), vec![&third]),
        (format!("label=env:test&to={at_third}"), vec![]),
        ("flowId=agent.turn&dryRun=true".to_owned(), vec![&second]),
        ("flowId=billing.refund&dryRun=true".to_owned(), vec![]),
    ] {
        let found = list(&app, &query);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
        assert_eq!(list(&app.other_tenant(), &query), [""; 0], "{query}");
    }
    for (bad, parameter) in [
        ("via=luck", "via"),
        ("dryRun=maybe", "dryRun"),
        ("from=yesterday", "from"),
        ("from=1969-01-01T00:00:00Z", "from"),
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
    ] {
        let fault = app
            .get(&format!("/v1/runs?{bad}"))
            .expect_error(400, "invalid-request");
        assert_eq!(fault["details"]["parameter"], parameter, "{fault}");
    }
    let page = app.get("/v1/runs?limit=1&dryRun=false").expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    for other in [
        "dryRun=true",
        "via=latest&dryRun=false",
        "from=2020-01-01T00:00:00Z&dryRun=false",
    ] {
        app.get(&format!("/v1/runs?limit=1&{other}&cursor={cursor}"))
            .expect_error(400, "invalid-cursor");
    }
}

/// The id of the request that the answer names.
fn request_of(answer: &Answer) -> String {
    let id = answer.header("x-request-id").unwrap();
    assert!(id.starts_with("req-"), "{id}");
    id.to_owned()
}

#[test]
fn a_run_is_found_by_the_request_that_created_it() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: vec![Step::json(400, &json!({"error": {"message": "No."}}))],
        then: Step::text("Yes."),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    let start = || {
        let answer = app.post("/v1/runs", &json!({"agentId": agent, "message": "a"}));
        let request = request_of(&answer);
        let id = answer.expect(202)["run"]["id"].as_str().unwrap().to_owned();
        app.finished(&id);
        (id, request)
    };
    let (failed, of_failed) = start();
    let (second, of_second) = start();
    let retry = app.post(&format!("/v1/runs/{failed}/retry"), &json!({}));
    let of_retry = request_of(&retry);
    let retried = retry.expect(202)["run"]["id"].as_str().unwrap().to_owned();
    app.finished(&retried);
    for (request, expected) in [
        (&of_failed, vec![failed.clone()]),
        (&of_second, vec![second]),
        (&of_retry, vec![retried]),
    ] {
        assert_eq!(list(&app, &format!("requestId={request}")), expected);
        let other = app.other_tenant();
        assert_eq!(list(&other, &format!("requestId={request}")), [""; 0]);
    }
    let and = |filter: &str| list(&app, &format!("requestId={of_failed}&{filter}"));
    assert_eq!(and("status=failed"), [failed]);
    assert_eq!(and("status=completed"), [""; 0]);
    // Requests that created nothing, and ids that say no time.
    let read = request_of(&app.get("/v1/runs"));
    for nothing in [read, format!("req-{}", Uuid::from_u128(7))] {
        assert_eq!(list(&app, &format!("requestId={nothing}")), [""; 0]);
    }
    for bad in [&of_failed[4..], "req-7", "req-"] {
        let fault = app
            .get(&format!("/v1/runs?requestId={bad}"))
            .expect_error(400, "invalid-request");
        assert_eq!(fault["details"]["parameter"], "requestId", "{fault}");
    }
}

const RUNS: i32 = 40_000;

/// When the first of the many runs began.
const BEGIN: &str = "2026-01-01T00:00:00Z";

/// Runs a second apart in three projects: turns of agents, and among them few runs of a flow and few dry runs. A third of the
/// runs is of another flow, and few of these failed.
fn many_runs(app: &App) -> Vec<Uuid> {
    let maker = app.maker();
    let projects: Vec<Uuid> = (0..3).map(|_| maker.project()).collect();
    let fill = "insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id,
          dry_run, created_by, created_at, failure_message)
        select $1, id, ($2::uuid[])[1 + place % 3],
          case when place % 1000 = 0 then 'billing.refund' when place % 3 = 2 then 'billing.pay' else 'agent.turn' end,
          '1.0.0', case when place % 4000 = 2 then 'failed' else 'completed' end, 'app', id, place % 2000 = 1, $3, made,
          case when place % 4000 = 2 then 'No.' end
        from (
          select place, made,
            (lpad(to_hex((extract(epoch from made) * 1000)::bigint), 12, '0') || lpad(to_hex(place), 20, '0'))::uuid as id
          from (
            select place, $5::text::timestamptz + make_interval(secs => place) as made
            from generate_series(1, $4) as place
          ) placed
        ) numbered";
    let mut database = app.database.client();
    let (tenant_id, user_id) = (app.seeds.tenant_id, app.seeds.user_id);
    database
        .execute(fill, &[&tenant_id, &projects, &user_id, &RUNS, &BEGIN])
        .unwrap();
    database.batch_execute("vacuum analyze").unwrap();
    projects
}

/// A list's statement, as the store makes it for a filter with an index of its own.
fn led(list: &str, given: &[(&str, &str)]) -> Ordered {
    let mut text = list.to_owned();
    for (optional, given) in given {
        assert!(text.contains(optional), "{optional}: {text}");
        text = text.replace(optional, given);
    }
    Ordered::of(&text)
}

/// A filter for runs that failed, as a statement has it for all filters, and as it leads.
const FAILED: (&str, &str) = (
    "($5::text is null or status = $5)",
    "status = $5 and failure_message is not null",
);

/// The runs of `billing.pay` that failed.
fn failed_runs() -> u32 {
    let failed = (1..=RUNS).filter(|place| place % 4000 == 2 && place % 3 == 2);
    u32::try_from(failed.count()).unwrap()
}

/// A page has so many rows, and takes few pages of the database: with a plan for these values, and with one for all.
#[track_caller]
fn reads_few(app: &App, types: &str, list: Ordered, values: &str, found: u32) {
    let mut database = app.database.client();
    for order in [Order::Asc, Order::Desc] {
        for plans in ["force_custom_plan", "force_generic_plan"] {
            let prepare = format!(
                "set plan_cache_mode = {plans}; prepare page ({types}) as {}",
                list.by(order)
            );
            database.batch_execute(&prepare).unwrap();
            let explain =
                format!("explain (analyze, buffers, format json) execute page ({values})");
            // The first time it is planned.
            database.query_one(&explain, &[]).unwrap();
            let said: Value = database.query_one(&explain, &[]).unwrap().get(0);
            let plan = &said[0]["Plan"];
            assert_eq!(
                plan["Actual Rows"].as_f64(),
                Some(f64::from(found)),
                "{said}"
            );
            let read = plan["Shared Hit Blocks"].as_i64();
            assert!(read.is_some_and(|pages| pages < 300), "{plans}: {said}");
            database.batch_execute("deallocate page").unwrap();
        }
    }
}

#[test]
fn a_page_by_flow_of_dry_runs_or_by_time_reads_few_of_many_runs() {
    let app = App::start();
    many_runs(&app);
    let tenant = app.seeds.tenant_id;
    let (nil, max) = (Uuid::nil(), Uuid::max());
    let types = "uuid, uuid, uuid, uuid, text, text, uuid, bigint, text, text, uuid, text, boolean, timestamptz, timestamptz, boolean";
    let values = |flow: &str, dry: &str, low: Uuid, high: Uuid| {
        format!(
            "'{tenant}', null, null, null, null, null, '{low}', 51, {flow}, null, '{high}', null, {dry}, null, null, null"
        )
    };
    let each = include_str!("../../sql/queries/runs/list_each_project.sql");
    let flow = (
        "($9::text is null or flow_id = $9)",
        "flow_id = $9 and flow_id <> 'agent.turn'",
    );
    let dry = (
        "($13::boolean is null or dry_run = $13)",
        "dry_run and $13::boolean",
    );
    let of_flow = values("'billing.refund'", "null", nil, max);
    reads_few(&app, types, led(each, &[flow]), &of_flow, 40);
    let failures = format!(
        "'{tenant}', null, null, null, 'failed', null, '{nil}', 51, 'billing.pay', null, '{max}', null, null, null, null, null"
    );
    reads_few(&app, types, led(each, &[FAILED]), &failures, failed_runs());
    let dries = values("null", "true", nil, max);
    reads_few(&app, types, led(each, &[dry]), &dries, 20);
    // Half a minute in the middle.
    let at = rfc3339::parse(BEGIN).unwrap() + Duration::from_secs(20_000);
    let span = (first_of(at), first_of(at + Duration::from_secs(30)));
    let all = Ordered::of(include_str!("../../sql/queries/runs/list_all.sql"));
    reads_few(
        &app,
        types,
        all,
        &values("null", "null", span.0, span.1),
        30,
    );
}

/// Of the many runs the newest ten thousand are below one root, and a few were cancelled.
fn many_below_a_root(app: &App) {
    let mut database = app.database.client();
    let statements = "with root as (select run_id from runs order by run_id offset 29999 limit 1)
         update runs r set parent_run_id = root.run_id, root_run_id = root.run_id, parent_slot = 1, origin = 'run'
         from root where r.run_id > root.run_id;
         update runs set status = 'cancelled', cancel_requested_at = now()
         where run_id in (select run_id from runs order by run_id offset 20000 limit 20)";
    database.batch_execute(statements).unwrap();
    database.batch_execute("vacuum analyze").unwrap();
}

#[test]
fn a_page_of_roots_or_of_cancelled_runs_reads_few_of_many_runs() {
    let app = App::start();
    let project = many_runs(&app)[0];
    many_below_a_root(&app);
    let tenant = app.seeds.tenant_id;
    let (nil, max) = (Uuid::nil(), Uuid::max());
    let types = "uuid, uuid, uuid, uuid, text, text, uuid, bigint, text, text, uuid, text, boolean, timestamptz, timestamptz, boolean";
    let values = |project: &str, status: &str, roots: &str| {
        format!(
            "'{tenant}', {project}, null, null, {status}, null, '{nil}', 51, null, null, '{max}', null, null, null, null, {roots}"
        )
    };
    let roots = (
        "($16::boolean is null or parent_run_id is null)",
        "parent_run_id is null and $16::boolean",
    );
    let all = include_str!("../../sql/queries/runs/list_all.sql");
    let of_all = values("null", "null", "true");
    reads_few(&app, types, led(all, &[roots]), &of_all, 51);
    let of_project = include_str!("../../sql/queries/runs/list_project.sql");
    let in_project = values(&format!("'{project}'"), "null", "true");
    reads_few(&app, types, led(of_project, &[roots]), &in_project, 51);
    let each = include_str!("../../sql/queries/runs/list_each_project.sql");
    let cancelled = (
        "($5::text is null or status = $5)",
        "status = $5 and cancel_requested_at is not null",
    );
    let of_cancelled = values("null", "'cancelled'", "null");
    reads_few(&app, types, led(each, &[cancelled]), &of_cancelled, 20);
}

#[test]
fn a_page_of_unfinished_runs_of_a_flow_reads_few_of_many_runs() {
    let app = App::start();
    many_runs(&app);
    let tenant = app.seeds.tenant_id;
    let mut database = app.database.client();
    let waits = format!(
        "with waiting as (
           update runs set status = 'waiting', waiting_for = 'timer'
           where run_id in (select run_id from runs where flow_id = 'billing.pay' order by run_id offset 5000 limit 30)
           returning run_id)
         insert into job_jobs (run_at, max_attempts, priority, queue, name, fairness_key, payload)
         select now() + interval '1 day', 1, 1, 'runs', 'run.advance', '{tenant}', json_build_object('runId', run_id)
         from waiting"
    );
    database.batch_execute(&waits).unwrap();
    database.batch_execute("vacuum analyze").unwrap();
    let (nil, max) = (Uuid::nil(), Uuid::max());
    let types = "uuid, uuid, uuid, uuid, text, text, uuid, bigint, text, text, uuid, text, boolean, timestamptz, timestamptz, boolean, uuid";
    let values = format!(
        "'{tenant}', null, null, null, 'waiting', null, '{nil}', 51, 'billing.pay', null, '{max}', null, null, null, null, null, null"
    );
    let list = Ordered::of(include_str!("../../sql/queries/runs/list_unfinished.sql"));
    reads_few(&app, types, list, &values, 30);
    let found = run_trees::list(&app, "status=waiting&flowId=billing.pay&children=true");
    assert_eq!(found.len(), 30);
    assert_eq!(
        run_trees::list(&app, "status=queued&flowId=billing.pay"),
        [""; 0]
    );
    assert_eq!(
        run_trees::list(&app, "waitingFor=timer&flowId=billing.refund"),
        [""; 0]
    );
    assert_eq!(run_trees::list(&app, "waitingFor=timer"), found);
}

#[test]
fn a_readers_page_by_flow_of_failed_or_of_dry_runs_reads_few_of_many_runs() {
    let app = App::start();
    let projects = many_runs(&app);
    let (tenant, user) = (app.seeds.tenant_id, app.seeds.user_id);
    let (nil, max) = (Uuid::nil(), Uuid::max());
    let mut database = app.database.client();
    for project in &projects {
        let member =
            "insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
            values ($1, $2, $3, 'viewer', now()) on conflict do nothing";
        database
            .execute(member, &[&tenant, project, &user])
            .unwrap();
    }
    database.batch_execute("analyze").unwrap();
    let types = "uuid, uuid, uuid, bigint, text, text, text, text, uuid, text, boolean, timestamptz, timestamptz, boolean";
    let values = |flow: &str, dry: &str| {
        format!(
            "'{tenant}', '{user}', '{nil}', 51, null, null, {flow}, null, '{max}', null, {dry}, null, null, null"
        )
    };
    let reader = include_str!("../../sql/queries/runs/list_reader.sql");
    let flow = (
        "($7::text is null or flow_id = $7)",
        "flow_id = $7 and flow_id <> 'agent.turn'",
    );
    let dry = (
        "($11::boolean is null or dry_run = $11)",
        "dry_run and $11::boolean",
    );
    let failures = format!(
        "'{tenant}', '{user}', '{nil}', 51, 'failed', null, 'billing.pay', null, '{max}', null, null, null, null, null"
    );
    reads_few(
        &app,
        types,
        led(reader, &[FAILED]),
        &failures,
        failed_runs(),
    );
    let of_flow = values("'billing.refund'", "null");
    reads_few(&app, types, led(reader, &[flow]), &of_flow, 40);
    reads_few(
        &app,
        types,
        led(reader, &[dry]),
        &values("null", "true"),
        20,
    );
}
