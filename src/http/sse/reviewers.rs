//! The thread of reviewers' streams: it sends each reviewer the changes of the approvals that the reviewer may see.
//!
//! Guarantees: events come in order, each once. A reviewer who resumes with the last id misses none. The reviewer's rights are
//! read right before each delivery: after a role is lost, its events stop; after the last role is lost, the stream ends with
//! that reason. A slow reader costs only its own bounded buffer.
//!
//! The log of approvals is the truth, and is read by position (`wake-ups-are-hints`). So it does not matter on which replica
//! something happens. Changes are passed on to the thread of hints, too (`changes`). While nobody follows, nothing is read.

use super::approval_events;
use super::changes::ToChanges;
use super::followers::{self, Follows};
use super::format::End;
use super::options::Options;
use super::outgoing::Outgoing;
use super::settled::{Gap, Settled};
use crate::authz::{Admission, ReviewerFollower};
use crate::error::{Error, Result};
use crate::http::door::StreamWriter;
use crate::ids::Clock;
use crate::store::approvals::log::{self, Logged};
use crate::store::changes::{Change, ChangeKind};
use crate::store::reviewers::{OfTenant, roles_of_many};
use crate::store::{Sql, Store};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

/// Rows read with one query.
const PAGE: i64 = 500;

/// People looked up with one query.
const PEOPLE: usize = 1000;

/// How soon a reader who is behind is served again.
const RETRY: Duration = Duration::from_millis(25);

/// How often every reader is looked at.
const SWEEP: Duration = Duration::from_millis(500);

/// Pause after a fault of the database.
const PAUSE: Duration = Duration::from_millis(250);

pub(super) enum Command {
    /// A reader comes.
    Join(Box<Follower>),
    /// It is recorded that the holder of this token is no reviewer any more.
    Refused(Uuid),
    /// The thread is to end.
    Stop,
}

/// One reader.
pub(super) struct Follower {
    out: Outgoing,
    may: ReviewerFollower,
    /// Up to where events were delivered. None: it begins where the thread is.
    position: Option<i64>,
}

impl Follower {
    pub(super) fn new(
        writer: StreamWriter,
        may: ReviewerFollower,
        after: Option<i64>,
        buffer_bytes: usize,
    ) -> Self {
        Self {
            out: Outgoing::new(writer, buffer_bytes),
            may,
            position: after,
        }
    }

    /// It lacks events up to here, and can take them.
    fn lags(&self, to: i64) -> bool {
        self.position.is_some_and(|position| position < to)
            && !self.out.is_behind()
            && !self.out.is_ending()
    }

    /// Delivers what follows its position, as far as there is room. `to`: where all of that ends, if these rows are all.
    fn deliver(&mut self, rows: &[Logged], to: Option<i64>) {
        let mut at = self.position.unwrap_or(0);
        for row in rows {
            if row.position <= at {
                continue;
            }
            if !self.out.has_room() {
                self.position = Some(at);
                return;
            }
            if self
                .may
                .sees(row.tenant_id, row.project_id, &row.required_role)
            {
                self.out.push(approval_events::event(row));
            }
            at = row.position;
        }
        self.position = Some(at.max(to.unwrap_or(at)));
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

/// Up to where the log is known.
enum Known {
    /// Nobody follows.
    Nothing,
    /// What is under way since this thread began to look is waited for.
    Beginning(Gap),
    /// Everything up to a position.
    To(Settled),
}

pub(super) struct Reviewers {
    options: Options,
    store: Store,
    clock: Clock,
    /// None while authorization is off.
    admission: Option<Arc<Admission>>,
    open: Arc<AtomicUsize>,
    /// Its own commands, for what it has others do.
    own: Sender<Command>,
    changes: ToChanges,
    log: slog::Logger,
    followers: Vec<Follower>,
    known: Known,
    failed_at: Option<Instant>,
}

/// What a thread of reviewers' streams needs.
pub(super) struct Parts<'a> {
    pub(super) options: &'a Options,
    pub(super) store: &'a Store,
    pub(super) clock: &'a Clock,
    pub(super) admission: Option<Arc<Admission>>,
    pub(super) open: Arc<AtomicUsize>,
    pub(super) own: Sender<Command>,
    pub(super) changes: ToChanges,
    pub(super) log: &'a slog::Logger,
}

impl Reviewers {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        Self {
            options: parts.options.clone(),
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            admission: parts.admission,
            open: parts.open,
            own: parts.own,
            changes: parts.changes,
            log: parts.log.clone(),
            followers: Vec::new(),
            known: Known::Nothing,
            failed_at: None,
        }
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let (mut swept_at, mut rechecked_at) = (Instant::now(), Instant::now());
        while self.wait(commands) {
            if !self.is_followed() {
                self.known = Known::Nothing;
                continue;
            }
            if let Err(error) = self.serve() {
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
            let dropped = followers::drop_over(&mut self.followers, self.options.patience);
            self.open.fetch_sub(dropped, Ordering::Relaxed);
        }
        followers::stop(&mut self.followers);
    }

