//! Clients that do the same thing over and over at once, each on a thread of its own.

use super::Outcome;
use super::rounds::percentile;
use std::sync::Barrier;
use std::thread::Builder;
use std::time::Instant;

/// What one client does once.
pub(crate) type Work<'a> = Box<dyn FnMut() -> Outcome + Send + 'a>;

/// What the clients took.
pub(crate) struct Load {
    /// Of each time that the work was done.
    pub(crate) latencies_ms: Vec<f64>,
    /// From the first beginning to the last end.
    pub(crate) seconds: f64,
}

impl Load {
    /// Lets this many clients do their work this often each. Every client is made, and has done its work once, before the
    /// clock runs.
    pub(crate) fn of<'a>(
        clients: usize,
        each: usize,
        client: &(dyn Fn(usize) -> Outcome<Work<'a>> + Sync),
    ) -> Outcome<Self> {
        let start = Barrier::new(clients);
        let one = |number: usize| -> Result<(Instant, Instant, Vec<f64>), String> {
            let made = client(number).and_then(|mut work| {
                work()?;
                Ok(work)
            });
            let made = made.map_err(|error| error.to_string());
            // Also by one that failed, for whom the others would wait.
            start.wait();
            let mut work = made?;
            let mut took = Vec::with_capacity(each);
            let began = Instant::now();
            for _ in 0..each {
                let began = Instant::now();
                work().map_err(|error| error.to_string())?;
                took.push(began.elapsed().as_secs_f64() * 1000.0);
            }
            Ok((began, Instant::now(), took))
        };
        let ended = std::thread::scope(|scope| {
            let started: std::io::Result<Vec<_>> = (0..clients)
                .map(|number| {
                    Builder::new()
                        .name(format!("client-{number}"))
                        .spawn_scoped(scope, move || one(number))
                })
                .collect();
            let ended = started?.into_iter().map(|thread| {
                let ended = thread.join().map_err(|_| "a client panicked".to_owned());
                ended.and_then(|took| took)
            });
            Ok::<_, Box<dyn std::error::Error>>(ended.collect::<Result<Vec<_>, _>>()?)
        })?;
        let began = ended.iter().map(|one| one.0).min().ok_or("no client")?;
        let last = ended.iter().map(|one| one.1).max().ok_or("no client")?;
        Ok(Self {
            seconds: (last - began).as_secs_f64(),
            latencies_ms: ended.into_iter().flat_map(|one| one.2).collect(),
        })
    }

    /// The latency that half of them stay below.
    pub(crate) fn p50(&self) -> f64 {
        percentile(self.latencies_ms.clone(), 0.5)
    }

    /// How often a second the work was done.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies_ms.len() as f64 / self.seconds
    }
}
