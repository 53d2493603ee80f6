//! Replicas of the service on one Postgres: what two and three of them do in a second, beside one that has all the
//! processors that they share; and what is left of the work when one of three is killed in the middle of it.
//!
//! Nothing is pinned: in every case the replicas, Postgres, the provider, the receiver and the clients share all
//! processors of the machine. So replicas gain nothing here; what they lose is the price of working together.

use super::fleet::{Fleet, LOOK, PATIENCE};
use super::machine::{Moment, Used};
use super::plan::Plan;
use super::rounds::{Figure, Measure, alone, compare, grow};
use super::row::{About, Row, Target, rounded};
use super::{Done, Outcome};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Endpoints that are told of the end of each run, where deliveries are measured.
const ENDPOINTS: usize = 20;
/// A delivery that was on its way out of a process that was killed is made again a minute later, or a little more.
const LATE: Duration = Duration::from_secs(120);
/// A killed replica's work is taken over this much later.
const SHORT_LEASE_MS: &str = "1000";
/// How long the model takes where a replica is killed, so that it has runs in hand.
const THINKS: Duration = Duration::from_millis(200);

/// What is left after a kill.
struct Killed {
    /// Started, as the clients know.
    runs: Vec<Uuid>,
    completed: usize,
    taken_over: i64,
    used: Used,
}

/// Kills one of three replicas when a third of the runs has been started, and waits for all of them.
fn kill(fleet: &Fleet, count: usize) -> Outcome<Killed> {
    fleet.resize(3)?;
    let before = Moment::now();
    let clients = fleet.notifying_clients();
    let victim = fleet.replicas.borrow_mut().pop();
    let runs = std::thread::scope(|scope| {
        let starting = scope.spawn(|| clients.start(count).map_err(|error| error.to_string()));
        while clients.started.load(Ordering::Relaxed) < count / 3 && !starting.is_finished() {
            std::thread::sleep(LOOK);
        }
        drop(victim);
        let started = starting.join();
        started.map_err(|_| "the clients panicked".to_owned())?
    })?;
    let mut database = fleet.deployment.database()?;
    let deadline = Instant::now() + PATIENCE;
    let mut completed = fleet.completed(&mut database, &runs)?;
    while completed < runs.len() && Instant::now() < deadline {
        std::thread::sleep(LOOK);
        completed = fleet.completed(&mut database, &runs)?;
    }
    let query = "select count(*) from runs where run_id = any($1) and lease_epoch > 1";
    let taken_over = database.query_one(query, &[&runs])?.get(0);
    if taken_over == 0 {
        return Err("the replica that was killed had no run in hand".into());
    }
    Ok(Killed {
        runs,
        completed,
        taken_over,
        used: before.until_now(),
    })
}

/// Kills a replica so many times, and waits for the late deliveries of all of them together.
fn kills(fleet: &Fleet, times: usize, count: usize) -> Outcome<VecDeque<Figure>> {
    let killed = (0..times).map(|_| kill(fleet, count));
    let killed = killed.collect::<Outcome<Vec<_>>>()?;
    let arrived = |killed: &Killed| fleet.receipts.count(&fleet.wanted(&killed.runs));
    let at_once: Vec<usize> = killed.iter().map(arrived).collect();
    let deadline = Instant::now() + LATE;
    while killed.iter().any(|one| arrived(one) < one.runs.len()) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    let figures = killed.iter().zip(at_once).map(|(one, at_once)| {
        let arrived = arrived(one);
        Figure {
            value: one.completed.min(arrived) as f64 / one.runs.len() as f64,
            used: one.used,
            note: format!(
                " ({} runs, {} taken over, {} deliveries late)",
                one.completed,
                one.taken_over,
                arrived - at_once
            ),
        }
    });
    Ok(figures.collect())
}

/// The lower of what two and three replicas do in a second.
fn worse(fleet: &Fleet, measure: &dyn Fn() -> Outcome<f64>) -> Outcome<Figure> {
    let of = |count: usize| {
        fleet.resize(count)?;
        Figure::of(measure)
    };
    let (two, three) = (of(2)?, of(3)?);
    let note = format!(
        " (two {}, three {})",
        rounded(two.value),
        rounded(three.value)
    );
    let worse = if two.value < three.value { two } else { three };
    Ok(Figure { note, ..worse })
}

const SAYS_NOT: &str = "Nothing is pinned: replicas, Postgres, provider, receiver and clients share all processors in every \
    case. It shows what replicas cost each other, not what they gain on machines of their own.";

const TURNS: About = About {
    name: "replicas-turns",
    work: "turns of one model call by two, then three replicas on one Postgres, the slower of the two",
    beside: "one replica given the same processors in all",
    unit: "turns/s",
    target: Target::AtLeast(0.9),
    says_not: SAYS_NOT,
};

const DELIVERIES: About = About {
    name: "replicas-deliveries",
    work: "webhook deliveries to 20 endpoints by two, then three replicas on one Postgres, the slower of the two",
    beside: "one replica given the same processors in all",
    unit: "deliveries/s",
    target: Target::AtLeast(0.9),
    says_not: SAYS_NOT,
};

const KILLED: About = About {
    name: "replicas-killed",
    work: "runs that are completed, and whose receiver is told, when one of three replicas is killed (SIGKILL) under load",
    beside: "nothing is lost: every run that a client was told of. The lease of runs is one second here",
    unit: "of all accepted runs",
    target: Target::AtLeast(1.0),
    says_not: "Clients go to another replica, and name their requests (Idempotency-Key). A delivery that the killed \
        process had begun is made again after a minute: it counts, late as it is.",
};

/// A measurement of as many replicas as are there.
type Rate<'a> = &'a dyn Fn() -> Outcome<f64>;

fn beside_one(plan: Plan, about: &About, fleet: &Fleet, measure: Rate<'_>) -> Outcome<Row> {
    let one = || {
        fleet.resize(1)?;
        Figure::of(measure)
    };
    let mut row = compare(plan, about, || worse(fleet, measure), one)?;
    if !plan.short {
        let of: Measure<'_> = &|replicas| {
            fleet.resize(replicas)?;
            measure()
        };
        let lines = [("agent-runtime", of)];
        let growth = grow("replicas", about.unit, &[1, 2, 3], &lines)?;
        row.growth.push(growth);
    }
    Ok(row)
}

fn killed(plan: Plan) -> Outcome<Row> {
    let fleet = Fleet::start(THINKS, 1, &[("SVC_RUN_LEASE_MS", SHORT_LEASE_MS)])?;
    let mut figures = VecDeque::new();
    let one = || {
        if figures.is_empty() {
            // One more goes before those that count.
            figures = kills(&fleet, plan.rounds() + 1, plan.pick(150, 600))?;
        }
        figures.pop_front().ok_or_else(|| "no kill".into())
    };
    alone(plan, &KILLED, one)
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let fleet = Fleet::start(Duration::ZERO, ENDPOINTS, &[])?;
    let turns = || fleet.turns(plan.pick(300, 2000));
    done(beside_one(plan, &TURNS, &fleet, &turns)?)?;
    let deliveries = || fleet.deliveries(plan.pick(50, 300));
    done(beside_one(plan, &DELIVERIES, &fleet, &deliveries)?)?;
    drop(fleet);
    done(killed(plan)?)
}
