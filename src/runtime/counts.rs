//! What runs did in this process, for its metrics.
//!
//! Every series exists from the start. The labels are a fixed set: a tenant's choices make none.

use crate::store::approvals::{ApprovalStatus, Figures};
use crate::store::run_checks::{Point, Verdict};
use crate::store::runs::{Status, Tokens};
use crate::store::steps::{ModelCall, ModelCallOutcome, StepKind};
use crate::store::tools::TargetKind;
use crate::store::turns::Turn;
use crate::texts;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Of model calls with a key that is a secret of the tenant's.
const TENANT_KEY: &str = "tenant-key";
/// Of model calls without a key.
const NO_KEY: &str = "no-key";

/// The upper bounds of the buckets, in seconds: a model answers within a tenth of a second to ten minutes.
pub const BOUNDS: [f64; 12] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];

/// The upper bounds of the buckets of how long approvals waited, in seconds: a minute to 30 days, which is the longest.
pub const WAIT_BOUNDS: [f64; 10] = [
    60.0,
    300.0,
    900.0,
    3600.0,
    14_400.0,
    28_800.0,
    86_400.0,
    259_200.0,
    604_800.0,
    2_592_000.0,
];

texts! {
    /// How an attempt at a tool call ended.
    ToolOutcome {
        /// The tool answered with success, or what it runs completed.
        Answered = "answered",
        /// The tool answered with another status, or cannot be called as it is: its address or its certificate is refused,
        /// or its answer is too long. What it runs failed or was cancelled.
        Error = "error",
        /// The tool was not reached, or did not answer in time. It is called again if it is idempotent.
        Unreachable = "unreachable",
        /// The model called it wrongly, so it was not called.
        Refused = "refused",
        /// It was cut by a cancel.
        Cancelled = "cancelled",
    }
}

/// How often something took how long.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Durations {
    /// By the first of [`BOUNDS`] that is not exceeded, and the longer ones last.
    pub counts: [u64; BOUNDS.len() + 1],
    /// All together, in seconds.
    pub sum: f64,
}

/// Approvals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApprovalStats {
    /// What waits in the database, as it was read last.
    pub figures: Figures,
    /// Closed by this process, as [`ApprovalStatus::ALL`]; those that end with their run are not counted.
    pub closed: [u64; ApprovalStatus::ALL.len()],
    /// Decided, by the first of [`WAIT_BOUNDS`] that is not exceeded, and the longer ones last.
    pub waits: [u64; WAIT_BOUNDS.len() + 1],
    /// All together, in seconds.
    pub waited_seconds: f64,
}

/// The calls of models with one key.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCalls {
    /// The name that the operator gave the key, or what stands for the others.
    pub key: String,
    /// Calls, as [`ModelCallOutcome::ALL`].
    pub outcomes: [u64; ModelCallOutcome::ALL.len()],
    /// How long answers took to begin.
    pub first_byte: Durations,
}

/// Figures of runs in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Runs that ended, as [`Status::ALL`].
    pub ended: [u64; Status::ALL.len()],
    /// Of them, those that were ended because their holders died in a row.
    pub given_up: u64,
    /// By key.
    pub models: Vec<ModelCalls>,
    /// Tokens that providers counted.
    pub tokens: Tokens,
    /// What model calls cost, where that is known.
    pub cost_usd: f64,
    /// Attempts at steps, as [`StepKind::ALL`].
    pub steps: [Durations; StepKind::ALL.len()],
    /// Attempts at calls of tools, by what they go to, as [`TargetKind::ALL`] and [`ToolOutcome::ALL`].
    pub tools: [[u64; ToolOutcome::ALL.len()]; TargetKind::ALL.len()],
    /// Checks of guardrails, as [`Point::ALL`] and [`Verdict::ALL`].
    pub guardrails: [[u64; Verdict::ALL.len()]; Point::ALL.len()],
    /// Approvals.
    pub approvals: ApprovalStats,
    /// Sessions that are open in the database, as they were counted last.
    pub sessions: i64,
}

impl Stats {
    /// Before anything has happened. `keys`: the names of the operator's keys for model providers.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        let keys = keys
            .into_iter()
            .chain([TENANT_KEY.to_owned(), NO_KEY.to_owned()]);
        Self {
            ended: Default::default(),
            given_up: 0,
            models: keys
                .map(|key| ModelCalls {
                    key,
                    outcomes: Default::default(),
                    first_byte: Durations::default(),
                })
                .collect(),
            tokens: Tokens::default(),
            cost_usd: 0.0,
            steps: Default::default(),
            tools: Default::default(),
            guardrails: Default::default(),
            approvals: ApprovalStats::default(),
            sessions: 0,
        }
    }
}

impl Durations {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        self.counts[bucket.unwrap_or(BOUNDS.len())] += 1;
        self.sum += seconds;
    }
}

/// A model call that ended.
pub(super) struct CountedCall {
    /// The operator's key that it was made with.
    pub(super) key_name: Option<String>,
    /// It was made with a secret of the tenant's.
    pub(super) has_secret: bool,
    pub(super) outcome: ModelCallOutcome,
    pub(super) first_byte: Option<Duration>,
    pub(super) tokens: Tokens,
}

