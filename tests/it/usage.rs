//! `/v1/usage`: sums of what model calls used. Whose runs count is in `access::lists`.

use crate::harness::App;
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::ids::{first_of, rfc3339};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(86_400);

/// Calls, tokens of prompts, and dollars to the millionth, of these runs or sums.
fn totals<'a>(of: impl Iterator<Item = &'a Value>) -> (i64, i64, i64) {
    of.fold((0, 0, 0), |(calls, prompt, cost), one| {
        let dollars = one["costUsd"].as_f64().unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "they are few")]
        let cost = cost + (dollars * 1e6).round() as i64;
        (
            calls + one["calls"].as_i64().unwrap(),
            prompt + one["tokens"]["prompt"].as_i64().unwrap(),
            cost,
        )
    })
}

fn sums(app: &App, query: &str) -> Vec<Value> {
    let report = app.get(&format!("/v1/usage?{query}")).expect(200);
    report["data"].as_array().unwrap().clone()
}

fn started(app: &App, agent: Uuid) -> Value {
    let id = app.start_turn(agent, "a");
    app.finished(&id)
}

#[test]
fn usage_is_summed_by_day_project_agent_and_model() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    let maker = app.maker();
    let (one, two) = (maker.project(), maker.project());
    let first = maker.agent_of(one, &provider.base_url(), |_| {});
    let second = maker.agent_of(one, &provider.base_url(), |_| {});
    let third = maker.agent_of(two, &provider.base_url(), |_| {});
    let mut runs = vec![started(&app, first), started(&app, second)];
    app.clock.advance(DAY);
    runs.extend([started(&app, first), started(&app, third)]);
    let usage = |wanted: &dyn Fn(&Value) -> bool| {
        totals(
            runs.iter()
                .filter(|run| wanted(run))
                .map(|run| &run["usage"]),
        )
    };
    let all = sums(&app, "");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(totals(all.iter()), usage(&|_| true));
    assert_eq!(all[0]["callsWithoutCost"], json!(0));
    for absent in ["day", "projectId", "agentId", "model", "modelProviderId"] {
        assert!(all[0].get(absent).is_none(), "{all:?}");
    }
    let days = sums(&app, "by=day");
    assert_eq!(days.len(), 2);
    for sum in &days {
        let day = sum["day"].as_str().unwrap();
        let of_day = usage(&|run| run["createdAt"].as_str().unwrap().starts_with(day));
        assert_eq!(totals([sum].into_iter()), of_day, "{day}");
    }
    assert!(days[0]["day"].as_str() < days[1]["day"].as_str());
    let both = sums(&app, "by=project&by=agent");
    assert_eq!(both.len(), 3);
    for sum in &both {
        let of_agent = usage(&|run| run["agent"]["id"] == sum["agentId"]);
        assert_eq!(totals([sum].into_iter()), of_agent);
    }
    assert_eq!(
        sums(&app, "by=model").len(),
        3,
        "each has a provider of its own"
    );
    assert_eq!(sums(&app, "by=model")[0]["model"], json!("m"));
    let of_one = sums(&app, &format!("projectId={one}"));
    let expected = usage(&|run| run["projectId"] == json!(one));
    assert_eq!(totals(of_one.iter()), expected);
    let of_first = sums(&app, &format!("agentId={first}&by=day"));
    assert_eq!(of_first.len(), 2);
    let at = runs[2]["createdAt"].as_str().unwrap();
    let later = sums(&app, &format!("from={at}"));
    assert_eq!(
        totals(later.iter()),
        usage(&|run| run["createdAt"].as_str() >= Some(at))
    );
    let nothing = sums(&app, "to=2020-01-01T00:00:00Z&by=day");
    assert_eq!(nothing, Vec::<Value>::new());
    let other = app.other_tenant().get("/v1/usage").expect(200);
    assert_eq!(totals(other["data"].as_array().unwrap().iter()), (0, 0, 0));
}

#[test]
fn a_wrong_time_or_group_is_named() {
    let app = App::start();
    let ahead = rfc3339::text(app.clock.now() + DAY);
    for (query, parameter) in [
        ("by=week", "by"),
        ("from=yesterday", "from"),
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("from=2026-01-01T00:00:00Z&to=2026-04-04T00:00:01Z", "from"),
        (&*format!("from={ahead}"), "from"),
    ] {
        let answer = app.get(&format!("/v1/usage?{query}"));
        let error = answer.expect_error(400, "invalid-request");
        let named = error["details"]["parameter"].as_str().unwrap();
        assert_eq!(named.split('[').next(), Some(parameter), "{query}: {error}");
    }
    app.get("/v1/usage?from=2026-01-01T00:00:00Z&to=2026-04-03T00:00:00Z")
        .expect(200);
}

/// When the first of the many runs began.
const BEGIN: &str = "2026-01-01T00:00:00Z";

