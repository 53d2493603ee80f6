//! The way from an open door to a ready server: the database, its schema, the seeded tenant, the
//! threads that work on runs and webhooks. Then it watches the database.
//!
//! A database that refuses for good (too old, too new, missing privileges) ends the server with the
//! reason. One that is unreachable is waited for (`door-before-database`).

use super::options::{Replaced, Seeds};
use super::providers;
use super::stop::{Work, lock};
use super::watchdog::Watchdog;
use crate::authn::bearer;
use crate::authz::desired_tuples::{self, Object};
use crate::authz::permissions;
use crate::error::{Code, Error, Result};
use crate::http::context::Shared;
use crate::http::probes::Probes;
use crate::ids::Clock;
use crate::log::Subsystem;
use crate::store::tenants::Raised;
use crate::store::tokens::Ended;
use crate::store::{self, Store, authz, migrations, sessions, tenants, tokens, users};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// Pause between tries to reach an unreachable database.
const PAUSE: Duration = Duration::from_millis(200);

/// How often a ready server looks whether its database still answers, for secrets to wipe, for uses of tokens to write, and at its license.
const CHECK: Duration = Duration::from_secs(2);

/// How often a running server repeats the warning about its license.
const LICENSE_WARNING: time::Duration = time::Duration::DAY;

/// Connections that keep leases alone. A process whose requests take the whole pool works, and must not lose its runs.
const LEASE_CONNECTIONS: u32 = 2;

/// What stands between an open door and a ready server.
pub(super) struct Starter {
    pub(super) shared: Arc<Shared>,
    pub(super) seeds: Seeds,
    pub(super) run_lease: Duration,
    pub(super) work: Arc<Mutex<Option<Work>>>,
    pub(super) probes: Arc<Probes>,
    pub(super) watchdog: Arc<Watchdog>,
    /// Disconnected when the server stops.
    pub(super) stopped: Receiver<()>,
    pub(super) log: slog::Logger,
}

impl Starter {
    pub(super) fn run(self, outcome: &Sender<Result<()>>) {
        loop {
            match self.prepare() {
                Ok(()) => {
                    self.probes.set("server", Ok(()));
                    slog::info!(self.log, "Ready"; "tenantId" => %self.seeds.tenant_id);
                    let _ = outcome.send(Ok(()));
                    return self.keep_watch();
                }
                Err(error)
                    if error.code() == Code::DatabaseUnavailable && !error.is_lack_of_right() =>
                {
                    self.probes.set("server", Err(error.message().to_owned()));
                    self.shared.store.note_away(&error);
                }
                Err(error) => {
                    let _ = outcome.send(Err(error));
                    return;
                }
            }
            if self.is_stopped_within(PAUSE) {
                return;
            }
        }
    }

    fn is_stopped_within(&self, time: Duration) -> bool {
        self.stopped.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }

    /// Keeps the probe's word about the database true, and opened secrets in memory no longer than
    /// they may be, whether or not requests come. Writes when tokens were used, and warns of the license's end.
    fn keep_watch(&self) {
        self.watchdog.pool_answered();
        // The settings gave the first warning at the start.
        let mut license_warned_at = self.shared.clock.now();
        while !self.is_stopped_within(CHECK) {
            self.shared.secrets.sweep();
            self.warn_of_license(&mut license_warned_at);
            let state = self.shared.store.check(CHECK);
            if state.is_ok() {
                self.watchdog.pool_answered();
                self.write_uses();
            }
            self.probes.set(
                "database",
                state.map_err(|error| error.message().to_owned()),
            );
        }
    }

    /// Repeats the license's warning once a day: a server may run for longer than the 30 days before the end.
    fn warn_of_license(&self, warned_at: &mut OffsetDateTime) {
        let now = self.shared.clock.now();
        let license = self.shared.license.as_ref();
        let warning = license.and_then(|license| license.warning(now));
        if let Some(warning) = warning.filter(|_| now - *warned_at >= LICENSE_WARNING) {
            slog::warn!(self.log, "{}", warning);
            *warned_at = now;
        }
    }

    fn write_uses(&self) {
        if let Err(error) = self.shared.authn.write_uses() {
            crate::warn_unless!(self.shared.store.is_away(), self.log, "Uses of tokens could not be written; trying again"; crate::log::ErrorValue(&error));
        }
    }

    /// Has what this server's settings allow less count for the sessions that are open.
    fn shorten_sessions(&self) -> Result<()> {
        let shared = &self.shared;
        let allowed = shared.authn.sign_in().moment(shared.clock.now());
        while sessions::shorten(&mut shared.store.session()?, None, allowed)? {
            if self.is_stopped_within(Duration::ZERO) {
                break;
            }
        }
        Ok(())
    }

