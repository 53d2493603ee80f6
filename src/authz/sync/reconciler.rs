//! The thread `authz-sync`. It gives every tenant its store, compares all stores with PostgreSQL at
//! the start and after an outage of OpenFGA, applies changes that were left, and reports whether
//! all is well.
//!
//! Guarantees: if this thread found OpenFGA unreachable, no store answers before it was compared
//! again. If only a request found that, or PostgreSQL was unreachable, the stores are compared
//! while they answer, each at most once a minute. A fault of one tenant is logged, counted and
//! retried; it makes the server unready only if no tenant can be served.
//!
//! Not detected: an OpenFGA that was replaced by another state within one second, while nobody
//! asked it anything.
//!
//! It stops on request, between two calls of OpenFGA.

use super::error::{self, Fault};
use super::state::SyncState;
use super::{tenant, write};
use crate::authz::fga::Failure;
use crate::error::{Code, Error, Result};
use crate::store::authz;
use crate::threads;
use crossbeam_channel::{Receiver, bounded};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Between looks when all is well.
const PERIOD: Duration = Duration::from_secs(1);
/// After a failure. Until it is over no check is answered, although OpenFGA or PostgreSQL may be back.
const PAUSE: Duration = Duration::from_millis(250);
/// How long OpenFGA may take for its first answers after it was away, and how many such answers are tried for.
const PROBE: Duration = Duration::from_millis(250);
const PROBES: usize = 8;
/// The id of no store.
const NO_STORE: &str = "00000000000000000000000000";
/// Between looks at every tenant.
const EVERYONE: Duration = Duration::from_secs(60);
/// Between two comparisons of a store that a suspicion asks for.
const COMPARISONS: Duration = Duration::from_secs(60);
/// Objects that are read at once to be written.
const UNAPPLIED: u16 = 100;
/// Tenants read at once.
const PAGE: u16 = 500;

/// The running thread.
pub struct Reconciler {
    inner: Arc<SyncState>,
    ended: Receiver<()>,
}

struct Worker<S> {
    inner: Arc<SyncState>,
    say: S,
    /// When every tenant was last looked at.
    everyone_at: Option<Instant>,
    /// OpenFGA was away, and no round went well since.
    was_absent: bool,
    /// Stores that were not compared since then are to be.
    suspected_at: Option<Instant>,
    /// Whose store was looked at last.
    looked_at: Uuid,
    /// Why something could not be applied, of tenants whose store is in step.
    unapplied: BTreeMap<Uuid, String>,
}

/// Nothing else will do either at this time.
struct Outage {
    error: Error,
    /// What the authorization server, or Postgres, has may be another state when it is back.
    doubt: Doubt,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    None,
    Suspicion,
    Certainty,
}

impl Reconciler {
    pub(super) fn start(
        inner: Arc<SyncState>,
        say: impl Fn(Result<(), String>) + Send + 'static,
    ) -> Result<Self> {
        let (end, ended) = bounded(1);
        let mut worker = Worker {
            inner: Arc::clone(&inner),
            say,
            everyone_at: None,
            suspected_at: None,
            was_absent: false,
            looked_at: Uuid::nil(),
            unapplied: BTreeMap::new(),
        };
        (worker.say)(Err("The permissions are being compared.".to_owned()));
        let work = move || {
            worker.run();
            // Nobody listens any more where the deadline has passed.
            let _ = end.send(());
        };
        threads::start("authz-sync", None, work).map_err(Error::internal)?;
        Ok(Self { inner, ended })
    }

    /// Lets the thread end, without waiting for it. Who waits for a comparison is refused.
    pub fn tell_to_stop(&self) {
        self.inner.status.stop();
    }

    /// Ends the thread. False: it has not ended by then.
    pub fn stop(self, deadline: Instant) -> bool {
        self.tell_to_stop();
        self.ended.recv_deadline(deadline).is_ok()
    }
}

