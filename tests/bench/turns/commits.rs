//! One-row commits: what no journal on this database can go beyond.

use super::super::Outcome;
use super::super::deployment::Deployment;
use super::super::load::{Load, Work};

/// Commits a second of so many clients, each on a connection of its own.
pub(super) fn commits(deployment: &Deployment, clients: usize, each: usize) -> Outcome<f64> {
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
    let rate = Load::of(clients, each, &client)?.rate();
    deployment
        .database()?
        .batch_execute("drop table bench_commits")?;
    Ok(rate)
}