    fn prepare(&self) -> Result<()> {
        let is_stopped = || self.is_stopped_within(Duration::ZERO);
        let (store, clock) = (&self.shared.store, &self.shared.clock);
        migrations::migrate_unless(store.manager(), &self.log, is_stopped)?;
        if !seed(store, clock, &self.seeds)? {
            slog::warn!(self.log, "The seed token was revoked and stays so. Set another SVC_SEED_TOKEN, or none for a fresh one at each start"; "tenantId" => %self.seeds.tenant_id);
        }
        if self.shared.permissions.is_some() {
            raise_seed_user(store, &self.seeds)?;
        }
        self.give_seed_email()?;
        providers::follow(&self.shared, &self.log)?;
        self.shorten_sessions()?;
        // New runs are written to them. What else the tables need has time until later.
        let today = clock.now().date();
        store::runs::attach_partitions(&mut store.session()?, today)?;
        self.shared.audit.keep_up();
        let (runtime, webhooks) = (&self.shared.runtime, &self.shared.webhooks);
        webhooks.prepare()?;
        let builder = jobs::Runner::builder(store.for_jobs())
            .leases_through(store.beside(LEASE_CONNECTIONS).for_jobs())
            .log(crate::log::subsystem(&self.log, Subsystem::Jobs))
            .quiet_while({
                let store = store.clone();
                move || store.is_away()
            })
            .on_lost_thread(crate::threads::lose)
            .worker(worker())
            .lease(self.run_lease);
        let builder = webhooks.serve(runtime.serve(builder));
        let runner = builder.start().map_err(store::queue_error)?;
        runtime.woken_by(runner.handle());
        webhooks.woken_by(runner.handle());
        let run_threads = runtime.start_threads()?;
        let webhooks = webhooks.start_maintenance()?;
        let permissions = self.keep_permissions()?;
        *lock(&self.work) = Some(Work {
            runner,
            run_threads,
            webhooks,
            permissions,
        });
        if is_stopped() {
            // The stop may have looked before there was anything to stop.
            if let Some(work) = lock(&self.work).take() {
                work.stop(Instant::now());
            }
        }
        Ok(())
    }
}

/// This process among those that share the database, whose hosts may be containers: their processes have the same numbers.
fn worker() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("process {} of {host}", std::process::id())
}

impl Starter {
    fn give_seed_email(&self) -> Result<()> {
        let Seeds {
            tenant_id, user_id, ..
        } = self.seeds;
        let Some(email) = &self.seeds.email else {
            return Ok(());
        };
        let store = &self.shared.store;
        if !store.transact(|tx| users::give_email(tx, tenant_id, user_id, email))? {
            slog::warn!(self.log, "SVC_SEED_USER_EMAIL is somebody else's in this tenant, and the seed user has none. Name another email, or make that person an admin"; "tenantId" => %tenant_id);
        }
        Ok(())
    }

    /// Begins to keep permissions in step; readiness waits for the first comparison of all.
    fn keep_permissions(&self) -> Result<Option<permissions::Reconciler>> {
        let permissions = self.shared.permissions.as_ref();
        let started = permissions.map(|permissions| {
            let probes = Arc::clone(&self.probes);
            permissions.start_reconciler(move |state| probes.set("authz", state))
        });
        started.transpose()
    }
}

/// Makes the tenant, its first user and its token, or finds them again. False: the token was
/// revoked, and stays so.
///
/// # Errors
/// `database-unavailable`; `conflict` when the token is another's.
pub fn seed(store: &Store, clock: &Clock, seeds: &Seeds) -> Result<bool> {
    let now = clock.now();
    let token = tokens::New {
        token_id: clock.new_id(),
        name: "seed token",
        digest: bearer::digest(seeds.token.expose()),
        last_four: &bearer::last_four(&seeds.token),
        expires_at: None,
    };
    let before = match &seeds.replaces {
        Replaced::All => None,
        Replaced::Only(before) => Some(before.as_ref().map(|one| bearer::digest(one.expose()))),
    };
    let ended = before
        .as_ref()
        .map_or(Ended::All, |one| Ended::Only(one.as_ref()));
    store.transact(|tx| {
        tenants::ensure(tx, seeds.tenant_id, "tenant", now)?;
        if tenants::ensure_user(tx, seeds.tenant_id, seeds.user_id, "seed user", now)? {
            desired_tuples::mark(tx, seeds.tenant_id, &[Object::Tenant(seeds.tenant_id)])?;
        }
        tokens::replace_seed(tx, seeds.tenant_id, seeds.user_id, &token, ended, now)
    })
}

/// Makes the seed user an admin of the tenant at the first start with authorization (section 1.2): the tenant has no
/// store yet. Later the tenant's admins decide who is one.
///
/// # Errors
/// `database-unavailable`; `conflict` where this user cannot be one.
fn raise_seed_user(store: &Store, seeds: &Seeds) -> Result<()> {
    let (tenant_id, user_id) = (seeds.tenant_id, seeds.user_id);
    let refused = |why: &str| {
        Error::new(
            Code::Conflict,
            format!(
                "SVC_SEED_USER_ID: the seed user {user_id} {why}, and the first start with authorization makes the seed user the tenant's admin. Set SVC_SEED_USER_ID to an active person of the tenant, or to a new id."
            ),
        )
    };
    store.transact(|tx| {
        // Another replica may be making the store, or be here.
        tenants::lock(tx, tenant_id)?;
        if authz::tenant_store(tx, tenant_id)?.is_some() {
            return Ok(());
        }
        match tenants::raise_user(tx, tenant_id, user_id)? {
            Raised::Raised => desired_tuples::mark(tx, tenant_id, &[Object::Tenant(tenant_id)]),
            Raised::Admin => Ok(()),
            Raised::Deactivated => Err(refused("is deactivated")),
            Raised::ServiceAccount => Err(refused("is a service account")),
        }
    })
}
