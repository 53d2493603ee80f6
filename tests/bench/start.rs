//! From the start of the program to its first answer that it is ready, on a migrated database and with a thousand
//! permissions at the authorization server, beside `psql -c 'select 1'` on the same database; and its resident memory
//! once it has been idle for a while.

use super::deployment::Deployment;
use super::load::Load;
use super::machine::resident_kib;
use super::plan::Plan;
use super::rounds::{Figure, alone, compare, median};
use super::row::{About, Growth, Line, Target};
use super::{Done, Outcome};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TUPLES: usize = 1000;
/// Beside those of the row.
const FEWER: usize = 100;
const MORE: usize = 10_000;
/// Of each round.
const STARTS: usize = 5;
const CREATORS: usize = 8;
/// Permissions that OpenFGA reads at once.
const PAGE: usize = 100;

/// The program `psql` itself: Debian's of the same name is a script that looks for it.
fn psql() -> Outcome<PathBuf> {
    let found = |directory: PathBuf| Some(directory.join("bin/psql")).filter(|psql| psql.exists());
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut installed: Vec<PathBuf> = versions
        .filter_map(|version| found(version.ok()?.path()))
        .collect();
    installed.sort();
    let elsewhere = ["/usr", "/usr/local", "/opt/homebrew"];
    let elsewhere = || {
        elsewhere
            .iter()
            .find_map(|prefix| found(Path::new(prefix).to_path_buf()))
    };
    installed
        .pop()
        .or_else(elsewhere)
        .ok_or_else(|| "psql is not here: run tests/setup/postgres".into())
}

/// Milliseconds of `psql -c 'select 1'`.
fn select_1(psql: &Path, database_url: &str) -> Outcome<f64> {
    let began = Instant::now();
    let status = Command::new(psql)
        .args(["-c", "select 1"])
        .arg(database_url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let took = began.elapsed();
    match status.success() {
        true => Ok(took.as_secs_f64() * 1000.0),
        false => Err("psql failed".into()),
    }
}

/// The middle of a round's measurements.
fn of_round(each: impl Fn() -> Outcome<f64>) -> Outcome<f64> {
    let figures = (0..STARTS).map(|_| each());
    Ok(median(figures.collect::<Outcome<_>>()?))
}

/// Milliseconds to the first answer that it is ready.
fn start(deployment: &Deployment) -> Outcome<f64> {
    Ok(deployment.replica()?.ready_after.as_secs_f64() * 1000.0)
}

/// MiB once nothing has been asked of it for this long.
fn idle(deployment: &Deployment, pause: Duration) -> Outcome<f64> {
    let replica = deployment.replica()?;
    std::thread::sleep(pause);
    Ok(resident_kib(replica.id())? / 1024.0)
}

/// How many permissions the authorization server has.
fn tuples(deployment: &Deployment) -> Outcome<usize> {
    let row = deployment
        .database()?
        .query_one("select store_id from authz_stores", &[])?;
    let store_id: String = row.get(0);
    let url = format!("{}/stores/{store_id}/read", deployment.authorization_url()?);
    let mut body = json!({"page_size": PAGE});
    let mut count = 0;
    loop {
        let mut answer = ureq::post(&url).send(body.to_string())?;
        let page: Value = serde_json::from_str(&answer.body_mut().read_to_string()?)?;
        count += page["tuples"].as_array().map_or(0, Vec::len);
        match page["continuation_token"].as_str() {
            Some(token) if !token.is_empty() => body["continuation_token"] = json!(token),
            _ => return Ok(count),
        }
    }
}

/// Adds projects until there are at least this many permissions; how many there are.
fn fill(deployment: &Deployment, wanted: usize) -> Outcome<usize> {
    let replica = deployment.replica()?;
    let number = AtomicUsize::new(0);
    let project = |deployment: &Deployment, many: usize| -> Outcome<usize> {
        let each = many.div_ceil(CREATORS).saturating_sub(1);
        Load::of(CREATORS, each, &|_| {
            Ok(Box::new(|| {
                let name = format!("project {}", number.fetch_add(1, Ordering::Relaxed));
                let made = replica.client.post("/v1/projects", &json!({"name": name}));
                made.map(|_| ())
            }))
        })?;
        tuples(deployment)
    };
    let before = tuples(deployment)?;
    let mut there = project(deployment, CREATORS)?;
    let of_each = (there - before).max(1).div_ceil(CREATORS);
    let deadline = Instant::now() + Duration::from_secs(60);
    while there < wanted {
        if Instant::now() > deadline {
            return Err(format!("there are only {there} of {wanted} permissions").into());
        }
        there = project(deployment, (wanted - there) / of_each)?;
    }
    Ok(there)
}

const START: About = About {
    name: "start",
    work: "start of the program to ready, on a migrated database and with 1,000 permissions at the authorization server",
    beside: "`psql -c 'select 1'` on the same database, without the script that Debian puts before it",
    unit: "ms",
    target: Target::AtMost(15.0),
    says_not: "The database and the authorization server are running already; nothing is migrated.",
};
const IDLE: About = About {
    name: "idle-memory",
    work: "resident memory of the program, ready and then idle",
    beside: "40 MiB",
    unit: "MiB",
    target: Target::AtMost(40.0),
    says_not: "What the database and the authorization server take.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let deployment = Deployment::start(true, &[])?;
    // Migrates.
    drop(deployment.replica()?);
    let psql = psql()?;
    let pause = plan.pick(Duration::from_secs(3), Duration::from_secs(5));
    let (mut starts, mut memory) = (Vec::new(), Vec::new());
    let mut grow = |wanted: usize| -> Outcome {
        let there = fill(&deployment, wanted)? as f64;
        if !plan.short {
            starts.push((there, of_round(|| start(&deployment))?));
            memory.push((there, idle(&deployment, pause)?));
        }
        Ok(())
    };
    if !plan.short {
        grow(FEWER)?;
    }
    grow(TUPLES)?;
    let mut row = compare(
        plan,
        &START,
        || Figure::of(|| of_round(|| start(&deployment))),
        || Figure::of(|| of_round(|| select_1(&psql, &deployment.database_url()))),
    )?;
    let mut resident = alone(plan, &IDLE, || Figure::of(|| idle(&deployment, pause)))?;
    row.versions = vec![version(&psql)?];
    if !plan.short {
        grow(MORE)?;
        row.growth.push(growth("ms", starts));
        resident.growth.push(growth("MiB", memory));
    }
    done(row)?;
    done(resident)
}

fn growth(unit: &str, points: Vec<(f64, f64)>) -> Growth {
    Growth {
        over: "permissions".to_owned(),
        unit: unit.to_owned(),
        lines: vec![Line {
            label: "agent-runtime".to_owned(),
            points,
        }],
    }
}

fn version(psql: &Path) -> Outcome<String> {
    let output = Command::new(psql).arg("--version").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
