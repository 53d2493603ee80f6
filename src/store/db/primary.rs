//! Finds the primary among the hosts of a connection string, and leaves an old primary.
//!
//! A promoted standby begins a new timeline with a higher number. One thread for each host asks it four times a second
//! whether it is a primary, and on which timeline. Connections go to the primary with the highest timeline. When a
//! higher one appears, the connections to the previous primary are closed and their statements cancelled, because an
//! old primary that is still running would answer with old data.
//!
//! Guarantees: once a timeline was seen, this process opens no connection to an older one. Probes and connection attempts
//! of one host do not delay those of another. A host that accepts connections and never answers blocks only a few
//! threads.
//!
//! Not here: a connection string with one host. The failover behind that name must close the connections.

use super::failure::Failure;
use super::statement_timeout::{Canceller, Monitor};
use crate::error::{self, Error, Result};
use crate::sql;
use crate::threads;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use postgres::config::{Host as ConfigHost, TargetSessionAttrs};
use postgres::{Client, Config};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Between two questions to a host.
const PERIOD: Duration = Duration::from_millis(250);
/// How long a host may take until a connection to it stands.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the other hosts are still waited for once one said that it is a primary.
const OTHERS: Duration = Duration::from_millis(500);
/// Between two looks for a newer primary while a connection to the one known is being made.
const LOOK: Duration = Duration::from_millis(100);
/// Between two attempts to reach a primary that is away.
const AGAIN: Duration = Duration::from_millis(200);
/// A primary that has not answered for so long gives way to another name of the same one, or to another cluster.
const SILENT: Duration = Duration::from_secs(3);
/// Attempts under way to one host.
const ATTEMPTS: u32 = 8;

/// The hosts, and which of them is the primary.
pub(super) struct Hosts {
    hosts: Vec<One>,
    canceller: Canceller,
    newest: Mutex<Option<Newest>>,
}

struct One {
    config: Config,
    attempts: Arc<AtomicU32>,
}

/// A primary as it described itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// PostgreSQL's number of the cluster.
    pub system: i64,
    /// The higher, the newer.
    pub timeline: i64,
}

struct Newest {
    host: usize,
    seen: Seen,
    /// When this process took it for the primary.
    found_at: Instant,
    confirmed_at: Instant,
}

/// What this process knows of the primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryStatus {
    /// Each host with its port, and whether it is the primary.
    pub hosts: Vec<(String, bool)>,
    /// The primary's; 0 where none is known.
    pub timeline: i64,
    /// How long it has been taken for the primary; 0 where none is known.
    pub since: Duration,
}

/// A host, with its port, and what it said of itself.
#[derive(Debug)]
pub struct Host {
    /// As the connection string has it.
    pub name: String,
    /// What it said.
    pub said: Said,
}

/// What a host says of itself.
#[derive(Debug)]
pub enum Said {
    /// It is a primary.
    Primary(Seen),
    /// It is a standby.
    Standby,
    /// It does not answer, or refuses. Why.
    Nothing(String),
}

impl Hosts {
    /// None: the connection string names one host.
    pub(super) fn of(config: &Config, canceller: &Canceller) -> Option<Arc<Self>> {
        let count = config.get_hosts().len().max(config.get_hostaddrs().len());
        let hosts = (0..count).map(|host| One {
            config: only(config, host),
            attempts: Arc::default(),
        });
        (count > 1).then(|| {
            Arc::new(Self {
                hosts: hosts.collect(),
                canceller: canceller.clone(),
                newest: Mutex::new(None),
            })
        })
    }

    /// A connection to the newest primary, and its timeline. While that one is away it is tried again, and another one that
    /// is found is tried at once: the pool's pauses between its attempts grow, and would be waited for after a promotion.
    pub(super) fn open(&self) -> Result<(Client, i64), Failure> {
        let deadline = Instant::now() + CONNECT;
        loop {
            let known = self
                .lock()
                .as_ref()
                .map(|newest| (newest.host, newest.seen.timeline));
            let Some((host, timeline)) = known else {
                return self.look();
            };
            match self.open_at(host, timeline, deadline) {
                Err(Failure::Superseded) => {}
                Err(failure) if failure.is_away() && Instant::now() + AGAIN < deadline => {
                    std::thread::sleep(AGAIN);
                }
                opened => return opened,
            }
        }
    }

