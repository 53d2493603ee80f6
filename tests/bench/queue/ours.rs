//! Our side: the `jobs` crate in this process, through its runner; and the same table without it.

use crate::Outcome;
use crate::machine::{Moment, Used};
use crate::rounds::median;
use jobs::{Database, NewJob, QueueOptions, Runner, enqueue, enqueue_many};
use postgres::{Client, Config, NoTls};
use r2d2_postgres::PostgresConnectionManager;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the crate's README says for short jobs.
pub(crate) const THREADS: usize = 2;
const PREFETCH: usize = 2_000;
const BATCH: usize = 1_000;
/// Also from there: two for the queue and two more, and one.
const CONNECTIONS: u32 = 5;
/// Between a start and the next job.
const IDLE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(5);
const QUEUE: &str = "queue";
const NAME: &str = "noop";

/// A claim of jobs that nothing else is known about: no keys, one priority.
const CLAIM: &str = "update job_jobs j set lease_id = 1, attempt = attempt + 1 from (
    select id from job_jobs where queue = 'queue' and priority = 1 and key is null and run_at <= now()
        and lease_id is null
    order by run_at, id limit $1 for update skip locked) t
    where j.id = t.id returning j.id, j.attempt, j.payload::text";
const DELETE: &str = "delete from job_jobs where id = any ($1) and lease_id = 1";

pub(crate) struct Ours {
    config: Config,
    client: Client,
    /// The connections of its runners.
    database: Database,
    /// Jobs that wait for the next day.
    later: usize,
}

fn noop() -> NewJob {
    NewJob::named(QUEUE, NAME, "{}")
}

fn options(threads: usize) -> QueueOptions {
    QueueOptions {
        threads,
        prefetch: PREFETCH,
        batch: BATCH,
        ..QueueOptions::default()
    }
}

impl Ours {
    /// On an empty database, of which this is the URL.
    pub(crate) fn open(url: &str) -> Outcome<Self> {
        let config: Config = url.parse()?;
        let mut client = config.connect(NoTls)?;
        jobs::migrate(&mut client)?;
        let manager = PostgresConnectionManager::new(config.clone(), NoTls);
        let pool = r2d2::Pool::builder()
            .max_size(CONNECTIONS)
            .test_on_check_out(false)
            .idle_timeout(None)
            .build(manager)?;
        Ok(Self {
            config,
            client,
            database: Database::new(pool, |client| client),
            later: 0,
        })
    }

    /// Leaves this many jobs waiting, on vacuumed pages.
    pub(crate) fn fill(&mut self, jobs: usize) -> Outcome {
        self.later = 0;
        self.refill(jobs, noop())
    }

    /// Leaves this many jobs waiting for the next day.
    pub(crate) fn fill_later(&mut self, jobs: usize) -> Outcome {
        self.later = jobs;
        self.refill(jobs, noop().delay(Duration::from_secs(24 * 3600)))
    }

    fn refill(&mut self, jobs: usize, job: NewJob) -> Outcome {
        self.client.batch_execute("truncate job_jobs, job_leases")?;
        let batch = vec![job; BATCH];
        for left in (1..=jobs).rev().step_by(BATCH) {
            enqueue_many(&mut self.client, &batch[..left.min(BATCH)])?;
        }
        self.client.batch_execute("vacuum analyze job_jobs")?;
        self.client.batch_execute("checkpoint")?;
        self.left(jobs)
    }

    /// Checks that this many jobs are there.
    fn left(&mut self, jobs: usize) -> Outcome {
        match self.waiting()? {
            waiting if waiting == jobs => Ok(()),
            waiting => Err(format!("{waiting} jobs wait, not {jobs}").into()),
        }
    }

    fn waiting(&mut self) -> Outcome<usize> {
        let row = self
            .client
            .query_one("select count(*) from job_jobs", &[])?;
        Ok(usize::try_from(row.get::<_, i64>(0))?)
    }