    /// Somebody gets what happens to approvals, here or by hints.
    fn is_followed(&self) -> bool {
        !self.followers.is_empty() || self.changes.wants(ChangeKind::Approval)
    }

    /// Handles what has arrived, waiting a while for it. False: the thread is to end.
    fn wait(&mut self, commands: &Receiver<Command>) -> bool {
        let settled = match &self.known {
            Known::To(settled) => settled.position,
            _ => 0,
        };
        let mut some = self.followers.iter();
        let wait = if !self.is_followed() {
            SWEEP
        } else if some.any(|follower| follower.out.is_behind() || follower.lags(settled)) {
            RETRY
        } else {
            self.options.tail_every
        };
        let first = match commands.recv_timeout(wait) {
            Ok(command) => command,
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        for command in std::iter::once(first).chain(commands.try_iter().take(256)) {
            match command {
                Command::Join(follower) => {
                    self.open.fetch_add(1, Ordering::Relaxed);
                    self.followers.push(*follower);
                }
                Command::Refused(token_id) => self.refused(token_id),
                Command::Stop => return false,
            }
        }
        true
    }

    /// Reads on, and delivers what is new to everybody.
    fn serve(&mut self) -> Result<()> {
        if self.failed_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(());
        }
        let store = self.store.clone();
        let mut session = store.session()?;
        let Some((from, rows, to)) = self.look(&mut session)? else {
            return Ok(());
        };
        self.pass_on(&rows);
        for follower in &mut self.followers {
            if follower.position.is_none() {
                follower.out.push(approval_events::start(to));
                follower.position = Some(to);
            }
        }
        let concerned = |follower: &Follower| {
            let (tenant_id, _) = follower.may.person();
            follower.lags(from) || rows.iter().any(|row| row.tenant_id == tenant_id)
        };
        self.take_roles(&mut session, concerned)?;
        for follower in &mut self.followers {
            if !follower.lags(to) {
                continue;
            }
            if follower.lags(from) {
                let (tenant_id, _) = follower.may.person();
                let between = (follower.position.unwrap_or(to), to);
                let page = log::of_tenant(&mut session, tenant_id, between, PAGE)?;
                let is_all = i64::try_from(page.len()).is_ok_and(|found| found < PAGE);
                follower.deliver(&page, is_all.then_some(to));
            } else {
                follower.deliver(&rows, Some(to));
            }
            follower.out.flush();
        }
        Ok(())
    }

