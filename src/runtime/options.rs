//! Options of the runtime.

use super::flow::FlowLimits;
use super::program::BuiltIn;
use super::run_bounds::RunLimits;
use crate::authn::session;
use crate::config::{self, Settings};
use crate::outbound::{HostAccess, Timeouts};
use crate::store::open_sessions::Limits;
use std::collections::HashMap;
use std::time::Duration;

/// The longest wait before another attempt that a provider may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How runs are run in this process.
#[derive(Debug, Clone)]
pub struct Options {
    /// Run threads, 1 to 2048: how many runs go on at once.
    pub threads: usize,
    /// How often work that other processes queued is looked for.
    pub poll: Duration,
    /// How often a model call is tried before its run fails, at least 1.
    pub model_attempts: i32,
    /// How often an idempotent tool is tried before the model gets an error instead.
    pub tool_attempts: i32,
    /// The longest answer of a tool, in bytes.
    pub tool_answer_bytes: u64,
    /// The wait before the second attempt; it doubles with each further one, up to a minute.
    pub first_wait: Duration,
    /// Deadlines of a model call.
    pub model_timeouts: Timeouts,
    /// What one run of a flow may take.
    pub flow_limits: FlowLimits,
    /// How often in a row a run's holder may die without progress of the run, until the run is ended.
    pub deaths_most: i32,
    /// How many runs there may be.
    pub run_limits: RunLimits,
    /// Built-in programs by `flowId`.
    pub built_in: HashMap<String, BuiltIn>,
    /// How long what a run was given, said and answered is kept after its end; for ever if absent.
    pub payload_retention: Option<Duration>,
    /// The environment whose secrets tools get and whose variables flows read (`SVC_ENVIRONMENT`).
    pub environment: Option<String>,
    /// Whether tenants may reach this host (specification section 1.4).
    pub host_access: HostAccess,
    /// Whether reviewers need roles: not while authorization is off.
    pub reviewers_need_roles: bool,
    /// What counts as an open session, of those that the metrics count.
    pub sessions: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 256,
            poll: Duration::from_millis(200),
            model_attempts: 4,
            tool_attempts: 3,
            tool_answer_bytes: 1024 * 1024,
            first_wait: Duration::from_secs(1),
            model_timeouts: Timeouts {
                connect: Duration::from_secs(10),
                first_byte: Duration::from_secs(120),
                idle: Some(Duration::from_secs(120)),
                total: Duration::from_secs(600),
            },
            flow_limits: FlowLimits::default(),
            deaths_most: 20,
            run_limits: RunLimits::default(),
            built_in: HashMap::new(),
            payload_retention: None,
            environment: None,
            host_access: HostAccess::Deployed,
            reviewers_need_roles: true,
            sessions: session::Options::default().limits(),
        }
    }
}

impl Options {
    /// As the settings say. What counts as an open session is not among them.
    pub fn from_settings(settings: &Settings) -> Self {
        let values = &settings.values;
        let retention_days = values.maybe_number("SVC_PAYLOAD_RETENTION_DAYS");
        Self {
            threads: values.number("SVC_RUN_THREADS"),
            poll: values.duration("SVC_JOB_POLL_MS"),
            tool_answer_bytes: values.number("SVC_TOOL_MAX_RESPONSE_BYTES"),
            payload_retention: retention_days
                .map(|days: u32| Duration::from_secs(u64::from(days) * 24 * 3600)),
            flow_limits: FlowLimits {
                days: values.number("SVC_MAX_RUN_DAYS"),
                tasks: values.number("SVC_MAX_FLOW_TASKS"),
                data_bytes: values.number("SVC_MAX_FLOW_DATA_BYTES"),
                children: values.number("SVC_MAX_FLOW_CHILDREN"),
                expression_steps: values.number("SVC_MAX_FLOW_EXPRESSION_STEPS"),
            },
            deaths_most: values.number("SVC_MAX_RUN_DEATHS"),
            run_limits: RunLimits {
                below_root: values.number("SVC_MAX_RUNS_BELOW_ROOT"),
                unfinished: values.number("SVC_MAX_UNFINISHED_RUNS"),
            },
            model_attempts: values.number("SVC_MODEL_ATTEMPTS"),
            model_timeouts: Timeouts {
                connect: values.duration("SVC_MODEL_CONNECT_TIMEOUT_MS"),
                first_byte: values.duration("SVC_MODEL_FIRST_BYTE_TIMEOUT_MS"),
                idle: Some(values.duration("SVC_MODEL_IDLE_TIMEOUT_MS")),
                total: values.duration("SVC_MODEL_TOTAL_TIMEOUT_MS"),
            },
            environment: settings.environment.clone(),
            host_access: match settings.outbound.host_access {
                config::HostAccess::Local => HostAccess::Local,
                config::HostAccess::Deployed => HostAccess::Deployed,
            },
            ..Self::default()
        }
    }

    /// How long to wait after a failed attempt, or `None` when it was the last of `attempts`. `failures`: of the
    /// step, before this one.
    pub(super) fn wait(
        &self,
        failures: i32,
        attempts: i32,
        asked: Option<Duration>,
    ) -> Option<Duration> {
        if failures + 1 >= attempts {
            return None;
        }
        let doublings = u32::try_from(failures).unwrap_or(0).min(16);
        let own = (self.first_wait * 2_u32.pow(doublings)).min(Duration::from_secs(60));
        Some(asked.unwrap_or_default().min(LONGEST_WAIT).max(own))
    }
}
