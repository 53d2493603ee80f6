//! From an event's commit to its receipt at a hundred healthy endpoints, beside others that cost more than they should:
//! one that accepts connections and never answers, four that answer 204 after nine seconds, forty that never answer.
//! Each time the p99 of the healthy, beside the same without those.
//!
//! The two are services of their own, each with its database, measured in turns: what waits for the others between rounds
//! goes on waiting, as it would.

use super::hooks::{Group, Hooks, Receipt};
use super::machine::Moment;
use super::plan::Plan;
use super::rounds::{Figure, compare, percentile};
use super::row::{About, Target};
use super::{Done, Outcome};
use crossbeam_channel::unbounded;
use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::Builder;
use std::time::{Duration, Instant};

const HEALTHY: usize = 100;
const BETWEEN: Duration = Duration::from_millis(300);
/// How long the slow take: nearly all the time that an attempt has.
const SLOW: Duration = Duration::from_secs(9);

/// Accepts, and answers 204 after this time, or never; ends with the process.
fn slow(answers_after: Option<Duration>) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, accepted) = unbounded::<(TcpStream, Instant)>();
    Builder::new().name("slow".to_owned()).spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            // Whoever answers goes on as long as this.
            let _ = sender.send((stream, Instant::now()));
        }
    })?;
    Builder::new()
        .name("slow-answers".to_owned())
        .spawn(move || {
            let mut held = Vec::new();
            for (mut stream, at) in accepted {
                let Some(after) = answers_after else {
                    held.push(stream);
                    continue;
                };
                std::thread::sleep(after.saturating_sub(at.elapsed()));
                // The server may have had enough of it.
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
                held.push(stream);
            }
        })?;
    Ok(address)
}

/// A service, its healthy endpoints and perhaps others, all told of the same events.
struct Side {
    hooks: Hooks,
    healthy: Group,
}

impl Side {
    /// Beside this many endpoints that are received there.
    fn start(others: usize, receiver: SocketAddr) -> Outcome<Self> {
        let hooks = Hooks::start()?;
        let healthy = hooks.group(HEALTHY)?;
        for _ in 0..others {
            hooks.register(healthy.project_id, receiver)?;
        }
        Ok(Self { hooks, healthy })
    }

    /// The p99 of every healthy delivery of a round, from commit to receipt, in milliseconds.
    fn round(&self, events: usize) -> Outcome<Figure> {
        let before = Moment::now();
        let mut committed = HashMap::new();
        for _ in 0..events {
            let (ids, at) = self.hooks.emit(&self.healthy, 1)?;
            committed.extend(ids.into_iter().map(|id| (id, at)));
            std::thread::sleep(BETWEEN);
        }
        let ids: Vec<_> = committed.keys().copied().collect();
        let receipts = self.hooks.received(&ids, &self.healthy)?;
        let used = before.until_now();
        let latency = |receipt: &Receipt| {
            let at = committed.get(&receipt.event_id)?;
            Some(receipt.at.saturating_duration_since(*at).as_secs_f64() * 1000.0)
        };
        let latencies: Vec<_> = receipts.iter().filter_map(latency).collect();
        Ok(Figure {
            note: format!(" (p50 {:.1})", percentile(latencies.clone(), 0.5)),
            value: percentile(latencies, 0.99),
            used,
        })
    }
}

const fn about(name: &'static str, work: &'static str) -> About {
    About {
        name,
        work,
        beside: "the same without those endpoints",
        unit: "ms",
        target: Target::AtMost(1.2),
        says_not: "One event every 300 ms: it shows that nobody waits for another's receiver, not how much is delivered.",
    }
}

const SILENT: About = about(
    "webhooks-one-silent",
    "event commit to receipt, p99, 100 healthy endpoints beside one that never answers",
);
const MANY_SILENT: About = about(
    "webhooks-40-silent",
    "event commit to receipt, p99, 100 healthy endpoints beside forty that never answer",
);
const SLOWLY: About = about(
    "webhooks-4-slow",
    "event commit to receipt, p99, 100 healthy endpoints beside four that answer after nine seconds",
);

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let silent = slow(None)?;
    let kinds = [
        (&SILENT, 1, silent),
        (&SLOWLY, 4, slow(Some(SLOW))?),
        (&MANY_SILENT, 40, silent),
    ];
    let without = Side::start(0, silent)?;
    let events = plan.pick(10, 20);
    // The further kinds are longer than the short form may be.
    for (about, count, receiver) in kinds.into_iter().take(plan.pick(1, 3)) {
        let with = Side::start(count, receiver)?;
        done(compare(
            plan,
            about,
            || with.round(events),
            || without.round(events),
        )?)?;
    }
    Ok(())
}