    /// Reads what has happened since the last look: from where, what, and up to where it is known. None: not yet known.
    fn look(&mut self, session: &mut impl Sql) -> Result<Option<(i64, Vec<Logged>, i64)>> {
        let longest = self.options.longest_transaction;
        if matches!(self.known, Known::Nothing) {
            let to = log::newest(session)?.position;
            self.known = Known::Beginning(gap(session, to, longest)?);
        }
        if let Known::Beginning(gap) = &self.known
            && gap.is_over(log::newest(session)?.oldest_transaction)
        {
            self.known = Known::To(Settled::at(gap.to));
            // What happened meanwhile is not looked at.
            self.changes.missed(ChangeKind::Approval);
        }
        let Known::To(settled) = &mut self.known else {
            return Ok(None);
        };
        let from = settled.position;
        let mut rows = log::since(session, from, PAGE)?;
        let passed = settled.pass(&rows);
        if settled.misses(&rows, passed) {
            let to = rows.last().map_or(from, |last| last.position);
            settled.wait_for(gap(session, to, longest)?);
        }
        rows.truncate(passed);
        Ok(Some((from, rows, settled.position)))
    }

    /// What is new, for those who get hints.
    fn pass_on(&self, rows: &[Logged]) {
        if rows.is_empty() {
            return;
        }
        let changes = rows.iter().map(|row| Change {
            tenant_id: row.tenant_id,
            kind: ChangeKind::Approval,
            id: row.approval_id,
            project_id: row.project_id,
            required_role: Some(row.required_role.clone()),
        });
        self.changes.happened(changes.collect());
    }

    /// Reads the roles of some of the readers.
    fn take_roles(&mut self, session: &mut impl Sql, of: impl Fn(&Follower) -> bool) -> Result<()> {
        if self.admission.is_none() {
            return Ok(());
        }
        let mut some: Vec<&mut Follower> =
            self.followers.iter_mut().filter(|one| of(one)).collect();
        for some in some.chunks_mut(PEOPLE) {
            let people: HashSet<_> = some.iter().map(|one| one.may.person()).collect();
            let people: Vec<_> = people.into_iter().collect();
            let roles = roles_of_many(session, &people)?;
            for follower in some {
                follower.may.has_now(roles.get(&follower.may.person()));
            }
        }
        Ok(())
    }

    /// Ends the streams whose tokens were revoked, and has it recorded whose readers are no reviewers any more.
    fn recheck(&mut self) -> Result<()> {
        let store = self.store.clone();
        let moment = self.options.session_limits.at(self.clock.now());
        followers::end_revoked(&mut self.followers, &store, moment)?;
        self.take_roles(&mut store.session()?, |follower| !follower.out.is_ending())?;
        let Some(admission) = &self.admission else {
            return Ok(());
        };
        let left = self.followers.iter();
        for follower in left.filter(|one| !one.may.is_reviewer() && !one.out.is_ending()) {
            let (own, token_id) = (self.own.clone(), follower.may.token_id());
            follower
                .may
                .refuse(&self.store, admission, move |recorded| {
                    // What cannot be recorded or said now is tried again with the next round. Nothing is delivered meanwhile.
                    let _ = recorded.map(|()| own.try_send(Command::Refused(token_id)));
                });
        }
        Ok(())
    }

    fn refused(&mut self, token_id: Uuid) {
        let of_token = |one: &&mut Follower| one.may.token_id() == token_id;
        for follower in self.followers.iter_mut().filter(of_token) {
            if !follower.may.is_reviewer() {
                follower.out.end(End::Access);
            }
        }
    }

    /// The database failed: look again in a while, and begin anew then.
    fn note(&mut self, error: &Error) {
        self.failed_at = Some(Instant::now());
        self.known = Known::Nothing;
        crate::warn_unless!(self.store.is_away(), self.log, "What happened to approvals could not be read; trying again"; crate::log::ErrorValue(error));
    }
}

/// What is missing up to a position, from now on, for the time of the longest transaction.
fn gap(session: &mut impl Sql, to: i64, longest: Duration) -> Result<Gap> {
    Ok(Gap {
        to,
        transaction: log::transaction(session)?,
        until: Instant::now() + longest,
    })
}