    /// A connection to the primary that is known.
    fn open_at(
        &self,
        host: usize,
        timeline: i64,
        deadline: Instant,
    ) -> Result<(Client, i64), Failure> {
        let (tell, answer) = bounded(1);
        self.attempt(host, false, tell)?;
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(opened) => return opened.map(|(client, _)| (client, timeline)),
                Err(RecvTimeoutError::Timeout) if self.is_superseded(timeline) => {
                    return Err(Failure::Superseded);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(_) => return Err(Failure::NoPrimary(None)),
            }
        }
    }

    /// Whether the primary of this timeline is an old one by now.
    pub(super) fn is_superseded(&self, timeline: i64) -> bool {
        let newest = self.lock();
        newest
            .as_ref()
            .is_some_and(|newest| newest.seen.timeline > timeline)
    }

    /// Asks all hosts, where nothing is known yet, and takes the newest primary of those that answer in time.
    fn look(&self) -> Result<(Client, i64), Failure> {
        let mut deadline = Instant::now() + CONNECT;
        let (tell, answers) = bounded(self.hosts.len());
        for host in 0..self.hosts.len() {
            // A host that holds too many attempts is none that answers.
            let _ = self.attempt(host, true, tell.clone());
        }
        drop(tell);
        let mut best: Option<(Client, i64)> = None;
        let (mut away, mut refusals) = (None, Vec::new());
        while let Ok(answer) = answers.recv_deadline(deadline) {
            match answer {
                Ok((client, Some(seen))) => {
                    deadline = deadline.min(Instant::now() + OTHERS);
                    if best.as_ref().is_none_or(|(_, of)| *of < seen.timeline) {
                        best = Some((client, seen.timeline));
                    }
                }
                // A standby.
                Ok((_, None)) => {}
                Err(Failure::Postgres(error)) if !error::is_away(&error) => refusals.push(error),
                Err(failure) => away = Some(failure),
            }
        }
        let is_refused_by_all = refusals.len() == self.hosts.len();
        best.ok_or_else(|| match (refusals.pop(), away) {
            (Some(refusal), _) if is_refused_by_all => refusal.into(),
            (None, Some(away)) => away,
            // A host that is away, or a standby, may be the primary soon.
            (refusal, _) => Failure::NoPrimary(refusal),
        })
    }

    pub(super) fn status(&self) -> PrimaryStatus {
        let newest = self.lock();
        let newest = newest.as_ref();
        let hosts = self.hosts.iter().enumerate().map(|(host, one)| {
            let is_primary = newest.is_some_and(|newest| newest.host == host);
            (name(&one.config), is_primary)
        });
        PrimaryStatus {
            hosts: hosts.collect(),
            timeline: newest.map_or(0, |newest| newest.seen.timeline),
            since: newest.map_or(Duration::ZERO, |newest| newest.found_at.elapsed()),
        }
    }

    /// Asks every host at once.
    pub(super) fn ask_each(&self) -> Vec<Host> {
        let deadline = Instant::now() + CONNECT;
        let begin = |host| {
            let (tell, answer) = bounded(1);
            self.attempt(host, true, tell).map(|()| answer)
        };
        let begun: Vec<_> = (0..self.hosts.len()).map(begin).collect();
        let said = begun.into_iter().map(|answer| {
            match answer.map(|answer| answer.recv_deadline(deadline)) {
                Ok(Ok(Ok((_, Some(seen))))) => Said::Primary(seen),
                Ok(Ok(Ok((_, None)))) => Said::Standby,
                Ok(Ok(Err(Failure::Postgres(error)))) => Said::Nothing(describe(&error)),
                Ok(Ok(Err(failure))) => Said::Nothing(failure.to_string()),
                Ok(Err(_)) => Said::Nothing("no answer in time".to_owned()),
                Err(failure) => Said::Nothing(failure.to_string()),
            }
        });
        let names = self.hosts.iter().map(|one| name(&one.config));
        names
            .zip(said)
            .map(|(name, said)| Host { name, said })
            .collect()
    }

    /// Connects on a thread of its own, because neither a connection's start nor a question has a deadline.
    fn attempt(&self, host: usize, asks: bool, tell: Sender<Attempt>) -> Result<(), Failure> {
        let one = self.hosts.get(host).ok_or(Failure::NoPrimary(None))?;
        let under_way = UnderWay(Arc::clone(&one.attempts));
        if under_way.0.fetch_add(1, Ordering::Relaxed) >= ATTEMPTS {
            return Err(Failure::NoPrimary(None));
        }
        let mut config = one.config.clone();
        if !asks {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let canceller = self.canceller.clone();
        let began = std::thread::Builder::new()
            .name("store-connect".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || {
                let opened = canceller.connect(&config).and_then(|mut client| {
                    let seen = if asks { ask(&mut client)? } else { None };
                    Ok((client, seen))
                });
                drop(under_way);
                // Nobody waits for what came too late: the connection is closed.
                let _ = tell.send(opened);
            });
        began.map(drop).map_err(|_| Failure::NoPrimary(None))
    }

    /// Takes what a host said of itself. The primary's timeline if it is another one than before: connections to those below
    /// it are old.
    fn note(&self, host: usize, seen: Seen) -> Option<Change> {
        let mut newest = self.lock();
        let at = Instant::now();
        let now = Newest {
            host,
            seen,
            found_at: at,
            confirmed_at: at,
        };
        let Some(before) = newest.as_mut() else {
            *newest = Some(now);
            return None;
        };
        if before.host == host && before.seen == seen {
            before.confirmed_at = now.confirmed_at;
            return None;
        }
        let is_same_system = before.seen.system == seen.system;
        let is_silent = before.confirmed_at.elapsed() > SILENT;
        if is_same_system && seen.timeline > before.seen.timeline {
            *newest = Some(now);
            return Some(Change {
                below: seen.timeline,
            });
        }
        if is_silent && !is_same_system {
            *newest = Some(now);
            return Some(Change { below: i64::MAX });
        }
        if is_silent && seen == before.seen {
            *newest = Some(now);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Option<Newest>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one attempt until it is dropped.
struct UnderWay(Arc<AtomicU32>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Attempt = Result<(Client, Option<Seen>), Failure>;

/// Connections to timelines below this one are old.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    below: i64,
}

/// Starts the threads, which end with the pool.
///
/// # Errors
/// The system gives no thread.
pub(super) fn watch(hosts: &Arc<Hosts>, monitor: &Arc<Monitor>, log: &slog::Logger) -> Result<()> {
    for host in 0..hosts.hosts.len() {
        let watcher = Watcher {
            host,
            hosts: Arc::downgrade(hosts),
            monitor: Arc::downgrade(monitor),
            log: log.clone(),
        };
        threads::start("store-primary", Some(512 * 1024), move || watcher.run())
            .map_err(Error::internal)?;
    }
    Ok(())
}

struct Watcher {
    host: usize,
    hosts: Weak<Hosts>,
    monitor: Weak<Monitor>,
    log: slog::Logger,
}

impl Watcher {
    fn run(&self) {
        let mut client: Option<Client> = None;
        // Nothing is kept from ending while a host is silent: the pool and its hosts are held between questions only.
        while let Some((config, canceller)) = self.reach() {
            if client.is_none() {
                client = canceller.connect(&config).ok();
            }
            match client.as_mut().map(ask) {
                Some(Ok(Some(seen))) => self.tell(seen),
                Some(Ok(None)) => {}
                Some(Err(_)) | None => client = None,
            }
            std::thread::sleep(PERIOD);
        }
    }

    fn reach(&self) -> Option<(Config, Canceller)> {
        let hosts = self.hosts.upgrade()?;
        let one = hosts.hosts.get(self.host)?;
        Some((one.config.clone(), hosts.canceller.clone()))
    }

    fn tell(&self, seen: Seen) {
        let (Some(hosts), Some(monitor)) = (self.hosts.upgrade(), self.monitor.upgrade()) else {
            return;
        };
        let Some(change) = hosts.note(self.host, seen) else {
            return;
        };
        let given_up = monitor.supersede(change.below, &hosts.canceller, &self.log);
        let host = hosts.hosts.get(self.host).map(|one| name(&one.config));
        slog::warn!(self.log, "Another server is the primary database now; the connections to the one before are given up";
            "host" => host, "timeline" => seen.timeline, "connections" => given_up);
    }
}

fn ask(client: &mut Client) -> Result<Option<Seen>, postgres::Error> {
    let row = client.query_one(sql!("primary/ask"), &[])?;
    let timeline: Option<i64> = row.try_get("timeline")?;
    let system = row.try_get("system")?;
    Ok(timeline.map(|timeline| Seen { system, timeline }))
}

/// Of one of its hosts alone, whatever that one is.
fn only(config: &Config, host: usize) -> Config {
    let mut all = Config::new();
    if let Some(user) = config.get_user() {
        all.user(user);
    }
    if let Some(password) = config.get_password() {
        all.password(password);
    }
    if let Some(database) = config.get_dbname() {
        all.dbname(database);
    }
    if let Some(options) = config.get_options() {
        all.options(options);
    }
    if let Some(application) = config.get_application_name() {
        all.application_name(application);
    }
    all.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .connect_timeout(CONNECT)
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle());
    if let Some(interval) = config.get_keepalives_interval() {
        all.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        all.keepalives_retries(retries);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        all.tcp_user_timeout(*timeout);
    }
    match config.get_hosts().get(host) {
        Some(ConfigHost::Tcp(name)) => {
            all.host(name);
        }
        Some(ConfigHost::Unix(path)) => {
            all.host_path(path);
        }
        None => {}
    }
    if let Some(address) = config.get_hostaddrs().get(host) {
        all.hostaddr(*address);
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(host).or_else(|| ports.first()) {
        all.port(*port);
    }
    all
}

pub(super) fn describe(error: &postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The host and its port, for a log record.
fn name(config: &Config) -> String {
    let port = config.get_ports().first().unwrap_or(&5432);
    match (config.get_hosts().first(), config.get_hostaddrs().first()) {
        (Some(ConfigHost::Tcp(name)), _) => format!("{name}:{port}"),
        (Some(ConfigHost::Unix(path)), _) => format!("{}:{port}", path.display()),
        (None, Some(address)) => format!("{address}:{port}"),
        (None, None) => port.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Seen = Seen {
        system: 1,
        timeline: 1,
    };
    const SECOND: Seen = Seen {
        system: 1,
        timeline: 2,
    };

    fn hosts(url: &str) -> Option<Arc<Hosts>> {
        Hosts::of(&url.parse().unwrap(), &Canceller(None))
    }

    fn silence(hosts: &Hosts) {
        hosts.lock().as_mut().unwrap().confirmed_at -= 2 * SILENT;
    }

    #[test]
    fn one_host_is_not_watched_and_each_of_several_is_reached_alone() {
        assert!(hosts("postgres://u@a:1/d").is_none());
        let several = hosts("host=a,/b port=1,2 user=u password=p dbname=d").unwrap();
        let names: Vec<_> = several.hosts.iter().map(|one| name(&one.config)).collect();
        assert_eq!(names, ["a:1", "/b:2"]);
        let first = &several.hosts[0].config;
        assert_eq!(
            (first.get_user(), first.get_dbname(), first.get_password()),
            (Some("u"), Some("d"), Some(&b"p"[..]))
        );
    }

    #[test]
    fn a_higher_timeline_supersedes_and_a_lower_one_never_comes_back() {
        let hosts = hosts("host=a,b user=u").unwrap();
        assert_eq!(hosts.status().timeline, 0);
        assert_eq!(hosts.note(0, FIRST), None);
        assert!(!hosts.is_superseded(1));
        let of_first = || hosts.status().since;
        hosts.lock().as_mut().unwrap().found_at -= SILENT;
        assert_eq!(hosts.note(0, FIRST), None);
        assert!(of_first() >= SILENT, "it is still the same one");
        assert_eq!(hosts.note(1, SECOND), Some(Change { below: 2 }));
        assert!(hosts.is_superseded(1) && !hosts.is_superseded(2));
        let status = hosts.status();
        let is_primary = [("a:5432".to_owned(), false), ("b:5432".to_owned(), true)];
        assert_eq!((&status.hosts[..], status.timeline), (&is_primary[..], 2));
        assert!(status.since < SILENT);
        silence(&hosts);
        assert_eq!(hosts.note(0, FIRST), None, "the old primary is still there");
        assert!(hosts.is_superseded(1));
    }

    /// Without the pool's pause between two attempts.
    #[test]
    fn a_connection_to_a_primary_that_is_away_is_made_to_the_next_one_at_once() {
        let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (old, next) = (listen(), listen());
        let port = |listener: &std::net::TcpListener| listener.local_addr().unwrap().port();
        let url = format!(
            "host=127.0.0.1,127.0.0.1 port={},{} user=u sslmode=disable",
            port(&old),
            port(&next)
        );
        let hosts = hosts(&url).unwrap();
        hosts.note(0, FIRST);
        let waiting = Arc::clone(&hosts);
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let opening = thread("opening").spawn(move || waiting.open().is_err());
        // It hangs up, and the next connection to it fails, too.
        drop(old.accept().unwrap());
        drop(old);
        hosts.note(1, SECOND);
        let (tell, asked) = bounded(1);
        thread("next")
            .spawn(move || tell.send(next.accept().is_ok()))
            .unwrap();
        assert_eq!(asked.recv_timeout(2 * CONNECT), Ok(true));
        assert!(opening.unwrap().join().unwrap(), "it hung up, too");
    }

    #[test]
    fn another_name_or_cluster_takes_over_from_one_that_is_silent() {
        let hosts = hosts("host=a,b user=u").unwrap();
        let other = Seen {
            system: 2,
            timeline: 1,
        };
        hosts.note(0, SECOND);
        assert_eq!(hosts.note(1, SECOND), None);
        assert_eq!(hosts.note(1, other), None);
        assert_eq!(hosts.lock().as_ref().unwrap().host, 0);
        silence(&hosts);
        assert_eq!(hosts.note(1, SECOND), None, "its connections are as good");
        assert_eq!(hosts.lock().as_ref().unwrap().host, 1);
        silence(&hosts);
        assert_eq!(hosts.note(0, other), Some(Change { below: i64::MAX }));
    }
}
