//! The thread of hints: it delivers to readers which objects changed, without their content.
//!
//! Guarantees: a reader gets a hint for every change after it connected. The hint has the object's id, or only the kind if
//! it is unknown what changed: at the beginning, after the reader's buffer was full, and after the database was away. The
//! reader's rights are read from the database right before each hint. A slow reader costs only its own bounded buffer.
//!
//! This thread does not look for changes. The threads `stream-tail` and `stream-reviewers`, which see the changes of all
//! replicas, pass them on ([`ToChanges`]) while somebody follows. The rows are the truth; readers read them again
//! (`wake-ups-are-hints`).

use super::followers::{self, Follows};
use super::format;
use super::options::Options;
use super::outgoing::Outgoing;
use crate::authz::ChangeFollower;
use crate::error::{Error, Result};
use crate::http::door::StreamWriter;
use crate::ids::Clock;
use crate::store::changes::{self, Change, ChangeKind};
use crate::store::reviewers::OfTenant;
use crate::store::{Sql, Store};
use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

/// Runs, people or projects looked up with one query.
const LOOKED_UP: usize = 1000;

/// Objects whose hints wait to be delivered, at most; of more, the readers get the hint to look at all of the kind.
const WAITING: usize = 10_000;

/// How soon a reader who is behind is served again.
const RETRY: Duration = Duration::from_millis(25);

/// How often every reader is looked at.
const SWEEP: Duration = Duration::from_millis(500);

const KINDS: usize = ChangeKind::ALL.len();

pub(super) enum Command {
    /// A reader comes.
    Join(Box<Follower>),
    /// Runs have new events.
    Moved(Vec<Uuid>),
    /// Something happened to approvals.
    Happened(Vec<Change>),
    /// The thread is to end.
    Stop,
}

/// The way to the thread for those who find what happens.
#[derive(Clone)]
pub(super) struct ToChanges {
    to: Sender<Command>,
    /// By kind: readers who follow it.
    followed: Arc<[AtomicUsize; KINDS]>,
    /// By kind: something happened, and it is not known what.
    missed: Arc<[AtomicBool; KINDS]>,
}

impl ToChanges {
    pub(super) fn new(to: Sender<Command>) -> Self {
        Self {
            to,
            followed: Arc::default(),
            missed: Arc::default(),
        }
    }

    /// Somebody follows the kind.
    pub(super) fn wants(&self, kind: ChangeKind) -> bool {
        self.followed[kind as usize].load(Ordering::Relaxed) > 0
    }

    /// Whatever is of this kind may have changed.
    pub(super) fn missed(&self, kind: ChangeKind) {
        self.missed[kind as usize].store(true, Ordering::Relaxed);
    }

    /// These runs have new events.
    pub(super) fn moved(&self, run_ids: Vec<Uuid>) {
        self.send(ChangeKind::Run, Command::Moved(run_ids));
    }

    /// This happened to approvals.
    pub(super) fn happened(&self, changes: Vec<Change>) {
        self.send(ChangeKind::Approval, Command::Happened(changes));
    }

    fn send(&self, kind: ChangeKind, command: Command) {
        if self.wants(kind) && self.to.try_send(command).is_err() {
            self.missed(kind);
        }
    }
}

/// Look at this again.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changed {
    kind: ChangeKind,
    /// The object; left out where any of the kind may have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
    /// Its project.
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<Uuid>,
}

impl Changed {
    fn one(change: &Change) -> Bytes {
        Self::event(Self {
            kind: change.kind,
            id: Some(change.id),
            project_id: Some(change.project_id),
        })
    }

    fn all(kind: ChangeKind) -> Bytes {
        Self::event(Self {
            kind,
            id: None,
            project_id: None,
        })
    }

    fn event(self) -> Bytes {
        format::passing("changed", self)
    }
}

/// What the `data` lines of a stream of hints hold.
pub(in crate::http) struct ChangeStreamData;

