//! Checks permissions in OpenFGA, and applies changes of permissions there.
//!
//! Guarantees: no answer comes from a state older than PostgreSQL's (`postgres-is-the-truth`). A
//! check first applies the changes that it depends on. It uses the store and the model that
//! PostgreSQL names, and only after this process has compared that store with PostgreSQL. Nobody is
//! denied by a store that no longer exists. At most two applies run at once. Every wait, every
//! check and every apply has a deadline.
//!
//! Not here: the error for a refusal, and the record of decisions (`check`).

use super::desired_tuples::Object;
pub(in crate::authz) use super::error::silent;
use super::error::{self, Fault};
pub use super::reconciler::Reconciler;
use super::state::SyncState;
use super::status::Status;
pub use super::status::TenantCounts;
use super::write;
use crate::authz::fga::{self, Failure, Pinned, Question, Tuple};
pub use crate::authz::model::Model;
use crate::concurrency_limit::Limiter;
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::store::Store;
use crate::store::authz::{self, InSync};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Applies at once: they hold a connection to the database while they talk to OpenFGA.
const APPLIES: usize = 2;

/// Applying many objects may take so many times what one may.
const APPLYING: u32 = 3;

/// How OpenFGA is reached, and the model to keep there.
#[derive(Debug, Clone)]
pub struct Options {
    /// The base URL.
    pub url: String,
    /// For one call of OpenFGA and the wait before it; for one question with all that it takes; and
    /// for the change of one object, if a request waits for it.
    pub timeout: Duration,
    /// Connections at most.
    pub connections: usize,
    /// The model to keep: [`Model::own`] but in tests.
    pub model: Model,
}

impl Options {
    /// As the settings say, if there is an authorization server.
    pub fn from_settings(settings: &Settings) -> Option<Self> {
        Some(Self {
            url: settings.authorization_url.clone()?,
            timeout: settings.values.duration("SVC_AUTHZ_TIMEOUT_MS"),
            connections: settings.values.number("SVC_AUTHZ_CONNECTIONS"),
            model: Model::own(),
        })
    }
}

/// A check: may the user do this to the object?
#[derive(Debug)]
pub struct Asked {
    /// The user, a person or a service account.
    pub user: Uuid,
    /// The relation, such as `can_read`.
    pub relation: &'static str,
    /// The object, `<type>:<id>`.
    pub object: String,
    /// A tuple that holds for this question: the project that the object lies in.
    pub contextual: Option<Tuple>,
    /// The project that the answer depends on.
    pub project_id: Option<Uuid>,
    /// The tenant's state as it was read with the object, after the request began.
    pub in_sync: Option<InSync>,
}

/// What OpenFGA said, and by which model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes or no.
    pub allowed: bool,
    /// The tenant's store.
    pub store_id: String,
    /// The model in it.
    pub model_id: String,
}

/// The permissions of every tenant. Cheap to clone.
#[derive(Clone)]
pub struct Permissions(Arc<SyncState>);

impl Permissions {
    /// Permissions over this OpenFGA; nothing is connected yet.
    ///
    /// # Errors
    /// The URL is not one.
    pub fn new(
        options: &Options,
        store: Store,
        clock: Clock,
        outbound: &Outbound,
        seed: Option<(Uuid, Uuid)>,
        log: slog::Logger,
    ) -> Result<Self> {
        let client = fga::Client::new(
            outbound,
            &fga::Options {
                url: options.url.clone(),
                timeout: options.timeout,
                connections: options.connections,
            },
        )?;
        Ok(Self(Arc::new(SyncState {
            store,
            clock,
            client,
            timeout: options.timeout,
            model: options.model.clone(),
            seed,
            applies: Limiter::new(APPLIES),
            status: Status::default(),
            log,
        })))
    }

    pub(super) fn inner(&self) -> &Arc<SyncState> {
        &self.0
    }

