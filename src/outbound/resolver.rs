//! Names to addresses, on a fixed pool of threads.
//!
//! `getaddrinfo` blocks for as long as the system's resolver likes, so it runs on threads of its
//! own behind a bounded queue, and the caller waits for at most its deadline. A full queue, a
//! deadline that passed and an empty answer are failures: nothing is reached unresolved.
//!
//! A thread ends when the pool is dropped and its look-up, if it has one, returns. Not here: a
//! cache (the system has one, and an answer of ours would outlive its judgement).

use super::cancel::Token;
use super::failure::{Failure, Kind, Phase};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Instant;

/// More addresses than this of one name are not looked at, and with them the name is refused.
const MAX_ADDRESSES: usize = 64;

/// A function that looks a name up.
pub type Lookup = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

pub(super) struct Resolver {
    jobs: Sender<Job>,
}

struct Job {
    name: String,
    deadline: Instant,
    reply: Sender<io::Result<Vec<IpAddr>>>,
}

impl Resolver {
    /// Starts the threads; `name` begins each one's name.
    pub(super) fn start(
        name: &str,
        threads: usize,
        queue: usize,
        lookup: &Arc<Lookup>,
    ) -> io::Result<Self> {
        let (jobs, waiting) = bounded(queue);
        for index in 0..threads {
            let waiting: Receiver<Job> = waiting.clone();
            let lookup = Arc::clone(lookup);
            std::thread::Builder::new()
                .name(format!("{name}-{index}"))
                .stack_size(256 * 1024)
                .spawn(move || work(&waiting, &*lookup))?;
        }
        Ok(Self { jobs })
    }

    /// The addresses of a name, or the failure once the deadline passes or the token is cancelled.
    pub(super) fn resolve(
        &self,
        name: &str,
        deadline: Instant,
        token: &Token,
    ) -> Result<Vec<IpAddr>, Failure> {
        let (reply, answer) = bounded(1);
        let job = Job {
            name: name.to_owned(),
            deadline,
            reply,
        };
        self.jobs.try_send(job).map_err(|error| {
            let why = match error {
                TrySendError::Full(_) => "too many look-ups are waiting",
                TrySendError::Disconnected(_) => "the resolver has stopped",
            };
            Failure::new(
                Kind::Resolve,
                format!("The host name {name} does not resolve: {why}."),
            )
        })?;
        crossbeam_channel::select! {
            recv(answer) -> answer => {
                let unsaid = || Err(io::Error::other("the look-up ended without an answer"));
                judge_answer(name, answer.unwrap_or_else(|_| unsaid()))
            }
            recv(token.watch()) -> _ => Err(Token::failure()),
            default(deadline.saturating_duration_since(Instant::now())) => Err(Failure::new(
                Kind::Timeout(Phase::Resolve),
                format!("The host name {name} does not resolve: no answer in time."),
            )),
        }
    }
}

fn judge_answer(name: &str, answer: io::Result<Vec<IpAddr>>) -> Result<Vec<IpAddr>, Failure> {
    let why = match answer {
        Ok(addresses) if addresses.len() > MAX_ADDRESSES => {
            format!("it has more than {MAX_ADDRESSES} addresses")
        }
        Ok(addresses) if !addresses.is_empty() => return Ok(addresses),
        Ok(_) => "it has no address".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::new(
        Kind::Resolve,
        format!("The host name {name} does not resolve: {why}."),
    ))
}

fn work(waiting: &Receiver<Job>, lookup: &Lookup) {
    for job in waiting {
        // Whoever asked has gone: an unanswered queue must not keep the next ones waiting.
        if job.deadline > Instant::now() {
            let _ = job.reply.send(lookup(&job.name));
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