/// Runs a minute apart, each with two calls; every tenth began the one after it, whose calls it has in its own sum, too.
/// `has_project`: the calls have what is asked of their runs, unlike those from before migration 0040.
fn many_calls(app: &App, runs: i32, has_project: bool) -> Uuid {
    let project = app.maker().project();
    let mut database = app.database.client();
    database
        .batch_execute("select attach_run_partitions(today => '2026-02-01')")
        .unwrap();
    let fill = "with made as (
          insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
            created_by, created_at, calls, cost_usd, prompt_tokens)
          select $1, id, $2, 'agent.turn', '1.0.0', 'completed', 'app', id, false, $3, made,
            case place % 10 when 0 then 4 else 2 end, case place % 10 when 0 then 4 else 2 end,
            case place % 10 when 0 then 20 else 10 end
          from (
            select place, made,
              (lpad(to_hex((extract(epoch from made) * 1000)::bigint), 12, '0') || lpad(to_hex(place), 20, '0'))::uuid as id
            from (
              select place, $5::text::timestamptz + make_interval(mins => place) as made from generate_series(1, $4) as place
            ) placed
          ) numbered
          returning run_id, created_at
        )
        insert into run_model_calls (tenant_id, run_id, step, attempt, model_provider_id, model, outcome, prompt_tokens,
          cost_usd, started_at, completed_at, project_id, run_created_at)
        select $1, run_id, step, 1, $3, 'm', 'completed', 5, case step when 1 then 2 end, created_at, created_at,
          case when $6 then $2 end, case when $6 then created_at end
        from made, generate_series(1, 2) as step";
    let (tenant_id, user_id) = (app.seeds.tenant_id, app.seeds.user_id);
    database
        .execute(
            fill,
            &[&tenant_id, &project, &user_id, &runs, &BEGIN, &has_project],
        )
        .unwrap();
    database.batch_execute("vacuum analyze").unwrap();
    project
}

#[test]
fn each_call_counts_once_and_no_other_is_read() {
    sums_of_a_day(true);
}

#[test]
fn calls_from_before_they_had_a_project_count_the_same() {
    sums_of_a_day(false);
}

/// Sums a day of three weeks: what it gives, and what it reads.
fn sums_of_a_day(has_project: bool) {
    let app = App::start();
    let runs = 30_000;
    let project = many_calls(&app, runs, has_project);
    let day = sums(
        &app,
        "from=2026-01-10T00:00:00Z&to=2026-01-11T00:00:00Z&by=day&by=model",
    );
    assert_eq!(day.len(), 1, "{day:?}");
    assert_eq!(day[0]["day"], json!("2026-01-10"));
    assert_eq!(
        day[0]["calls"],
        json!(2 * 1440),
        "not those of a child twice"
    );
    assert_eq!(day[0]["tokens"]["prompt"], json!(5 * 2 * 1440));
    assert_eq!(day[0]["costUsd"], json!(2.0 * 1440.0));
    assert_eq!(day[0]["callsWithoutCost"], json!(1440));
    let at = |text| rfc3339::parse(text).unwrap();
    let (from, to) = (at("2026-01-10T00:00:00Z"), at("2026-01-11T00:00:00Z"));
    let sum = include_str!("../../sql/queries/usage/sum.sql");
    let mut database = app.database.client();
    let mut tx = database.transaction().unwrap();
    let tenant_id = app.seeds.tenant_id;
    let (none, no, yes, most) = (None::<Uuid>, false, true, 5001_i64);
    let (low, high) = (first_of(from), first_of(to));
    let parameters: [&(dyn postgres::types::ToSql + Sync); 13] = [
        &tenant_id, &project, &none, &low, &high, &from, &to, &yes, &no, &no, &no, &none, &most,
    ];
    assert_eq!(tx.query(sum, &parameters).unwrap().len(), 1);
    let mut read = |table: &str| -> i64 {
        let rows = "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
            from pg_stat_xact_user_tables where relname = $1 or relname like $1 || '_2%'";
        tx.query_one(rows, &[&table]).unwrap().get(0)
    };
    let (read_runs, read_calls) = (read("runs"), read("run_model_calls"));
    // Calls without a project are looked at twice, and joined to their runs.
    let (most_runs, most_calls) = match has_project {
        true => (0, 2900),
        false => (2900, 2 * 2900),
    };
    assert!(read_runs <= most_runs, "{read_runs} runs of {runs}");
    assert!(
        read_calls <= most_calls,
        "{read_calls} calls of {}",
        2 * runs
    );
}

/// What a run that calls a model writes is what a sum reads.
#[test]
fn a_call_has_the_project_the_agent_and_the_time_of_its_run() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    started(&app, app.agent(&provider.base_url()));
    let differ = "select count(*) filter (where c.project_id = r.project_id and c.agent_id = r.agent_id
        and c.run_created_at = r.created_at), count(*) from run_model_calls c join runs r using (tenant_id, run_id)";
    let row = app.database.client().query_one(differ, &[]).unwrap();
    assert_eq!((row.get(0), row.get(1)), (1_i64, 1_i64));
    let report = app.get("/v1/usage").expect(200);
    assert_eq!(report["hasMore"], json!(false));
}