impl<S: Fn(Result<(), String>)> Worker<S> {
    fn run(&mut self) {
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
                    was_well = true;
                    let nobody = self.inner.status.nobody();
                    (self.say)(nobody.map_or(Ok(()), |why| {
                        Err(error::unavailable(why).message().to_owned())
                    }));
                    self.inner.status.rest(PERIOD, true);
                }
                Err(error) => {
                    if was_well {
                        crate::warn_unless!(self.inner.is_outage_known(), self.inner.log, "Permissions cannot be kept in step; trying again"; crate::log::ErrorValue(&error));
                    }
                    was_well &= self.inner.is_outage_known();
                    (self.say)(Err(error.message().to_owned()));
                    self.inner.status.rest(PAUSE, false);
                }
            }
        }
    }

    /// Whatever there is to do, until it is done or nothing will do.
    fn round(&mut self) -> Result<()> {
        let outcome = self.try_round();
        self.was_absent &= outcome.is_err();
        if let Err(outage) = &outcome {
            match outage.doubt {
                Doubt::None => {}
                Doubt::Suspicion => self.suspected_at = Some(Instant::now()),
                Doubt::Certainty => {
                    self.was_absent = true;
                    self.inner.status.doubt_everyone();
                    self.everyone_at = None;
                }
            }
        }
        let why = outcome.as_ref().err();
        let why = why.map(|outage| error::reason(&outage.error).to_owned());
        self.inner.status.set_outage(why);
        outcome.map_err(|outage| outage.error)
    }

    fn try_round(&mut self) -> Result<(), Outage> {
        if self.inner.status.take_suspicion() {
            self.suspected_at = Some(Instant::now());
        }
        if self.was_absent {
            self.await_answers()?;
        }
        self.look()?;
        let is_due = self.everyone_at.is_none_or(|at| at.elapsed() > EVERYONE);
        if is_due {
            self.bring_everyone()?;
            self.everyone_at = Some(Instant::now());
        }
        for tenant_id in self.inner.status.due() {
            self.bring(tenant_id)?;
        }
        self.compare_again()?;
        let fresh = self.session(|sql| authz::storeless(sql, i64::from(PAGE)))?;
        for tenant_id in fresh {
            self.bring_new(tenant_id)?;
        }
        self.bring_wanted()?;
        self.apply_left()
    }

    /// Waits until OpenFGA answers at once again, or for a while. Where its database has failed over, a question that comes
    /// early waits with a new connection that first tries the dead host; one that comes later gets a connection that stands.
    fn await_answers(&self) -> Result<(), Outage> {
        for _ in 0..PROBES {
            let hasty = self.inner.client.until(Instant::now() + PROBE);
            match hasty.store_exists(NO_STORE) {
                Ok(_) => break,
                Err(Failure::Silent(_)) => {}
                Err(failure) => return Err(Outage::of(Fault::Fga(failure))),
            }
        }
        Ok(())
    }

    /// Whether OpenFGA is there and has a store that it should have.
    fn look(&mut self) -> Result<(), Outage> {
        let Some((tenant_id, store_id)) = self.inner.status.ready_after(self.looked_at) else {
            return Ok(());
        };
        self.looked_at = tenant_id;
        match self.inner.client.store_exists(&store_id) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.inner.status.doubt(tenant_id, Instant::now());
                self.bring(tenant_id)
            }
            Err(failure) => Err(Outage::of(Fault::Fga(failure))),
        }
    }

    fn bring_everyone(&self) -> Result<(), Outage> {
        let mut after = Uuid::nil();
        loop {
            let page = self.session(|sql| authz::tenants(sql, after, i64::from(PAGE)))?;
            for tenant_id in &page {
                self.bring_wanted()?;
                self.bring_new(*tenant_id)?;
            }
            match page.last() {
                Some(last) if page.len() == usize::from(PAGE) => after = *last,
                _ => return Ok(()),
            }
        }
    }

    fn bring_wanted(&self) -> Result<(), Outage> {
        while let Some(tenant_id) = self.inner.status.wanted() {
            self.bring(tenant_id)?;
        }
        Ok(())
    }

    fn bring_new(&self, tenant_id: Uuid) -> Result<(), Outage> {
        match self.inner.status.is_new(tenant_id) {
            true => self.bring(tenant_id),
            false => Ok(()),
        }
    }

    /// Compares the stores that may have changed unseen, which go on to answer meanwhile.
    fn compare_again(&mut self) -> Result<(), Outage> {
        let Some(at) = self.suspected_at else {
            return Ok(());
        };
        let (left, due) = self.inner.status.compared_before(at, COMPARISONS);
        if left == 0 {
            self.suspected_at = None;
        }
        for tenant_id in due {
            self.bring_wanted()?;
            self.bring(tenant_id)?;
        }
        Ok(())
    }

    /// Brings one tenant's store in step, and tells those who wait for it.
    fn bring(&self, tenant_id: Uuid) -> Result<(), Outage> {
        let (inner, began) = (&self.inner, Instant::now());
        match tenant::reconcile(inner, tenant_id, &mut |_| {}, &mut |_| {}) {
            Ok(store_id) => {
                if inner.status.compared(tenant_id, store_id, began) {
                    slog::info!(inner.log, "The tenant's permissions are in step again"; "tenantId" => %tenant_id);
                }
            }
            Err(Fault::Gone) => inner.status.forget(tenant_id),
            Err(fault) if fault.is_outage() => return Err(Outage::of(fault)),
            Err(fault) => {
                let error = Error::from(fault);
                if inner.status.failed(tenant_id, error::reason(&error)) {
                    slog::warn!(inner.log, "The tenant's permissions cannot be brought in step; trying again";
                        "tenantId" => %tenant_id, crate::log::ErrorValue(&error));
                }
            }
        }
        Ok(())
    }

    /// Applies what requests could not.
    fn apply_left(&mut self) -> Result<(), Outage> {
        let (mut after, mut count) = ((Uuid::nil(), String::new()), 0);
        let mut unapplied = BTreeMap::new();
        loop {
            let left = self.session(|sql| authz::unapplied(sql, &after, i64::from(UNAPPLIED)))?;
            for (tenant_id, object) in &left {
                if let Some(why) = self.apply(*tenant_id, object)? {
                    count += 1;
                    unapplied.entry(*tenant_id).or_insert(why);
                }
            }
            match left.last() {
                Some(last) if left.len() == usize::from(UNAPPLIED) => after = last.clone(),
                _ => break,
            }
        }
        self.inner.status.set_unapplied(count);
        self.unapplied = unapplied;
        Ok(())
    }

    /// Applies one object. Some: why that failed.
    fn apply(&self, tenant_id: Uuid, object: &str) -> Result<Option<String>, Outage> {
        let inner = &self.inner;
        if !inner.status.has(tenant_id) {
            // It is applied when its store is compared.
            return Ok(None);
        }
        match write::apply(
            inner,
            tenant_id,
            object,
            false,
            write::background_deadline(),
        ) {
            Ok(_) => Ok(None),
            Err(fault) if fault.is_lost_store() => {
                inner.status.doubt(tenant_id, Instant::now());
                self.bring(tenant_id).map(|()| None)
            }
            Err(fault) if fault.is_outage() => Err(Outage::of(fault)),
            // Somebody else is writing it.
            Err(fault) if fault.is_contention() => Ok(None),
            Err(fault) => {
                let error = Error::from(fault);
                let why = error::reason(&error).to_owned();
                if self.unapplied.get(&tenant_id) != Some(&why) {
                    slog::warn!(inner.log, "A change of permissions cannot be applied; trying again";
                        "tenantId" => %tenant_id, "object" => object, crate::log::ErrorValue(&error));
                }
                Ok(Some(why))
            }
        }
    }

    fn session<T>(
        &self,
        work: impl FnOnce(&mut crate::store::Session) -> Result<T>,
    ) -> Result<T, Outage> {
        let session = self.inner.store.session();
        session
            .and_then(|mut session| work(&mut session))
            .map_err(|error| Outage::of(Fault::Own(error)))
    }
}

impl Outage {
    fn of(fault: Fault) -> Self {
        let doubt = match &fault {
            Fault::Fga(failure) if failure.is_absence() => Doubt::Certainty,
            Fault::Own(error) if error.code() == Code::DatabaseUnavailable => Doubt::Suspicion,
            _ => Doubt::None,
        };
        Self {
            error: Error::from(fault),
            doubt,
        }
    }
}