impl JsonSchema for ChangeStreamData {
    fn schema_name() -> Cow<'static, str> {
        "ChangeStreamData".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "The `data` of one server-sent event. Its `event` line says what it is: `changed`, `stream.end` or \
                `stream.reset`. None has an id.",
            "anyOf": [
                generator.subschema_for::<Changed>(),
                generator.subschema_for::<format::StreamEnd>(),
                generator.subschema_for::<format::StreamReset>(),
            ],
        })
    }
}

/// One reader.
pub(super) struct Follower {
    out: Outgoing,
    may: ChangeFollower,
    /// By kind: it is to look at all of it.
    missed: [bool; KINDS],
}

impl Follower {
    /// It begins with a look at all of its kinds.
    pub(super) fn new(writer: StreamWriter, may: ChangeFollower, buffer_bytes: usize) -> Self {
        let mut missed = [false; KINDS];
        for kind in may.kinds() {
            missed[*kind as usize] = true;
        }
        Self {
            out: Outgoing::new(writer, buffer_bytes),
            may,
            missed,
        }
    }

    /// Gives the hint, or notes that there was no room for it.
    fn deliver(&mut self, change: &Change) {
        if self.out.has_room() {
            self.out.push(Changed::one(change));
        } else {
            self.missed[change.kind as usize] = true;
        }
    }

    /// Says which kinds are to be looked at whole, once there is room.
    fn deliver_missed(&mut self) {
        for kind in ChangeKind::ALL {
            let missed = &mut self.missed[kind as usize];
            if *missed && self.out.has_room() {
                *missed = false;
                self.out.push(Changed::all(kind));
            }
        }
    }
}

impl Follows for Follower {
    fn out(&mut self) -> &mut Outgoing {
        &mut self.out
    }

    fn token(&self) -> OfTenant {
        (self.may.person().0, self.may.token_id())
    }

    fn ends_at(&self) -> Option<OffsetDateTime> {
        self.may.ends_at()
    }
}

pub(super) struct Changes {
    options: Options,
    store: Store,
    clock: Clock,
    own: ToChanges,
    open: Arc<AtomicUsize>,
    log: slog::Logger,
    followers: Vec<Follower>,
    /// What has changed since hints were delivered.
    runs: HashSet<Uuid>,
    approvals: Vec<Change>,
}

impl Changes {
    pub(super) fn new(
        options: &Options,
        store: &Store,
        clock: &Clock,
        (own, open): (ToChanges, Arc<AtomicUsize>),
        log: &slog::Logger,
    ) -> Self {
        Self {
            options: options.clone(),
            store: store.clone(),
            clock: clock.clone(),
            own,
            open,
            log: log.clone(),
            followers: Vec::new(),
            runs: HashSet::new(),
            approvals: Vec::new(),
        }
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let (mut swept_at, mut rechecked_at) = (Instant::now(), Instant::now());
        while self.wait(commands) {
            if let Err(error) = self.serve() {
                ChangeKind::ALL
                    .iter()
                    .for_each(|kind| self.own.missed(*kind));
                self.note(&error);
            }
            if swept_at.elapsed() >= SWEEP {
                swept_at = Instant::now();
                let now = self.clock.now();
                followers::sweep(&mut self.followers, now, self.options.comment_every);
            }
            if rechecked_at.elapsed() >= self.options.recheck_every {
                rechecked_at = Instant::now();
                if let Err(error) = self.recheck() {
                    self.note(&error);
                }
            }
            self.drop_over();
        }
        followers::stop(&mut self.followers);
    }

