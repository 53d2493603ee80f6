//! The parts that the runtime's modules need, in one value.
//!
//! It imports those parts. None of them imports it, except the modules that carry a run on
//! (`driver`, `steps`), and those that erase what runs have said (`erasure`, `maintenance`).

use super::active_runs::ActiveRuns;
use super::clients::Idle;
use super::counts::Counts;
use super::fault_counter::FaultCounter;
use super::flow::Definitions;
use super::hold::Hold;
use super::job;
use super::model_keys::ModelKeys;
use super::options::Options;
use super::program::BuiltIn;
use super::progress::feed::Feed;
use super::progress::text::Pending;
use super::run_bounds::{Reached, RunBounds};
use super::suspects::Suspects;
use crate::guardrails;
use crate::ids::Clock;
use crate::model;
use crate::outbound::Outbound;
use crate::secrets::Secrets;
use crate::store::Store;
use crate::traces::Traces;
use crate::webhooks::Webhooks;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// What runs use besides the database.
pub struct Dependencies {
    /// The way out.
    pub outbound: Outbound,
    /// The API keys that a tenant's model provider may name.
    pub model_keys: ModelKeys,
    /// Where the other API keys live.
    pub secrets: Secrets,
    /// Where the ends of runs are announced.
    pub webhooks: Webhooks,
    /// Takes the spans of runs and steps.
    pub traces: Traces,
}

/// What carries runs on in this process.
pub(super) struct Services {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) outbound: Outbound,
    pub(super) model_keys: ModelKeys,
    pub(super) webhooks: Webhooks,
    pub(super) secrets: Secrets,
    pub(super) traces: Traces,
    pub(super) options: Options,
    pub(super) log: slog::Logger,
    /// Hints to readers' threads.
    pub(super) feed: Feed,
    /// Streamed text that waits to be written.
    pub(super) text: Pending,
    pub(super) active: ActiveRuns,
    pub(super) idle_clients: Idle,
    pub(super) faults: FaultCounter,
    pub(super) suspects: Suspects,
    pub(super) hold: Hold,
    pub(super) definitions: Definitions,
    pub(super) bounds: RunBounds,
    /// What model servers refused.
    pub(super) quirks: Arc<model::Memory>,
    /// The guardrails of runs, compiled.
    pub(super) guardrails: guardrails::Cache,
    /// For the metrics.
    pub(super) counts: Counts,
    /// Runs whose payloads this process has erased.
    pub(super) payloads_erased: AtomicU64,
    /// The queue of this process, once it is started.
    pub(super) queue: OnceLock<jobs::Handle>,
}

impl Services {
    pub(super) fn new(
        store: Store,
        clock: Clock,
        dependencies: Dependencies,
        options: Options,
        log: slog::Logger,
    ) -> Self {
        let Dependencies {
            outbound,
            model_keys,
            secrets,
            webhooks,
            traces,
        } = dependencies;
        let counts = Counts::new(model_keys.names());
        let definitions = Definitions::new(options.flow_limits);
        let bounds = RunBounds::new(options.run_limits);
        let quirks_log = log.clone();
        Self {
            store,
            clock,
            outbound,
            model_keys,
            webhooks,
            secrets,
            traces,
            options,
            log,
            feed: Feed::default(),
            text: Pending::default(),
            active: ActiveRuns::default(),
            idle_clients: Idle::default(),
            faults: FaultCounter::default(),
            suspects: Suspects::default(),
            hold: Hold::default(),
            definitions,
            bounds,
            quirks: Arc::new(model::Memory::new(quirks_log)),
            guardrails: guardrails::Cache::default(),
            counts,
            payloads_erased: AtomicU64::default(),
            queue: OnceLock::new(),
        }
    }

    /// What runs execute beside turns of agents.
    pub(super) fn programs(&self) -> (&HashMap<String, BuiltIn>, &Definitions) {
        (&self.options.built_in, &self.definitions)
    }

    /// Writes a record of a bound on the number of runs that was reached.
    pub(super) fn note_reached(&self, tenant_id: Uuid, reached: Reached) {
        slog::warn!(self.log, "A bound on the number of runs is reached"; "tenantId" => %tenant_id, "bound" => %reached);
    }

    /// Lets jobs of runs that are due begin at once instead of at the next poll.
    pub(super) fn wake_queue(&self) {
        if let Some(queue) = self.queue.get() {
            queue.wake(job::QUEUE);
        }
    }
}