    /// Jobs a second, from before the runner starts until the last job is completed.
    pub(crate) fn drain(&mut self, jobs: usize, threads: usize) -> Outcome<(f64, Used)> {
        let ran = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&ran);
        let before = Moment::now();
        let began = Instant::now();
        let runner = Runner::builder(self.database.clone())
            .queue(QUEUE, options(threads))
            .handle_named(QUEUE, NAME, move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                jobs::Outcome::Done
            })
            .start()?;
        let handle = runner.handle();
        let all = jobs as u64;
        while handle.stats(QUEUE).is_some_and(|stats| stats.done < all) {
            std::thread::sleep(Duration::from_micros(500));
        }
        let seconds = began.elapsed().as_secs_f64();
        let used = before.until_now();
        runner.stop(PATIENCE);
        self.left(self.later)?;
        match ran.load(Ordering::Relaxed) {
            ran if ran == all => {}
            ran => return Err(format!("{ran} of {jobs} jobs ran").into()),
        }
        Ok((jobs as f64 / seconds, used))
    }

    /// Milliseconds from the enqueue's commit to the handler's first line, one job at a time.
    pub(crate) fn starts(&mut self, jobs: usize) -> Outcome<(Vec<f64>, Used)> {
        let (started, starts) = crossbeam_channel::unbounded();
        let runner = Runner::builder(self.database.clone())
            .queue(QUEUE, options(THREADS))
            .handle_named(QUEUE, NAME, move |_| {
                // The receiver outlives the runner.
                let _ = started.send(Instant::now());
                jobs::Outcome::Done
            })
            .start()?;
        let handle = runner.handle();
        let before = Moment::now();
        let mut took = Vec::with_capacity(jobs);
        for _ in 0..jobs {
            std::thread::sleep(IDLE);
            enqueue(&mut self.client, noop())?;
            let committed = Instant::now();
            handle.wake(QUEUE);
            let start = starts.recv_timeout(PATIENCE)?;
            // A poll may have been faster than the answer to the commit.
            let wait = start.saturating_duration_since(committed);
            took.push(wait.as_secs_f64() * 1000.0);
        }
        let used = before.until_now();
        runner.stop(PATIENCE);
        self.left(self.later)?;
        Ok((took, used))
    }

    /// Jobs a second of two threads that claim and delete with nothing else: the most that the table gives.
    pub(crate) fn bare(&mut self, jobs: usize) -> Outcome<f64> {
        self.fill(jobs)?;
        let mut clients = [self.config.connect(NoTls)?, self.config.connect(NoTls)?];
        let began = Instant::now();
        let deleted = std::thread::scope(|scope| {
            let threads = clients
                .each_mut()
                .map(|client| scope.spawn(move || claims(client)));
            let ended = threads.map(|thread| {
                let failed = |_| Err("a thread failed".to_owned());
                thread.join().unwrap_or_else(failed)
            });
            ended.into_iter().sum::<Result<u64, String>>()
        })?;
        if deleted != jobs as u64 {
            return Err(format!("the bare loop deleted {deleted} of {jobs} jobs").into());
        }
        Ok(jobs as f64 / began.elapsed().as_secs_f64())
    }

    /// Milliseconds of one claim of one job with its commit, p50: what a start waits for at least.
    pub(crate) fn bare_claim(&mut self, claims: usize) -> Outcome<f64> {
        let claim = self.client.prepare(CLAIM)?;
        let mut took = Vec::with_capacity(claims);
        for _ in 0..claims {
            enqueue(&mut self.client, noop())?;
            std::thread::sleep(IDLE);
            let began = Instant::now();
            let row = self.client.query_one(&claim, &[&1_i64])?;
            took.push(began.elapsed().as_secs_f64() * 1000.0);
            self.client
                .execute(DELETE, &[&vec![row.get::<_, i64>(0)]])?;
        }
        Ok(median(took))
    }
}

fn claims(client: &mut Client) -> Result<u64, String> {
    let mut all = || -> Result<u64, postgres::Error> {
        client.batch_execute("set jit = off; set enable_seqscan = off")?;
        let (claim, delete) = (client.prepare(CLAIM)?, client.prepare(DELETE)?);
        let mut deleted = 0;
        loop {
            let rows = client.query(&claim, &[&500_i64])?;
            if rows.is_empty() {
                return Ok(deleted);
            }
            let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
            deleted += client.execute(&delete, &[&ids])?;
        }
    };
    all().map_err(|error| error.to_string())
}
