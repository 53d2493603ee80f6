//! No-op jobs a second, through the runner and through a bare loop of claim and delete on the same table.
//!
//! `DATABASE_URL=… cargo run --release -p jobs --example throughput [JOBS] [ROUNDS] [PREFETCH] [THREADS]`. Works in the
//! schema `jobs_throughput`, which it drops first.

use jobs::{Database, NewJob, Outcome, QueueOptions, Runner, enqueue_many};
use postgres::{Client, Config, NoTls};
use r2d2_postgres::PostgresConnectionManager;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an example reads its own settings"
    )]
    let url = std::env::var("DATABASE_URL")?;
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (jobs, rounds, prefetch, threads) =
        (number(40_000)?, number(5)?, number(2000)?, number(2)?);
    let mut config: Config = url.parse()?;
    let mut client = config.connect(NoTls)?;
    client.batch_execute(
        "DROP SCHEMA IF EXISTS jobs_throughput CASCADE; CREATE SCHEMA jobs_throughput",
    )?;
    config.options("-c search_path=jobs_throughput");
    let mut client = config.connect(NoTls)?;
    jobs::migrate(&mut client)?;
    let mut out = std::io::stdout();
    for round in 1..=rounds {
        fill(&mut client, jobs)?;
        let bare = bare(&config, jobs)?;
        fill(&mut client, jobs)?;
        let runner = runner(&config, jobs, prefetch, threads)?;
        writeln!(
            out,
            "round {round}: runner {runner:.0} jobs/s, bare loop {bare:.0} jobs/s, ratio {:.2}",
            runner / bare
        )?;
    }
    let [commit, median, worst] = start_latency(&config, &mut client)?;
    writeln!(
        out,
        "enqueue and its commit {commit:?}; from there to the start, idle: median {median:?}, 99th of 100 {worst:?}"
    )?;
    client.batch_execute("DROP SCHEMA jobs_throughput CASCADE")?;
    Ok(())
}

fn fill(client: &mut Client, jobs: usize) -> Result<(), Box<dyn Error>> {
    client.batch_execute("TRUNCATE job_jobs, job_leases")?;
    let job = NewJob::named("q", "noop", "{}");
    for _ in 0..jobs / 1000 {
        enqueue_many(client, &vec![job.clone(); 1000])?;
    }
    client.batch_execute("VACUUM ANALYZE job_jobs")?;
    client.batch_execute("CHECKPOINT")?;
    Ok(())
}

/// Two threads that claim 500 and delete them, with nothing else: the floor that the runner stands on.
fn bare(config: &Config, jobs: usize) -> Result<f64, Box<dyn Error>> {
    const CLAIM: &str = "UPDATE job_jobs j SET lease_id = 1, attempt = attempt + 1 FROM (
        SELECT id FROM job_jobs WHERE queue = 'q' AND priority = 1 AND key IS NULL AND run_at <= now() AND lease_id IS NULL
        ORDER BY run_at, id LIMIT 500 FOR UPDATE SKIP LOCKED) t
        WHERE j.id = t.id RETURNING j.id, j.attempt, j.payload::text";
    let mut clients = [config.connect(NoTls)?, config.connect(NoTls)?];
    let started = Instant::now();
    let deleted = std::thread::scope(|scope| {
        let work = |client: &mut Client| -> Result<u64, postgres::Error> {
            client.batch_execute("SET jit = off; SET enable_seqscan = off")?;
            let claim = client.prepare(CLAIM)?;
            let delete =
                client.prepare("DELETE FROM job_jobs WHERE id = ANY ($1) AND lease_id = 1")?;
            let mut deleted = 0;
            loop {
                let ids: Vec<i64> = client
                    .query(&claim, &[])?
                    .iter()
                    .map(|row| row.get(0))
                    .collect();
                if ids.is_empty() {
                    return Ok(deleted);
                }
                deleted += client.execute(&delete, &[&ids])?;
            }
        };
        let threads: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(move || work(client)))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok()?.ok())
            .sum::<u64>()
    });
    assert_eq!(deleted, jobs as u64, "the bare loop did not do its work");
    Ok(jobs as f64 / started.elapsed().as_secs_f64())
}

fn pool(config: &Config) -> Result<Database, Box<dyn Error>> {
    let manager = PostgresConnectionManager::new(config.clone(), NoTls);
    let pool = r2d2::Pool::builder()
        .max_size(5)
        .test_on_check_out(false)
        .build(manager)?;
    Ok(Database::new(pool, |client| client))
}

fn runner(
    config: &Config,
    jobs: usize,
    prefetch: usize,
    threads: usize,
) -> Result<f64, Box<dyn Error>> {
    let ran = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ran);
    let database = pool(config)?;
    let batch = prefetch.clamp(1, 1000);
    let options = QueueOptions {
        threads,
        prefetch,
        batch,
        ..QueueOptions::default()
    };
    let started = Instant::now();
    let runner = Runner::builder(database)
        .queue("q", options)
        .handle_named("q", "noop", move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Outcome::Done
        })
        .start()?;
    while runner
        .handle()
        .stats("q")
        .is_some_and(|stats| stats.done < jobs as u64)
    {
        std::thread::sleep(Duration::from_micros(500));
    }
    let taken = started.elapsed();
    runner.stop(Duration::from_secs(5));
    assert_eq!(
        ran.load(Ordering::Relaxed),
        jobs as u64,
        "the runner did not do its work"
    );
    Ok(jobs as f64 / taken.as_secs_f64())
}

fn start_latency(config: &Config, client: &mut Client) -> Result<[Duration; 3], Box<dyn Error>> {
    let (started, starts) = crossbeam_channel::unbounded();
    let runner = Runner::builder(pool(config)?)
        .queue("q", QueueOptions::default())
        .handle_named("q", "noop", move |_| {
            // The receiver outlives the runner.
            let _ = started.send(Instant::now());
            Outcome::Done
        })
        .start()?;
    let (mut times, mut commits) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(20));
        let before = Instant::now();
        jobs::enqueue(client, NewJob::named("q", "noop", "{}"))?;
        let committed = Instant::now();
        runner.handle().wake("q");
        let start = starts.recv_timeout(Duration::from_secs(5))?;
        commits.push(committed - before);
        // A poll may have been faster than the wake.
        times.push(start.saturating_duration_since(committed));
    }
    runner.stop(Duration::from_secs(5));
    times.sort();
    commits.sort();
    Ok([commits[50], times[50], times[98]])
}
