//! The job queue, the crate `jobs` with its runner, beside graphile-worker and River: how many jobs that do nothing it
//! completes a second, and how soon a job starts on an idle queue.
//!
//! Every queue has a database of its own on one cluster, and one process works it. A round measures all three; its
//! baseline is the better one of the other two in that very round. What is waiting when a clock starts was put there
//! through each queue's own batch insert, on vacuumed pages after a checkpoint. All connections stand by then, and stay
//! for all rounds.
//!
//! A start is timed in the process that both enqueues and works, by its own clock: from the moment that the enqueue's
//! commit returned to the handler's first line, none at all if the handler was faster.

mod other;
mod ours;

use super::machine::Used;
use super::plan::Plan;
use super::rounds::{CLIENTS, Figure, compare, grow, median, percentile};
use super::row::{About, Growth, Row, Target, rounded};
use super::world::cluster;
use super::{Done, Outcome};
use agent_runtime::dev::cluster::Cluster;
use other::Other;
use ours::{Ours, THREADS};
use std::cell::RefCell;
use std::path::PathBuf;

const JOBS: About = About {
    name: "jobs",
    work: "waiting no-op jobs run and completed by the runner of the crate `jobs`, one process",
    beside: "the better of two other queues in each round",
    unit: "jobs/s",
    target: Target::AtLeast(3.0),
    says_not: "Jobs that do nothing: the more a handler does, the less its queue matters. One process a side; all three \
               can have more. River keeps completed jobs for a day, the other two delete them.",
};

const fn about(name: &'static str, work: &'static str) -> About {
    About {
        name,
        work,
        beside: "the better of two other queues in each round",
        unit: "ms",
        target: Target::AtMost(1.0),
        says_not: "The process that enqueues is the one that works. Ours wakes its runner by a call, the other two by \
                   NOTIFY, which reaches other processes as soon; there ours is found by a poll, every 200 ms.",
    }
}

const P50: About = about(
    "jobs-start-p50",
    "enqueue's commit to the handler's first line on an idle queue, p50",
);
const P99: About = about(
    "jobs-start-p99",
    "enqueue's commit to the handler's first line on an idle queue, p99",
);

/// The three queues. They end before the cluster that they stand on.
struct Queues {
    ours: Ours,
    others: [Other; 2],
    _cluster: Cluster,
}

impl Queues {
    fn start() -> Outcome<(Self, PathBuf)> {
        let (cluster, data_dir) = cluster()?;
        let mut client = postgres::Client::connect(&cluster.url(), postgres::NoTls)?;
        for name in ["ours", "graphile", "river"] {
            client.batch_execute(&format!("create database {name}"))?;
        }
        let made = Self {
            ours: Ours::open(&cluster.url_of("ours"))?,
            others: [
                Other::graphile(&cluster.url_of("graphile"))?,
                Other::river(&cluster.url_of("river"))?,
            ],
            _cluster: cluster,
        };
        Ok((made, data_dir))
    }

    fn versions(&self) -> Vec<String> {
        let versions = self.others.iter().map(|other| &other.peer.versions);
        versions.flatten().cloned().collect()
    }
}

/// What the other two did in each round.
#[derive(Default)]
struct Both {
    figures: [Vec<f64>; 2],
}

impl Both {
    /// The round's baseline: the better one's figure, and in the note both.
    fn better(&mut self, names: [&str; 2], round: [(f64, Used); 2], about: &About) -> Figure {
        let [(first, one), (second, two)] = round;
        self.figures[0].push(first);
        self.figures[1].push(second);
        let more_is_better = matches!(about.target, Target::AtLeast(_));
        let (value, mut used) = match (first > second) == more_is_better {
            true => (first, one),
            false => (second, two),
        };
        used.others = one.others.max(two.others);
        let [a, b] = names;
        Figure {
            value,
            used,
            note: format!(" ({a} {}, {b} {})", rounded(first), rounded(second)),
        }
    }

    /// The row's other side, with the medians of both.
    fn beside(&self, names: [&str; 2], about: &About) -> String {
        let [a, b] = self
            .figures
            .each_ref()
            .map(|all| rounded(median(all.clone())));
        let ([one, other], unit) = (names, about.unit);
        format!("the better of {one} ({a} {unit}) and {other} ({b} {unit}) in each round")
    }
}

/// Does something with both others, the second one first in every other round.
fn each<T>(
    others: &mut [Other; 2],
    turned: &mut bool,
    mut measure: impl FnMut(&mut Other) -> Outcome<T>,
) -> Outcome<[T; 2]> {
    let [one, other] = others;
    *turned = !*turned;
    if *turned {
        let second = measure(other)?;
        return Ok([measure(one)?, second]);
    }
    Ok([measure(one)?, measure(other)?])
}

fn drained(plan: Plan, queues: &mut Queues) -> Outcome<Row> {
    let jobs = plan.pick(20_000, 40_000);
    let versions = queues.versions();
    let Queues { ours, others, .. } = &mut *queues;
    let names = others.each_ref().map(|other| other.name);
    let (mut both, mut turned) = (Both::default(), false);
    let mine = || {
        ours.fill(jobs)?;
        let (value, used) = ours.drain(jobs, THREADS)?;
        let note = String::new();
        Ok(Figure { value, used, note })
    };
    let baseline = || {
        let round = each(others, &mut turned, |other| {
            other.fill(jobs)?;
            other.drain(jobs)
        })?;
        Ok(both.better(names, round, &JOBS))
    };
    let mut row = compare(plan, &JOBS, mine, baseline)?;
    row.work = format!("{jobs} {}", row.work);
    row.beside = both.beside(names, &JOBS);
    row.versions = versions;
    let bare = [ours.bare(jobs)?, ours.bare(jobs)?, ours.bare(jobs)?];
    row.limit = Some(format!(
        "Two threads that claim 500 jobs of the same table and delete them, without a runner: {} jobs/s.",
        rounded(median(bare.into()))
    ));
    if !plan.short {
        row.growth = drained_over(queues)?;
    }
    Ok(row)
}