    /// Starts the thread that makes stores, compares them and applies what was left. `say`
    /// hears of every change between well and ill.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start_reconciler(
        &self,
        say: impl Fn(Result<(), String>) + Send + 'static,
    ) -> Result<Reconciler> {
        Reconciler::start(Arc::clone(&self.0), say)
    }

    /// How many tenants stand how.
    pub fn tenant_counts(&self) -> TenantCounts {
        self.0.status.tenant_counts()
    }

    /// How long the authorization server has left every call of this process without an answer.
    pub fn silent_for(&self) -> Duration {
        self.0.client.silent_for()
    }

    /// Asks whether a user has a relation to an object of the tenant. All of it ends by one
    /// deadline, but for the waits of the database's pool.
    ///
    /// # Errors
    /// `authorization-unavailable`, with a message that begins with `FGA Error:`;
    /// `database-unavailable`; `overloaded`.
    pub fn ask(&self, tenant_id: Uuid, asked: &Asked) -> Result<Answer> {
        let began = Instant::now();
        let deadline = began + self.0.timeout;
        let in_sync = asked.in_sync.as_ref();
        match self.ask_once(tenant_id, asked, in_sync, deadline) {
            Err(fault) if fault.is_lost_store() => {
                self.0.status.doubt(tenant_id, began);
                let again = self.ask_once(tenant_id, asked, None, deadline);
                again.map_err(Error::from)
            }
            outcome => outcome.map_err(Error::from),
        }
    }

    fn ask_once(
        &self,
        tenant_id: Uuid,
        asked: &Asked,
        in_sync: Option<&InSync>,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let inner = &self.0;
        let on = match in_sync.and_then(|in_sync| self.in_sync_store(tenant_id, in_sync)) {
            Some(on) => on,
            None => self.ready_store(tenant_id, asked, deadline)?,
        };
        let user = format!("user:{}", asked.user);
        let question = Question {
            user: &user,
            relation: asked.relation,
            object: &asked.object,
            contextual: asked.contextual.as_slice(),
        };
        let client = inner.client.until(deadline);
        let answer = client.check(&on, &question).and_then(|allowed| {
            // A store that was lost denies everything, for as long as its model is remembered.
            match allowed || client.store_exists(&on.store_id)? {
                true => Ok(allowed),
                false => Err(Failure::StoreUnknown),
            }
        });
        let allowed = answer.map_err(Fault::from).inspect_err(|f| self.note(f))?;
        Ok(Answer {
            allowed,
            store_id: on.store_id,
            model_id: on.model_id,
        })
    }

    /// Lets the reconciler look, where OpenFGA may have been away.
    fn note(&self, fault: &Fault) {
        if matches!(fault, Fault::Fga(failure) if failure.is_absence()) {
            self.0.status.suspect_absence();
        }
    }

    /// The store that answers, where nothing was left to apply. A change made since then was made while
    /// the question was under way.
    fn in_sync_store(&self, tenant_id: Uuid, in_sync: &InSync) -> Option<Pinned> {
        let inner = &self.0;
        let answers = in_sync.model_version >= inner.model.version()
            && inner.status.is_ready(tenant_id, &in_sync.store_id);
        answers.then(|| Pinned {
            store_id: in_sync.store_id.clone(),
            model_id: in_sync.model_id.clone(),
        })
    }

    /// The store that answers, once everything is applied that the answer depends on.
    fn ready_store(
        &self,
        tenant_id: Uuid,
        asked: &Asked,
        deadline: Instant,
    ) -> Result<Pinned, Fault> {
        let inner = &self.0;
        let objects = [asked.object.clone(), Object::Tenant(tenant_id).to_string()]
            .into_iter()
            .chain(asked.project_id.map(|id| Object::Project(id).to_string()))
            .collect::<Vec<_>>();
        loop {
            let began = Instant::now();
            let guard = authz::guard(
                &mut inner.store.session()?,
                tenant_id,
                &objects,
                asked.project_id,
            )?;
            let guard = guard.filter(|guard| guard.model_version >= inner.model.version());
            let compared = guard.filter(|g| inner.status.is_ready(tenant_id, &g.store_id));
            let Some(guard) = compared else {
                // One that is ready may be another than Postgres names.
                inner.status.doubt(tenant_id, began);
                inner.status.await_ready(tenant_id, deadline)?;
                continue;
            };
            for object in &guard.unapplied {
                let applied = write::apply(inner, tenant_id, object, false, deadline);
                applied.inspect_err(|fault| self.note(fault))?;
            }
            return Ok(Pinned {
                store_id: guard.store_id,
                model_id: guard.model_id,
            });
        }
    }

    /// Writes marked objects to OpenFGA; those that are applied already cost a look. Each
    /// has one deadline, and all together three times as long: what is left then is applied later.
    ///
    /// # Errors
    /// `authorization-unavailable`: the change stands, and is applied later; `database-unavailable`;
    /// `overloaded`.
    pub fn apply(&self, tenant_id: Uuid, objects: &[Object]) -> Result<()> {
        let mut names: Vec<String> = objects.iter().map(Object::to_string).collect();
        // In one order, or two could wait for each other.
        names.sort_unstable();
        names.dedup();
        let timeout = self.0.timeout;
        let last = Instant::now() + timeout * APPLYING;
        for name in &names {
            let deadline = last.min(Instant::now() + timeout);
            self.apply_one(tenant_id, name, deadline)?;
        }
        Ok(())
    }

    fn apply_one(&self, tenant_id: Uuid, object: &str, deadline: Instant) -> Result<(), Fault> {
        let inner = &self.0;
        let began = Instant::now();
        if began >= deadline {
            return Err(error::unavailable(
                "The change stands, and is still being applied. Try again shortly.",
            )
            .into());
        }
        let apply = || write::apply(inner, tenant_id, object, false, deadline);
        let outcome = match apply() {
            Err(fault) if fault.is_lost_store() => {
                inner.status.doubt(tenant_id, began);
                inner.status.await_ready(tenant_id, deadline)?;
                apply()
            }
            outcome => outcome,
        };
        outcome.inspect_err(|fault| self.note(fault))?;
        Ok(())
    }
}