impl CountedCall {
    /// A call for this turn. `first_byte`: how long its answer took to begin.
    pub(super) fn of(turn: Option<&Turn>, call: &ModelCall, first_byte: Option<Duration>) -> Self {
        Self {
            key_name: turn.and_then(|turn| turn.api_key_name.clone()),
            has_secret: turn.is_some_and(|turn| turn.api_key_secret.is_some()),
            outcome: call.outcome,
            first_byte,
            tokens: call.counts.into(),
        }
    }
}

/// Counts; each caller holds the lock for some additions.
pub(super) struct Counts(Mutex<Stats>);

impl Counts {
    pub(super) fn new(keys: impl IntoIterator<Item = String>) -> Self {
        Self(Mutex::new(Stats::new(keys)))
    }

    pub(super) fn stats(&self) -> Stats {
        self.with(|stats| stats.clone())
    }

    pub(super) fn run_ended(&self, status: Status) {
        self.with(|stats| count(&mut stats.ended, &Status::ALL, status));
    }

    pub(super) fn run_given_up(&self) {
        self.with(|stats| stats.given_up += 1);
    }

    pub(super) fn model_call(&self, call: &CountedCall) {
        let other = if call.has_secret { TENANT_KEY } else { NO_KEY };
        let key = call.key_name.as_deref().unwrap_or(other);
        self.with(|stats| {
            if let Some(of_key) = stats.models.iter_mut().find(|of| of.key == key) {
                count(&mut of_key.outcomes, &ModelCallOutcome::ALL, call.outcome);
                if let Some(first_byte) = call.first_byte {
                    of_key.first_byte.add(first_byte);
                }
            }
            stats.tokens += call.tokens;
        });
    }

    pub(super) fn cost(&self, cost_usd: Option<f64>) {
        if let Some(cost_usd) = cost_usd {
            self.with(|stats| stats.cost_usd += cost_usd);
        }
    }

    pub(super) fn step(&self, kind: StepKind, duration: Duration) {
        self.with(|stats| {
            let all = stats.steps.iter_mut().zip(StepKind::ALL);
            for (durations, _) in all.filter(|(_, one)| *one == kind) {
                durations.add(duration);
            }
        });
    }

    pub(super) fn tool_call(&self, target: TargetKind, outcome: ToolOutcome) {
        self.with(|stats| {
            let mut of_each = stats.tools.iter_mut().zip(TargetKind::ALL);
            if let Some((counts, _)) = of_each.find(|(_, one)| *one == target) {
                count(counts, &ToolOutcome::ALL, outcome);
            }
        });
    }

    pub(super) fn guardrail(&self, point: Point, verdict: Verdict) {
        self.with(|stats| {
            let mut of_each = stats.guardrails.iter_mut().zip(Point::ALL);
            if let Some((counts, _)) = of_each.find(|(_, one)| *one == point) {
                count(counts, &Verdict::ALL, verdict);
            }
        });
    }

    /// An approval was closed; `waited`: before somebody decided.
    pub(super) fn approval(&self, status: ApprovalStatus, waited: Option<Duration>) {
        self.with(|stats| {
            let approvals = &mut stats.approvals;
            count(&mut approvals.closed, &ApprovalStatus::ALL, status);
            if let Some(waited) = waited {
                let seconds = waited.as_secs_f64();
                let bucket = WAIT_BOUNDS.iter().position(|bound| seconds <= *bound);
                approvals.waits[bucket.unwrap_or(WAIT_BOUNDS.len())] += 1;
                approvals.waited_seconds += seconds;
            }
        });
    }

    pub(super) fn in_database(&self, approvals: Figures, sessions: i64) {
        self.with(|stats| {
            stats.approvals.figures = approvals;
            stats.sessions = sessions;
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Stats) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn count<T: PartialEq>(counts: &mut [u64], all: &[T], which: T) {
    for (count, _) in counts.iter_mut().zip(all).filter(|(_, one)| **one == which) {
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_that_it_fits() {
        let mut durations = Durations::default();
        for seconds in [0.0, 0.1, 0.2, 600.0, 601.0] {
            durations.add(Duration::from_secs_f64(seconds));
        }
        assert_eq!(durations.counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!((durations.sum - 1201.3).abs() < 1e-9);
    }

    #[test]
    fn a_key_that_the_operator_did_not_list_makes_no_series() {
        let counts = Counts::new(["main".to_owned()]);
        let call = |key_name: Option<&str>, has_secret| CountedCall {
            key_name: key_name.map(str::to_owned),
            has_secret,
            outcome: ModelCallOutcome::Failed,
            first_byte: None,
            tokens: Tokens::default(),
        };
        for call in [
            call(Some("main"), false),
            call(Some("another"), false),
            call(None, true),
            call(None, false),
        ] {
            counts.model_call(&call);
        }
        let models = counts.stats().models;
        let failed: Vec<(&str, u64)> = models
            .iter()
            .map(|of| (of.key.as_str(), of.outcomes[1]))
            .collect();
        assert_eq!(failed, [("main", 1), (TENANT_KEY, 1), (NO_KEY, 1)]);
    }
}
