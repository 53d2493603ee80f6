//! The thread `authz-keeper`: gives every tenant its store, compares all of them with Postgres at
//! start and after an outage, tells what was left untold, and says whether all is well.
//!
//! It ends when it is told to, between two calls of OpenFGA.

use super::permissions::Inner;
use super::sync::{self, Fault};
use crate::error::{Error, Result};
use crate::store::authz;
use crossbeam_channel::{Receiver, bounded};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Between looks when all is well.
const PERIOD: Duration = Duration::from_secs(1);
/// The first wait after a failure, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Between looks at every tenant.
const EVERYONE: Duration = Duration::from_secs(60);
/// Tenants read at once.
const PAGE: u16 = 500;

/// The running thread.
pub struct Keeper {
    inner: Arc<Inner>,
    ended: Receiver<()>,
}

struct Worker<S> {
    inner: Arc<Inner>,
    say: S,
    /// When every tenant was last looked at.
    everyone_at: Option<Instant>,
    /// Those that are ready are to be compared once more.
    again: bool,
    /// Whose store was looked at last.
    looked_at: Uuid,
}

impl Keeper {
    pub(super) fn start(
        inner: Arc<Inner>,
        say: impl Fn(Result<(), String>) + Send + 'static,
    ) -> Result<Self> {
        let (end, ended) = bounded(1);
        let mut worker = Worker {
            inner: Arc::clone(&inner),
            say,
            everyone_at: None,
            again: false,
            looked_at: Uuid::nil(),
        };
        (worker.say)(Err("The permissions are being compared.".to_owned()));
        std::thread::Builder::new()
            .name("authz-keeper".to_owned())
            .spawn(move || {
                worker.run();
                // Nobody listens any more where the deadline has passed.
                let _ = end.send(());
            })
            .map_err(Error::internal)?;
        Ok(Self { inner, ended })
    }

    /// Lets the thread end, without waiting for it. Who waits for a comparison is refused.
    pub fn tell_to_stop(&self) {
        self.inner.board.stop();
    }

    /// Ends the thread. False: it has not ended by then.
    pub fn stop(self, deadline: Instant) -> bool {
        self.tell_to_stop();
        self.ended.recv_deadline(deadline).is_ok()
    }
}

