//! One-row commits: what no journal on this database can go beyond.

use super::super::Outcome;
use super::super::deployment::Deployment;
use super::super::load::{Load, Work};

/// Commits a second of so many clients, each on a connection of its own.
pub(crate) fn commits(deployment: &Deployment, clients: usize, each: usize) -> Outcome<f64> {
    Ok(load(deployment, clients, each)?.rate())
}

/// Milliseconds of a commit, p50 of so many one after another.
pub(crate) fn commit_ms(deployment: &Deployment, count: usize) -> Outcome<f64> {
    Ok(load(deployment, 1, count)?.p50())
}

fn load(deployment: &Deployment, clients: usize, each: usize) -> Outcome<Load> {
    deployment
        .database()?
        .batch_execute("create table bench_commits (at timestamptz not null)")?;
    let client = |_| -> Outcome<Work<'_>> {
        let mut database = deployment.database()?;
        let commit = database.prepare("insert into bench_commits values (now())")?;
        Ok(Box::new(move || {
            database.execute(&commit, &[])?;
            Ok(())
        }))
    };
    let load = Load::of(clients, each, &client)?;
    deployment
        .database()?
        .batch_execute("drop table bench_commits")?;
    Ok(load)
}
