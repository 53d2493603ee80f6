//! Time that is over: of the run, of the flow, of a task, of one try.

use super::machine::Machine;
use super::raised::Raised;
use super::state::{At, Frame};
use crate::runtime::journal::read;
use crate::runtime::journal::wait::ChildResult;
use crate::runtime::steps::kind::{OpenCall, open_call};
use crate::store::runs::ChildState;
use crate::store::steps::{Step, StepStatus};
use crate::tools::Answer;
use std::time::Duration;
use time::OffsetDateTime;

impl Machine<'_> {
    /// Raises the timeout of the outermost thing whose time is over, and leaves what is inside it.
    pub(super) fn check_deadlines(&mut self, now: OffsetDateTime) -> Result<(), Raised> {
        let is_over = |until: Option<OffsetDateTime>| until.is_some_and(|until| until <= now);
        let branch = self.branch_depth();
        let said = match is_over(self.last) {
            true => Some(self.about.limits.out_of_days().as_str().to_owned()),
            false => is_over(self.ends).then(|| "The flow took longer than its timeout".to_owned()),
        };
        if let Some(said) = said {
            let raised = Raised::timeout(said, "");
            self.cut(branch, &raised);
            return Err(raised);
        }
        for depth in 0..self.state.frames.len() {
            let frame = &self.state.frames[depth];
            let (is_task_over, is_try_over) = (is_over(frame.until), is_over(try_ends(frame)));
            if !is_task_over && !is_try_over {
                continue;
            }
            let path = &self.task_at(depth)?.path;
            // What is outside of a branch is its parent's, which handles it. A try's own handler may take it.
            let (said, left) = match is_task_over || depth < branch {
                true => ("It took longer than its timeout", depth.max(branch)),
                false => ("The try took longer than the limit of its retry", depth + 1),
            };
            let raised = Raised::timeout(said, path);
            self.cut(left, &raised);
            return Err(raised);
        }
        Ok(())
    }

    /// When the step that has ended was answered. An answer that came in time counts, however late the run is taken up: who
    /// called does not call again. Nobody keeps when runs below ended. All of them have answered, so nothing has cut them.
    pub(super) fn answered_at(&self, ended: &Step) -> OffsetDateTime {
        if ended.status != StepStatus::Completed {
            return self.now;
        }
        let at = match open_call(ended.kind) {
            OpenCall::Own => ended.completed_at,
            OpenCall::OfChildren if have_answered(ended) => {
                self.state.frames.last().map(|frame| frame.began)
            }
            OpenCall::OfChildren | OpenCall::AskedAbout | OpenCall::None => None,
        };
        at.map_or(self.now, |at| at.min(self.now))
    }

    /// A wait that ends at the nearest deadline at the latest.
    pub(super) fn within_deadlines(&self, duration: Duration) -> Duration {
        match self
            .deadline_of_tasks()
            .into_iter()
            .chain(self.run_ends())
            .min()
        {
            Some(until) => {
                let left = Duration::try_from(until - self.now).unwrap_or_default();
                left.min(duration)
            }
            None => duration,
        }
    }

    /// When the time of the whole run is over: the flow's timeout, or the run's days.
    pub(super) fn run_ends(&self) -> Option<OffsetDateTime> {
        self.ends.into_iter().chain(self.last).min()
    }

    /// When the first of the times that an author has given is over.
    pub(super) fn nearest_deadline(&self) -> Option<OffsetDateTime> {
        self.deadline_of_tasks().into_iter().chain(self.ends).min()
    }

    /// When the time of the first of the tasks under way is over.
    pub(super) fn deadline_of_tasks(&self) -> Option<OffsetDateTime> {
        let frames = self.state.frames.iter();
        let deadlines = frames.flat_map(|frame| [frame.until, try_ends(frame)]);
        deadlines.flatten().min()
    }
}

/// Whether all runs that a step waited for have completed, or the one that the call of a tool was has answered.
fn have_answered(ended: &Step) -> bool {
    let results: Result<Vec<ChildResult>, String> = read(ended.result.as_ref());
    match results {
        Ok(results) => results
            .iter()
            .all(|result| result.status == ChildState::Completed.text()),
        Err(_) => {
            let answer: Result<Answer, String> = read(ended.result.as_ref());
            answer.is_ok_and(|answer| !answer.is_error)
        }
    }
}

fn try_ends(frame: &Frame) -> Option<OffsetDateTime> {
    match &frame.at {
        At::Try(tries) => tries.until,
        _ => None,
    }
}
