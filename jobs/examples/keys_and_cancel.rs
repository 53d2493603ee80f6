//! Concurrency keys, unique keys, cancel, and ending in the transaction of the effect.
//! `DATABASE_URL="host=… user=… dbname=…" cargo run -p jobs --example keys_and_cancel`

use jobs::{
    Cancelled, Claimed, Database, NewJob, Outcome, QueueOptions, Runner, cancel, dead_jobs,
    enqueue, enqueue_many, revive,
};
use postgres::{Config, NoTls};
use r2d2_postgres::PostgresConnectionManager;
use std::error::Error;
use std::io::Write;
use std::time::Duration;

const QUEUE: &str = "keys";

fn main() -> Result<(), Box<dyn Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an example reads its own settings"
    )]
    let config: Config = std::env::var("DATABASE_URL")?.parse()?;
    let mut out = std::io::stdout();
    let mut client = config.connect(NoTls)?;
    jobs::migrate(&mut client)?;
    client
        .batch_execute("CREATE TABLE IF NOT EXISTS example_effects (job_id bigint PRIMARY KEY)")?;

    // Six jobs of one key, two at a time at most, over all processes.
    let calls: Vec<NewJob> = (0..6)
        .map(|n| NewJob::named(QUEUE, "call", n.to_string()).key("one endpoint", 2))
        .collect();
    enqueue_many(&mut client, &calls)?;
    // The second of these finds the first waiting.
    let refresh = NewJob::named(QUEUE, "refresh", "{}").unique("refresh");
    let first = enqueue(&mut client, refresh.clone())?;
    let second = enqueue(&mut client, refresh)?;
    writeln!(
        out,
        "unique: the same job is {}, added again is {}",
        first.id == second.id,
        second.added
    )?;
    let hopeless = enqueue(&mut client, NewJob::named(QUEUE, "hopeless", "{}"))?.id;
    let later = enqueue(
        &mut client,
        NewJob::named(QUEUE, "call", "7").delay(Duration::from_secs(3600)),
    )?
    .id;
    writeln!(
        out,
        "cancel of a waiting job: {}",
        cancel(&mut client, later)? == Cancelled::Removed
    )?;

    let pool = r2d2::Pool::builder()
        .max_size(5)
        .build(PostgresConnectionManager::new(config.clone(), NoTls))?;
    let (done, ended) = crossbeam_channel::unbounded();
    let runner = Runner::builder(Database::new(pool, |client| client))
        .queue(
            QUEUE,
            QueueOptions {
                threads: 4,
                ..QueueOptions::default()
            },
        )
        .handle_named(QUEUE, "call", move |claimed| match call(&config, claimed) {
            // Whoever listened may be gone; the job is done all the same.
            Ok(()) => done
                .send(claimed.id())
                .map_or(Outcome::EndedByHandler, |()| Outcome::EndedByHandler),
            Err(error) => Outcome::retry(error.to_string()),
        })
        .handle_named(QUEUE, "refresh", |_| Outcome::Done)
        .handle_named(QUEUE, "hopeless", |_| Outcome::dead("cannot succeed"))
        .start()?;
    for _ in 0..6 {
        writeln!(
            out,
            "job {} and its effect are committed",
            ended.recv_timeout(Duration::from_secs(10))?
        )?;
    }
    runner.stop(Duration::from_secs(5));
    for job in dead_jobs(&mut client, QUEUE, 0, 100)? {
        writeln!(out, "dead: job {} ({}), {}", job.id, job.name, job.reason)?;
    }
    writeln!(out, "revived: {:?}", revive(&mut client, &[hopeless])?)?;
    cancel(&mut client, hopeless)?;
    client.batch_execute("DROP TABLE example_effects")?;
    Ok(())
}

/// The effect and the completion commit together, or not at all.
fn call(config: &Config, claimed: &Claimed) -> Result<(), Box<dyn Error>> {
    let mut client = config.connect(NoTls)?;
    let mut tx = client.transaction()?;
    tx.execute("INSERT INTO example_effects VALUES ($1)", &[&claimed.id()])?;
    claimed.complete_in(&mut tx)?;
    tx.commit()?;
    Ok(())
}