/// A figure over jobs that wait: ours to a million, the others, whose million takes minutes, to a tenth of it.
fn over_waiting(
    queues: &mut Queues,
    over: &str,
    unit: &str,
    mine: impl Fn(&mut Ours, usize) -> Outcome<f64>,
    theirs: impl Fn(&mut Other, usize) -> Outcome<f64>,
) -> Outcome<Growth> {
    let places = [10_000, 100_000, 1_000_000];
    let ours = RefCell::new(&mut queues.ours);
    let measure = |jobs: usize| mine(&mut ours.borrow_mut(), jobs);
    let mut growth = grow(over, unit, &places, &[("agent-runtime", &measure)])?;
    for other in &mut queues.others {
        let (name, other) = (other.name, RefCell::new(other));
        let measure = |jobs: usize| theirs(&mut other.borrow_mut(), jobs);
        let line = grow(over, unit, &places[..2], &[(name, &measure)])?;
        growth.lines.extend(line.lines);
    }
    Ok(growth)
}

fn drained_over(queues: &mut Queues) -> Outcome<Vec<Growth>> {
    let mine = |ours: &mut Ours, jobs: usize, threads: usize| {
        ours.fill(jobs)?;
        Ok(ours.drain(jobs, threads)?.0)
    };
    let waiting = over_waiting(
        queues,
        "jobs waiting",
        JOBS.unit,
        |ours, jobs| mine(ours, jobs, THREADS),
        |other, jobs| {
            other.fill(jobs)?;
            Ok(other.drain(jobs)?.0)
        },
    )?;
    let ours = RefCell::new(&mut queues.ours);
    let measure = |threads: usize| mine(&mut ours.borrow_mut(), 100_000, threads);
    let threads = grow(
        "handler threads",
        JOBS.unit,
        &CLIENTS,
        &[("agent-runtime", &measure)],
    )?;
    Ok(vec![waiting, threads])
}

fn started_over(queues: &mut Queues, part: f64) -> Outcome<Growth> {
    let starts = 100;
    over_waiting(
        queues,
        "jobs waiting for the next day",
        P50.unit,
        |ours, jobs| {
            ours.fill_later(jobs)?;
            Ok(percentile(ours.starts(starts)?.0, part))
        },
        |other, jobs| {
            other.fill_later(jobs)?;
            Ok(percentile(other.starts(starts)?.0, part))
        },
    )
}

/// Two rows from the same starts: the second is made of what the rounds of the first measured.
fn started(plan: Plan, queues: &mut Queues) -> Outcome<[Row; 2]> {
    let jobs = plan.pick(100, 200);
    let versions = queues.versions();
    let Queues { ours, others, .. } = &mut *queues;
    let names = others.each_ref().map(|other| other.name);
    ours.fill(0)?;
    for other in &mut *others {
        other.fill(0)?;
    }
    let mut turned = false;
    let (mut both_p50, mut both_p99) = (Both::default(), Both::default());
    let (mut ours_p99, mut others_p99) = (Vec::new(), Vec::new());
    let mine = || {
        let (took, used) = ours.starts(jobs)?;
        let figure = |part: f64| Figure {
            value: percentile(took.clone(), part),
            used,
            note: String::new(),
        };
        ours_p99.push(figure(0.99));
        Ok(figure(0.5))
    };
    let baseline = || {
        let round = each(others, &mut turned, |other| other.starts(jobs))?;
        let at = |part: f64| {
            let figure = |(took, used): &(Vec<f64>, Used)| (percentile(took.clone(), part), *used);
            round.each_ref().map(figure)
        };
        others_p99.push(both_p99.better(names, at(0.99), &P99));
        Ok(both_p50.better(names, at(0.5), &P50))
    };
    let mut p50 = compare(plan, &P50, mine, baseline)?;
    let (mut ours_p99, mut others_p99) = (ours_p99.into_iter(), others_p99.into_iter());
    let again = |figures: &mut dyn Iterator<Item = Figure>| {
        figures.next().ok_or_else(|| "a round is missing".into())
    };
    let mine = || again(&mut ours_p99);
    let baseline = || again(&mut others_p99);
    let mut p99 = compare(plan, &P99, mine, baseline)?;
    p50.beside = both_p50.beside(names, &P50);
    p99.beside = both_p99.beside(names, &P99);
    let limit = format!(
        "One claim of one job and its commit, without a runner: {} ms.",
        rounded(ours.bare_claim(jobs)?)
    );
    for row in [&mut p50, &mut p99] {
        row.versions.clone_from(&versions);
        row.limit = Some(limit.clone());
    }
    if !plan.short {
        p50.growth.push(started_over(queues, 0.5)?);
        p99.growth.push(started_over(queues, 0.99)?);
    }
    Ok([p50, p99])
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let (mut queues, data_dir) = Queues::start()?;
    let measured = drained(plan, &mut queues)
        .and_then(&mut *done)
        .and_then(|()| started(plan, &mut queues));
    drop(queues);
    // What is left is in the build's own directory for such things.
    let _ = std::fs::remove_dir_all(data_dir);
    measured?.into_iter().try_for_each(done)
}