impl<S: Fn(Result<(), String>)> Worker<S> {
    fn run(&mut self) {
        let mut pause = FIRST_PAUSE;
        let mut was_well = true;
        while !self.inner.is_stopped() {
            let outcome = self.round();
            if self.inner.is_stopped() {
                return;
            }
            match outcome {
                Ok(()) => {
                    if !was_well {
                        slog::info!(
                            self.inner.log,
                            "The authorization server's answers are as they should be again"
                        );
                    }
                    (was_well, pause) = (true, FIRST_PAUSE);
                    (self.say)(Ok(()));
                    self.inner.board.rest(PERIOD, true);
                }
                Err(error) => {
                    if was_well {
                        slog::warn!(self.inner.log, "Permissions cannot be kept in step; trying on"; crate::log::ErrorValue(&error));
                    }
                    was_well = false;
                    (self.say)(Err(error.message().to_owned()));
                    self.inner.board.rest(pause, false);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Whatever there is to do. An error is the first one that was met; an outage ends the round.
    fn round(&mut self) -> Result<()> {
        let outcome = self.try_round();
        let outage = match &outcome {
            Err(fault) if fault.1 => {
                // What it holds may be another state when it is back.
                self.again = true;
                Some(sync::reason(&fault.0).to_owned())
            }
            _ => None,
        };
        self.inner.board.set_outage(outage);
        outcome.map_err(|(error, _)| error)
    }

    fn try_round(&mut self) -> Result<(), (Error, bool)> {
        self.look()?;
        if self.inner.board.take_suspicion() {
            self.again = true;
        }
        let mut first = Ok(());
        let is_due = self.everyone_at.is_none_or(|at| at.elapsed() > EVERYONE);
        if is_due || self.again {
            keep_first(&mut first, self.bring_everyone())?;
            self.everyone_at = Some(Instant::now());
            self.again = false;
        } else {
            for tenant_id in self.inner.board.failed() {
                keep_first(&mut first, self.bring(tenant_id))?;
            }
        }
        let fresh = self.session(|sql| authz::storeless(sql, i64::from(PAGE)))?;
        for tenant_id in fresh {
            keep_first(&mut first, self.bring(tenant_id))?;
        }
        keep_first(&mut first, self.bring_wanted())?;
        keep_first(&mut first, self.apply_left())?;
        first
    }

    /// Whether OpenFGA is there and has a store that it should have.
    fn look(&mut self) -> Result<(), (Error, bool)> {
        let Some((tenant_id, store_id)) = self.inner.board.ready_after(self.looked_at) else {
            return Ok(());
        };
        self.looked_at = tenant_id;
        match self.inner.client.store_exists(&store_id) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.inner.board.doubt(tenant_id);
                self.bring(tenant_id)
            }
            Err(failure) => Err(told(Fault::Fga(failure))),
        }
    }

    fn bring_everyone(&mut self) -> Result<(), (Error, bool)> {
        let (mut after, mut first) = (Uuid::nil(), Ok(()));
        loop {
            let page = self.session(|sql| authz::tenants(sql, after, i64::from(PAGE)))?;
            for tenant_id in &page {
                keep_first(&mut first, self.bring_wanted())?;
                if self.again || !self.inner.board.has(*tenant_id) {
                    keep_first(&mut first, self.bring(*tenant_id))?;
                }
            }
            match page.last() {
                Some(last) if page.len() == usize::from(PAGE) => after = *last,
                _ => return first,
            }
        }
    }

    fn bring_wanted(&self) -> Result<(), (Error, bool)> {
        let mut first = Ok(());
        while let Some(tenant_id) = self.inner.board.wanted() {
            keep_first(&mut first, self.bring(tenant_id))?;
        }
        first
    }

    /// Brings one tenant's store in step, and tells those who wait for it.
    fn bring(&self, tenant_id: Uuid) -> Result<(), (Error, bool)> {
        let board = &self.inner.board;
        match sync::reconcile(&self.inner, tenant_id, &mut |_| {}, &mut |_| {}) {
            Ok(store_id) => {
                board.say(tenant_id, Ok(store_id));
                Ok(())
            }
            Err(Fault::Gone) => {
                board.forget(tenant_id);
                Ok(())
            }
            Err(fault) => {
                let (error, is_outage) = told(fault);
                board.say(tenant_id, Err(sync::reason(&error).to_owned()));
                Err((error, is_outage))
            }
        }
    }

    /// Tells what requests could not tell.
    fn apply_left(&self) -> Result<(), (Error, bool)> {
        let (mut after, mut first) = ((Uuid::nil(), String::new()), Ok(()));
        loop {
            let left = self.session(|sql| authz::unapplied(sql, &after, i64::from(sync::PAGE)))?;
            for (tenant_id, object) in &left {
                let deadline = self.inner.patience();
                let applied = sync::apply(&self.inner, *tenant_id, object, false, deadline);
                if matches!(&applied, Err(fault) if fault.is_lost_store()) {
                    self.inner.board.doubt(*tenant_id);
                    keep_first(&mut first, self.bring(*tenant_id))?;
                } else {
                    keep_first(&mut first, applied.map(|_| ()).map_err(told))?;
                }
            }
            match left.last() {
                Some(last) if left.len() == usize::from(sync::PAGE) => after = last.clone(),
                _ => return first,
            }
        }
    }

    fn session<T>(
        &self,
        work: impl FnOnce(&mut crate::store::Session) -> Result<T>,
    ) -> Result<T, (Error, bool)> {
        let session = self.inner.store.session();
        session
            .and_then(|mut session| work(&mut session))
            .map_err(|error| (error, true))
    }
}

/// The error, and whether nothing else will do either.
fn told(fault: Fault) -> (Error, bool) {
    let is_outage = fault.is_outage();
    (Error::from(fault), is_outage)
}

/// Keeps the first failure that concerns one tenant, and passes an outage on at once.
fn keep_first(
    first: &mut Result<(), (Error, bool)>,
    outcome: Result<(), (Error, bool)>,
) -> Result<(), (Error, bool)> {
    match outcome {
        Err((error, true)) => Err((error, true)),
        Err(failed) if first.is_ok() => {
            *first = Err(failed);
            Ok(())
        }
        _ => Ok(()),
    }
}
