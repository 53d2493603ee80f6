//! One-row commits: what everything that is durable costs at least.

use crate::Outcome;
use crate::load::{Load, Work};
use crate::world::World;

/// Makes one-row commits on the service's database, so many of each client. They are counted.
pub(super) fn commits(world: &World, clients: usize, each: usize) -> Outcome<Load> {
    world.database()?.batch_execute(
        "create table if not exists bench_commits (tenant_id uuid not null, at timestamptz not null);
         truncate bench_commits",
    )?;
    let load = Load::of(clients, each, &|_| client(world))?;
    let made = world
        .database()?
        .query_one("select count(*) from bench_commits", &[])?;
    // Each client made one before the clock ran.
    match made.get::<_, i64>(0) == i64::try_from(clients * (each + 1))? {
        true => Ok(load),
        false => Err("commits are missing".into()),
    }
}

fn client(world: &World) -> Outcome<Work<'static>> {
    let mut database = world.database()?;
    let commit = database.prepare("insert into bench_commits values ($1, now())")?;
    let tenant_id = world.seeds.tenant_id;
    Ok(Box::new(move || {
        database.execute(&commit, &[&tenant_id])?;
        Ok(())
    }))
}

/// What a row says of the machine.
pub(super) fn limit(world: &World, clients: usize, each: usize) -> Outcome<Option<String>> {
    let rate = commits(world, clients, each)?.rate();
    Ok(Some(format!(
        "One-row commits, {clients} clients: {rate:.0}/s."
    )))
}