    /// Handles what has arrived, waiting a while for it. False: the thread is to end.
    fn wait(&mut self, commands: &Receiver<Command>) -> bool {
        let is_behind = self.followers.iter().any(|one| one.out.is_behind());
        let first = match commands.recv_timeout(if is_behind { RETRY } else { SWEEP }) {
            Ok(command) => command,
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        for command in std::iter::once(first).chain(commands.try_iter().take(256)) {
            match command {
                Command::Join(follower) => self.join(*follower),
                Command::Moved(run_ids) if self.runs.len() < WAITING => self.runs.extend(run_ids),
                Command::Moved(_) => self.own.missed(ChangeKind::Run),
                Command::Happened(changes) if self.approvals.len() < WAITING => {
                    self.approvals.extend(changes);
                }
                Command::Happened(_) => self.own.missed(ChangeKind::Approval),
                Command::Stop => return false,
            }
        }
        true
    }

    fn join(&mut self, follower: Follower) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.followers.push(follower);
        // Before it is asked to look at all: what is found from here on is passed on.
        self.count();
    }

    /// Delivers what is new to everybody.
    fn serve(&mut self) -> Result<()> {
        for kind in ChangeKind::ALL {
            if self.own.missed[kind as usize].swap(false, Ordering::Relaxed) {
                let of_kind = |one: &&mut Follower| one.may.kinds().contains(&kind);
                let followers = self.followers.iter_mut().filter(of_kind);
                followers.for_each(|one| one.missed[kind as usize] = true);
            }
        }
        let delivered = self.deliver();
        for follower in &mut self.followers {
            follower.deliver_missed();
            follower.out.flush();
        }
        delivered
    }

    fn deliver(&mut self) -> Result<()> {
        let runs: Vec<Uuid> = self.runs.drain().collect();
        let mut happened = std::mem::take(&mut self.approvals);
        if self.followers.is_empty() || (runs.is_empty() && happened.is_empty()) {
            return Ok(());
        }
        let store = self.store.clone();
        let mut session = store.session()?;
        let tenants: HashSet<Uuid> = self
            .followers
            .iter()
            .map(|one| one.may.person().0)
            .collect();
        let tenants: Vec<Uuid> = tenants.into_iter().collect();
        for some in runs.chunks(LOOKED_UP) {
            happened.extend(changes::runs(&mut session, &tenants, some)?);
        }
        happened.retain(|change| tenants.contains(&change.tenant_id));
        // An approval may have been opened and closed at once.
        let mut seen = HashSet::new();
        happened.retain(|change| seen.insert((change.tenant_id, change.kind, change.id)));
        for some in happened.chunks(LOOKED_UP) {
            self.deliver_some(&mut session, some)?;
        }
        Ok(())
    }

    fn deliver_some(&mut self, session: &mut impl Sql, happened: &[Change]) -> Result<()> {
        for some in self.followers.chunks_mut(LOOKED_UP) {
            let limited = some.iter().filter(|one| one.may.has_limits());
            let people: HashSet<OfTenant> = limited.map(|one| one.may.person()).collect();
            let people: Vec<OfTenant> = people.into_iter().collect();
            let rights = changes::rights(session, &people, happened)?;
            for follower in some {
                for change in happened {
                    if follower.may.sees(change, &rights) {
                        follower.deliver(change);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the streams whose tokens were revoked.
    fn recheck(&mut self) -> Result<()> {
        let moment = self.options.session_limits.at(self.clock.now());
        followers::end_revoked(&mut self.followers, &self.store, moment)
    }

    fn drop_over(&mut self) {
        let dropped = followers::drop_over(&mut self.followers, self.options.patience);
        if dropped > 0 {
            self.open.fetch_sub(dropped, Ordering::Relaxed);
            self.count();
        }
    }

    /// Says who follows what.
    fn count(&self) {
        for kind in ChangeKind::ALL {
            let followers = self.followers.iter();
            let of_kind = followers.filter(|one| one.may.kinds().contains(&kind));
            self.own.followed[kind as usize].store(of_kind.count(), Ordering::Relaxed);
        }
    }

    fn note(&self, error: &Error) {
        crate::warn_unless!(self.store.is_away(), self.log, "What changed could not be looked up; readers are told to look at all"; crate::log::ErrorValue(error));
    }
}
