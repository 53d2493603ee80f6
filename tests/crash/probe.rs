//! Somebody who asks all the time, and remembers how soon he was answered.

use crate::server::{Answer, Client};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// What came back, and after how long.
pub(crate) type Asked = (Result<u16, String>, Duration);

/// Asks for some paths in turn until it is told to stop.
pub(crate) struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Asked>>,
}

impl Probe {
    pub(crate) fn start(client: Client, paths: &'static [&'static str]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || {
                let mut asked = Vec::new();
                for path in paths.iter().cycle() {
                    if stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    let begin = Instant::now();
                    let answer = client.get(path).map(|Answer { status, .. }| status);
                    asked.push((answer, begin.elapsed()));
                    std::thread::sleep(PAUSE);
                }
                asked
            })
            .unwrap();
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Vec<Asked> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Every answer was this one, and came at once. Says how long the slowest took. A machine that does
/// other work at the same time may hold up one answer in ten, and a single one for long.
#[track_caller]
pub(crate) fn all_at_once(asked: &[Asked], status: u16) -> Duration {
    let wrong: Vec<&Asked> = asked
        .iter()
        .filter(|(answer, _)| *answer != Ok(status))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let mut times: Vec<Duration> = asked.iter().map(|(_, time)| *time).collect();
    times.sort_unstable();
    let most = times[times.len() * 9 / 10];
    assert!(
        most < Duration::from_secs(1),
        "{most:?} among {}",
        times.len()
    );
    let slowest = times.last().copied().unwrap();
    let next = times.iter().rev().nth(1).copied().unwrap_or_default();
    assert!(
        next < Duration::from_secs(2) && slowest < Duration::from_secs(8),
        "{next:?} {slowest:?}"
    );
    slowest
}

/// Every answer is one of these and came within the time. Says how many were not the first.
#[track_caller]
pub(crate) fn all_within(asked: &[Asked], statuses: &[u16], limit: Duration) -> usize {
    for (answer, time) in asked {
        let fine = answer
            .as_ref()
            .is_ok_and(|status| statuses.contains(status));
        assert!(fine && *time <= limit, "{answer:?} after {time:?}");
    }
    asked
        .iter()
        .filter(|(answer, _)| *answer != Ok(statuses[0]))
        .count()
}
