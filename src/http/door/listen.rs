//! The door's thread: accepts connections within the limits, and stops.

use super::connection;
use super::connection_state::Acceptance;
use super::counters::Counters;
use super::host::host_of;
use super::limits::Limits;
use super::shared::Shared;
use super::stopping::Stopping;
use rustix::process::{Resource, getrlimit};
use slog::{error, warn};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections that the kernel keeps for us until we accept them.
const BACKLOG: i32 = 1024;
/// Connections beyond each cap that are still answered: a probe with its answer, anything else
/// with 503 or 429. Beyond these they are closed without a word.
const SURPLUS: usize = 32;
/// The same, of connections that take descriptors which are reserved for others.
const SURPLUS_RESERVED: usize = 4;
/// After a failed accept, so that a full descriptor table does not cost a processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Makes the listener ready for the door's thread.
pub(super) fn prepare(listener: &std::net::TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    socket2::SockRef::from(listener).listen(BACKLOG)
}

/// Starts the door's thread. It returns whether every connection ended before the stop's deadline.
pub(super) fn start(
    listener: std::net::TcpListener,
    shared: Arc<Shared>,
) -> io::Result<JoinHandle<bool>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let listener = {
        let _inside = runtime.enter();
        TcpListener::from_std(listener)?
    };
    std::thread::Builder::new()
        .name("door".to_owned())
        .spawn(move || runtime.block_on(serve(listener, shared)))
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) -> bool {
    let stopping = Arc::clone(&shared.stopping);
    let counters = Arc::clone(&shared.counters);
    tokio::spawn(look_after_threads(Arc::clone(&shared)));
    accept_until_stop(listener, shared).await;
    let deadline = stopping.deadline();
    while counters.connections.load(Ordering::Relaxed) > 0 {
        let left = tokio::time::timeout_at(deadline.into(), stopping.one_left.notified()).await;
        if left.is_err() {
            return false;
        }
    }
    true
}

async fn look_after_threads(shared: Arc<Shared>) {
    let quarter = shared.limits.request_deadline / 4;
    let period = quarter.clamp(Duration::from_millis(20), Duration::from_secs(1));
    loop {
        tokio::time::sleep(period).await;
        shared.pool.look_after();
    }
}

