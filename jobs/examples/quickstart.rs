//! Enqueue in a transaction, run, stop. `DATABASE_URL="host=… user=… dbname=…" cargo run -p jobs --example quickstart`

use jobs::{Database, Job, NewJob, Outcome, QueueOptions, Runner, enqueue};
use postgres::{Config, NoTls};
use r2d2_postgres::PostgresConnectionManager;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::Write;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Job for Greet {
    const NAME: &'static str = "greet";
    const QUEUE: &'static str = "quickstart";
}

fn main() -> Result<(), Box<dyn Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an example reads its own settings"
    )]
    let config: Config = std::env::var("DATABASE_URL")?.parse()?;
    let mut client = config.connect(NoTls)?;
    jobs::migrate(&mut client)?;

    let pool = r2d2::Pool::builder()
        .max_size(5)
        .build(PostgresConnectionManager::new(config, NoTls))?;
    let (greeted, greetings) = crossbeam_channel::bounded(1);
    let runner = Runner::builder(Database::new(pool, |client| client))
        .queue(
            Greet::QUEUE,
            QueueOptions {
                threads: 2,
                ..QueueOptions::default()
            },
        )
        .handle(move |claimed, job: Greet| {
            let text = format!(
                "hello, {} (job {}, attempt {})",
                job.name,
                claimed.id(),
                claimed.attempt()
            );
            match greeted.send(text) {
                Ok(()) => Outcome::Done,
                Err(_) => Outcome::retry("nobody listens"),
            }
        })
        .start()?;

    // The job exists if and only if this transaction commits.
    let mut tx = client.transaction()?;
    enqueue(
        &mut tx,
        NewJob::of(&Greet {
            name: "world".into(),
        })?,
    )?;
    tx.commit()?;
    runner.handle().wake(Greet::QUEUE);

    writeln!(
        std::io::stdout(),
        "{}",
        greetings.recv_timeout(Duration::from_secs(10))?
    )?;
    runner.stop(Duration::from_secs(5));
    Ok(())
}
