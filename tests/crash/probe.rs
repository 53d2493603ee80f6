//! Somebody who asks all the time, and remembers how soon he was answered.

use crate::server::{Answer, Client};
use crate::wait::{eventually, moment};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What came back, and after how long.
pub(crate) type Asked = (Result<u16, String>, Duration);

/// Asks for some paths in turn until it is told to stop.
pub(crate) struct Probe {
    stop: Arc<AtomicBool>,
    /// Questions that were begun.
    begun: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<Asked>>,
}

impl Probe {
    pub(crate) fn start(client: Client, paths: &'static [&'static str]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicUsize::new(0));
        let (stopped, begins) = (Arc::clone(&stop), Arc::clone(&begun));
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || {
                let mut asked = Vec::new();
                for path in paths.iter().cycle() {
                    if stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    begins.fetch_add(1, Ordering::Relaxed);
                    let begin = Instant::now();
                    let answer = client.get(path).map(|Answer { status, .. }| status);
                    asked.push((answer, begin.elapsed()));
                    moment();
                }
                asked
            })
            .unwrap();
        Self {
            stop,
            begun,
            thread,
        }
    }

    /// Waits until it has begun with so many questions.
    pub(crate) fn wait_for(&self, questions: usize) {
        eventually("the next question", || {
            (self.begun.load(Ordering::Relaxed) >= questions).then_some(())
        });
    }

    pub(crate) fn stop(self) -> Vec<Asked> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Every answer was this one, and came at once. Says how long the slowest took. A machine that does
/// other work at the same time may hold up one answer in ten.
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
    times.last().copied().unwrap()
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
