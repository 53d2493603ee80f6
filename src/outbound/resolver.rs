//! Resolves names on a fixed pool of threads.
//!
//! `getaddrinfo` blocks as long as the system's resolver wants. So it runs on its own threads
//! behind a bounded queue, and a caller waits until its own deadline at most. A full queue, a
//! passed deadline and an empty answer are failures: nothing is reached unresolved. Concurrent
//! requests for one name share one look-up, so a name occupies one thread at most.
//!
//! A thread ends when the pool is dropped and its look-up has returned. Not here: a cache. The
//! system has one, and a cached answer would outlive its check.

use super::cancel::Token;
use super::failure::{Failure, Kind, Phase};
use crate::threads;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use url::Host;

/// A name with more addresses than this is refused.
const MAX_ADDRESSES: usize = 64;

/// Callers that may wait for one name.
const MOST_WAITING: usize = 1024;

/// A function that looks a name up.
pub type Lookup = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

pub(super) struct Resolver {
    names: Sender<String>,
    asked: Arc<Asked>,
}

/// Unanswered look-ups by name. Each was sent to the threads once.
#[derive(Default)]
struct Asked(Mutex<HashMap<String, Name>>);

struct Name {
    has_begun: bool,
    /// The latest deadline of the waiting callers.
    deadline: Instant,
    waiting: Vec<Sender<Answer>>,
}

/// The addresses, or the reason why there are none.
type Answer = Result<Vec<IpAddr>, String>;

impl Resolver {
    /// Starts the threads. Their names begin with `name`.
    pub(super) fn start(
        name: &str,
        threads: usize,
        queue: usize,
        lookup: &Arc<Lookup>,
    ) -> io::Result<Self> {
        let (names, waiting) = bounded(queue);
        let asked = Arc::<Asked>::default();
        for index in 0..threads {
            let (waiting, asked) = (waiting.clone(), Arc::clone(&asked));
            let lookup = Arc::clone(lookup);
            let work = move || work(&waiting, &asked, &*lookup);
            threads::start(format!("{name}-{index}"), Some(256 * 1024), work)?;
        }
        Ok(Self { names, asked })
    }

    /// The addresses of a name, or a failure once the deadline has passed or the token is
    /// cancelled. [`Kind::Busy`]: no thread had started the look-up by then.
    pub(super) fn resolve(
        &self,
        name: &str,
        deadline: Instant,
        token: &Token,
    ) -> Result<Vec<IpAddr>, Failure> {
        let answer = self.ask(name, deadline)?;
        crossbeam_channel::select! {
            recv(answer) -> answer => {
                let unsaid = || Err("the look-up ended without an answer".to_owned());
                check_answer(name, answer.unwrap_or_else(|_| unsaid()))
            }
            recv(token.watch()) -> _ => Err(Token::failure()),
            default(deadline.saturating_duration_since(Instant::now())) => Err(self.late(name)),
        }
    }

    fn ask(&self, name: &str, deadline: Instant) -> Result<Receiver<Answer>, Failure> {
        let (reply, answer) = bounded(1);
        let mut asked = self.asked.lock();
        if let Some(known) = asked.get_mut(name) {
            if known.waiting.len() >= MOST_WAITING {
                return Err(busy(name, "too many wait for it"));
            }
            known.deadline = known.deadline.max(deadline);
            known.waiting.push(reply);
            return Ok(answer);
        }
        self.names
            .try_send(name.to_owned())
            .map_err(|error| match error {
                TrySendError::Full(_) => busy(name, "too many look-ups are waiting"),
                TrySendError::Disconnected(_) => unresolved(name, "the resolver has stopped"),
            })?;
        let new = Name {
            has_begun: false,
            deadline,
            waiting: vec![reply],
        };
        asked.insert(name.to_owned(), new);
        Ok(answer)
    }

    fn late(&self, name: &str) -> Failure {
        let waits = self
            .asked
            .lock()
            .get(name)
            .is_some_and(|known| !known.has_begun);
        if waits {
            return busy(name, "other look-ups took all the time");
        }
        Failure::new(
            Kind::Timeout(Phase::Resolve),
            format!("The host name {name} does not resolve: no answer in time."),
        )
    }
}

fn unresolved(name: &str, why: &str) -> Failure {
    Failure::new(
        Kind::Resolve,
        format!("The host name {name} does not resolve: {why}."),
    )
}

fn busy(name: &str, why: &str) -> Failure {
    Failure::new(
        Kind::Busy,
        format!("The host name {name} was not looked up: {why}."),
    )
}

fn check_answer(name: &str, answer: Answer) -> Result<Vec<IpAddr>, Failure> {
    let why = match answer {
        Ok(addresses) if addresses.len() > MAX_ADDRESSES => {
            format!("it has more than {MAX_ADDRESSES} addresses")
        }
        Ok(addresses) if !addresses.is_empty() => return Ok(addresses),
        Ok(_) => "it has no address".to_owned(),
        Err(error) => error,
    };
    Err(unresolved(name, &why))
}

impl Asked {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Name>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a look-up unless every caller has left: an abandoned name must not delay the others.
    fn begin(&self, name: &str) -> bool {
        let mut asked = self.lock();
        match asked.get_mut(name) {
            Some(known) if known.deadline > Instant::now() => {
                known.has_begun = true;
                true
            }
            _ => {
                asked.remove(name);
                false
            }
        }
    }

    fn answer(&self, name: &str, answer: &Answer) {
        let known = self.lock().remove(name);
        for reply in known.into_iter().flat_map(|known| known.waiting) {
            let _ = reply.send(answer.clone());
        }
    }
}

fn work(names: &Receiver<String>, asked: &Asked, lookup: &Lookup) {
    for name in names {
        if asked.begin(&name) {
            asked.answer(&name, &lookup(&name).map_err(|error| error.to_string()));
        }
    }
}

/// The system's own resolver.
pub(super) fn system(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in (name, 0).to_socket_addrs()? {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    Ok(addresses)
}

pub(super) fn look_up(
    resolver: &Resolver,
    host: &Host,
    deadline: Instant,
    token: &Token,
) -> Result<Vec<IpAddr>, Failure> {
    match host {
        Host::Ipv4(v4) => Ok(vec![IpAddr::V4(*v4)]),
        Host::Ipv6(v6) => Ok(vec![IpAddr::V6(*v6)]),
        Host::Domain(name) => resolver.resolve(name, deadline, token),
    }
}
