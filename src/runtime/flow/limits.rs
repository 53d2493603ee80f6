//! What one run of a flow may take: the operator's bounds (`SVC_MAX_FLOW_…`, `SVC_MAX_RUN_DAYS`).
//!
//! Not here: the bounds of a definition, which is checked once (`flows::definition`).

use crate::failure::{Failure, Summary};
use expressions::Budget;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Of the steps that one expression may use, how many times as many all of a transition may use.
const EXPRESSIONS: u64 = 5;
/// Of the bytes that the data may have, how many times as many the stack of tasks may have: it holds the items of loops.
const STACK: usize = 2;

/// Processor time of a transition, for which the run may be locked. Other bounds let many tasks copy large data.
const COMPUTING: Duration = Duration::from_secs(4);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What one run of a flow may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLimits {
    /// From its begin to its end, whatever it waits for.
    pub days: u32,
    /// Tasks that it enters: what bounds loops and backward jumps.
    pub tasks: i32,
    /// Its data, and its context, as JSON.
    pub data_bytes: usize,
    /// Iterations of one parallel loop.
    pub children: usize,
    /// Steps of one expression.
    pub expression_steps: u64,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            days: 400,
            tasks: 10_000,
            data_bytes: 256 * 1024,
            children: 1_000,
            expression_steps: 1_000_000,
        }
    }
}

impl FlowLimits {
    /// From the begin of the run to its end.
    pub(in crate::runtime) fn life(&self) -> Duration {
        self.days * DAY
    }

    /// Why a run ends whose time is over, without its full stop.
    pub(in crate::runtime) fn out_of_days(&self) -> Summary {
        Summary::of(&[
            &"The run took longer than ",
            &self.days,
            &" days, the most that a run may take (SVC_MAX_RUN_DAYS)",
        ])
    }

    /// The steps that a transition may use.
    pub(super) fn budget(&self) -> Budget {
        let steps = self.expression_steps;
        Budget::new(steps, steps.saturating_mul(EXPRESSIONS))
    }

    /// The stack of tasks, as JSON.
    pub(super) fn stack_bytes(&self) -> usize {
        self.data_bytes.saturating_mul(STACK)
    }
}

/// Why a run ends whose transition has computed for too long, as a sentence. `began`: the [`processor_time`] when it began.
pub(super) fn out_of_processor_time(began: Duration) -> Option<Failure> {
    let used = processor_time().saturating_sub(began);
    (used > COMPUTING).then(|| {
        Failure::of(&[
            &"The run computed for more than ",
            &COMPUTING.as_secs(),
            &" s between two steps. Let its tasks handle less data, or fewer items.",
        ])
    })
}

/// What this thread has used of a processor. A machine that stands still does not count.
pub(super) fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}