async fn accept_until_stop(listener: TcpListener, shared: Arc<Shared>) {
    let seats = Arc::new(Mutex::new(Seats::default()));
    let mut reserve = File::open("/dev/null").ok();
    let stopping = Arc::clone(&shared.stopping);
    let mut begins = pin!(stopping.begins.notified());
    loop {
        let accepted = poll_fn(|cx| {
            let begun = begins.as_mut().poll(cx).is_ready() || stopping.has_begun();
            if begun {
                return Poll::Ready(None);
            }
            listener.poll_accept(cx).map(Some)
        });
        match accepted.await {
            None => return,
            Some(Ok((stream, peer))) => welcome(&shared, &seats, stream, peer),
            Some(Err(cause)) if is_of_one_connection(&cause) => {}
            Some(Err(cause)) => {
                let failures = &shared.counters.accept_failures;
                let before = failures.fetch_add(1, Ordering::Relaxed);
                if before.is_multiple_of(100) {
                    error!(shared.log, "no connection can be accepted; trying again";
                        "failures" => before + 1, crate::log::ErrorValue(&cause));
                }
                turn_away(&listener, &mut reserve).await;
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Without a descriptor left, clients would wait for nothing. The reserved one is given up for a
/// moment to take some of them and close them, so that they learn it at once.
async fn turn_away(listener: &TcpListener, reserve: &mut Option<File>) {
    *reserve = None;
    for _ in 0..SURPLUS {
        let once = poll_fn(|cx| Poll::Ready(listener.poll_accept(cx)));
        if !matches!(once.await, Poll::Ready(Ok(_))) {
            break;
        }
    }
    *reserve = File::open("/dev/null").ok();
}

fn welcome(shared: &Arc<Shared>, seats: &Arc<Mutex<Seats>>, stream: TcpStream, peer: SocketAddr) {
    let counters = &shared.counters;
    counters
        .connections_accepted
        .fetch_add(1, Ordering::Relaxed);
    let mut taken = seats.lock().unwrap_or_else(PoisonError::into_inner);
    let is_scarce = takes_reserved(&stream, &shared.limits);
    let Some(acceptance) = taken.take(peer.ip(), &shared.limits, is_scarce) else {
        drop(taken);
        let refused = counters.connections_refused.fetch_add(1, Ordering::Relaxed);
        if refused.is_multiple_of(1000) {
            warn!(shared.log, "connections are closed: too many are open";
                "refused" => refused + 1, "descriptorsAreScarce" => is_scarce);
        }
        return;
    };
    drop(taken);
    counters.connections.fetch_add(1, Ordering::Relaxed);
    let seat = Seat {
        seats: Arc::clone(seats),
        counters: Arc::clone(counters),
        stopping: Arc::clone(&shared.stopping),
        address: host_of(peer.ip()),
        acceptance,
    };
    // Where it fails, answers may leave a little later.
    let _ = stream.set_nodelay(true);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        connection::attend(shared, stream, peer, acceptance).await;
        drop(seat);
    });
}

/// Whether a connection takes a descriptor that the database, the audit and others may need.
fn takes_reserved(stream: &TcpStream, limits: &Limits) -> bool {
    let most = getrlimit(Resource::Nofile).current;
    let descriptor = u64::try_from(stream.as_raw_fd()).unwrap_or(0);
    most.is_some_and(|most| limits.is_reserved(descriptor, most))
}

/// Who is connected.
#[derive(Default)]
struct Seats {
    served: usize,
    beyond_all: usize,
    beyond_address: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Seats {
    fn take(&mut self, address: IpAddr, limits: &Limits, is_scarce: bool) -> Option<Acceptance> {
        let open = self.by_address.get(&host_of(address)).copied().unwrap_or(0);
        let (count, most, acceptance) = if is_scarce {
            (
                &mut self.beyond_all,
                SURPLUS_RESERVED,
                Acceptance::TooManyConnections,
            )
        } else if open >= limits.connections_per_address {
            (
                &mut self.beyond_address,
                SURPLUS,
                Acceptance::TooManyFromAddress,
            )
        } else if self.served >= limits.connections {
            (
                &mut self.beyond_all,
                SURPLUS,
                Acceptance::TooManyConnections,
            )
        } else {
            (&mut self.served, limits.connections, Acceptance::Served)
        };
        if *count >= most {
            return None;
        }
        *count += 1;
        if acceptance == Acceptance::Served {
            *self.by_address.entry(host_of(address)).or_insert(0) += 1;
        }
        Some(acceptance)
    }

    fn give_back(&mut self, address: IpAddr, acceptance: Acceptance) {
        match acceptance {
            Acceptance::TooManyConnections => self.beyond_all -= 1,
            Acceptance::TooManyFromAddress => self.beyond_address -= 1,
            Acceptance::Served => {
                self.served -= 1;
                if let Entry::Occupied(mut open) = self.by_address.entry(address) {
                    *open.get_mut() -= 1;
                    if *open.get() == 0 {
                        open.remove();
                    }
                }
            }
        }
    }
}

/// A connection's place, given back when it ends.
struct Seat {
    seats: Arc<Mutex<Seats>>,
    counters: Arc<Counters>,
    stopping: Arc<Stopping>,
    address: IpAddr,
    acceptance: Acceptance,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .give_back(self.address, self.acceptance);
        self.counters.connections.fetch_sub(1, Ordering::Relaxed);
        if self.stopping.has_begun() {
            self.stopping.one_left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_bounded_and_given_back() {
        let limits = Limits {
            connections: 2,
            connections_per_address: 1,
            ..Limits::default()
        };
        let [a, b, c] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut seats = Seats::default();
        assert_eq!(seats.take(a, &limits, false), Some(Acceptance::Served));
        for _ in 0..SURPLUS {
            assert_eq!(
                seats.take(a, &limits, false),
                Some(Acceptance::TooManyFromAddress)
            );
        }
        assert_eq!(seats.take(a, &limits, false), None);
        assert_eq!(seats.take(b, &limits, false), Some(Acceptance::Served));
        assert_eq!(
            seats.take(c, &limits, false),
            Some(Acceptance::TooManyConnections)
        );
        seats.give_back(a, Acceptance::Served);
        assert_eq!(seats.take(c, &limits, false), Some(Acceptance::Served));
        assert!(!seats.by_address.contains_key(&a));
        // The last of the surplus is for probes, where descriptors are scarce.
        seats = Seats::default();
        for _ in 0..SURPLUS_RESERVED {
            let taken = seats.take(a, &limits, true);
            assert_eq!(taken, Some(Acceptance::TooManyConnections));
        }
        assert_eq!(seats.take(a, &limits, true), None);
        assert_eq!(seats.take(a, &limits, false), Some(Acceptance::Served));
    }
}
