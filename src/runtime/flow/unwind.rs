//! Errors in a flow: the innermost `try` whose `catch` takes an error handles it, or tries its list again after a durable
//! pause. After its last try, a `catch` that says nothing more lets the error go on. An error that nothing takes fails the run.
//!
//! An error that is raised while another is handled leaves the `try` that handles it.

use super::machine::{Machine, Move, Moved};
use super::raised::Raised;
use super::state::{At, Frame, Tries};
use crate::flows::definition::error_types::kind_of;
use crate::flows::definition::tree::{
    Backoff, Catch, DELAY_LONGEST, ErrorFilter, Retry, Task, TaskKind,
};
use crate::runtime::journal::decision::Next;
use crate::runtime::progress::events::Event;
use std::time::Duration;
use uuid::Uuid;

/// A delay that doubles does not grow beyond it.
const LONGEST_DOUBLED: Duration = Duration::from_secs(60 * 60);

impl<'a> Machine<'a> {
    /// Leaves tasks until one handles the error.
    pub(super) fn unwind(&mut self, raised: Raised) -> Moved<'a> {
        while !self.state.frames.is_empty() {
            let Ok(task) = self.innermost() else { break };
            let Some(frame) = self.state.frames.pop() else {
                break;
            };
            // What is outside of a branch handles its error once the branch has failed with it.
            if let At::Branch { .. } = frame.at {
                break;
            }
            let (TaskKind::Try(of), At::Try(tries)) = (&task.kind, &frame.at) else {
                self.add_faulted(task, &raised);
                continue;
            };
            if !fits(&of.catch.errors, &raised) {
                self.add_faulted(task, &raised);
                continue;
            }
            let tries = *tries;
            let error = raised.value();
            // Conditions name the error.
            self.state.frames.push(Frame {
                at: At::Catch { error },
                ..frame
            });
            let (when, except_when) = (of.catch.when.as_ref(), of.catch.except_when.as_ref());
            let is_taken = self.of_innermost(task, |scope, input, budget| {
                scope.allows((when, except_when), input, budget)
            });
            if is_taken? && let Some(next) = self.handle(task, &of.catch, tries, &raised)? {
                return Ok(next);
            }
            self.state.frames.pop();
            self.add_faulted(task, &raised);
        }
        Ok(Move::End(raised.end()))
    }

    /// Tries the list again, or goes into the handler. None: no try is left, and the author did not say what then.
    fn handle(
        &mut self,
        task: &'a Task,
        catch: &'a Catch,
        tries: Tries,
        raised: &Raised,
    ) -> Result<Option<Move<'a>>, Raised> {
        let pause = match &catch.retry {
            Some(retry) => self.pause_of(task, retry, tries)?,
            None => None,
        };
        if let Some(duration) = pause {
            self.add_event(task, |task| Event::TaskFaulted {
                task,
                error: raised.task_error(),
                will_retry: true,
            });
            if let Some(frame) = self.state.frames.last_mut() {
                frame.at = At::Pause(Tries {
                    attempt: tries.attempt + 1,
                    until: None,
                    ..tries
                });
            }
            let duration = match self.about.is_dry_run {
                true => Duration::ZERO,
                false => self.within_deadlines(duration),
            };
            let next = Next::Wait {
                path: task.path.clone(),
                duration,
            };
            return Ok(Some(Move::Effect(task, next)));
        }
        // Who asks for other tries wants the work done: to go on without it would be silent.
        if catch.retry.is_some() && catch.tasks.is_none() && catch.then.is_none() {
            return Ok(None);
        }
        self.add_event(task, |task| Event::TaskCaught {
            task,
            error: raised.task_error(),
        });
        let (input, _) = self.innermost_input();
        self.state.data = input;
        Ok(Some(match &catch.tasks {
            Some(_) => Move::Enter(0),
            None => Move::EndOfList,
        }))
    }

    /// How long to wait before another try; none, if there is to be no other.
    fn pause_of(
        &mut self,
        task: &'a Task,
        retry: &Retry,
        tries: Tries,
    ) -> Result<Option<Duration>, Raised> {
        if tries.attempt >= retry.tries_most {
            return Ok(None);
        }
        let (now, run_id) = (self.now, self.about.run_id);
        self.of_innermost(task, |scope, input, budget| {
            let conditions = (retry.when.as_ref(), retry.except_when.as_ref());
            if !scope.allows(conditions, input, budget)? {
                return Ok(None);
            }
            let mut time = |time: &_| scope.time(time, input, budget);
            let delay = retry.delay.as_ref().map(&mut time).transpose()?;
            let mut delay = delayed(delay.unwrap_or_default(), retry.backoff, tries.attempt);
            if let Some((from, to)) = &retry.jitter {
                let jitter = between((time(from)?, time(to)?), run_id, tries.attempt);
                delay = (delay + jitter).min(DELAY_LONGEST);
            }
            let timeout = retry.timeout.as_ref().map(&mut time).transpose()?;
            let is_late = timeout.is_some_and(|timeout| now + delay >= tries.first + timeout);
            Ok((!is_late).then_some(delay))
        })
    }
}

/// The delay before the try after `tries` of them.
fn delayed(delay: Duration, backoff: Backoff, tries: u32) -> Duration {
    let factor = match backoff {
        Backoff::Constant => 1,
        Backoff::Linear => tries,
        Backoff::Exponential => 2_u32.saturating_pow(tries.saturating_sub(1)),
    };
    let most = match backoff {
        Backoff::Exponential => delay.max(LONGEST_DOUBLED).min(DELAY_LONGEST),
        Backoff::Constant | Backoff::Linear => DELAY_LONGEST,
    };
    delay.saturating_mul(factor).min(most)
}

/// A time between two, the same whoever asks: it follows from the run and the number of the try.
fn between((from, to): (Duration, Duration), run_id: Uuid, tries: u32) -> Duration {
    let mut seed = run_id.as_u64_pair().1 ^ u64::from(tries).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The finalizer of SplitMix64.
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let width = to.saturating_sub(from).as_millis();
    let part = u128::from(seed ^ (seed >> 31)) % (width + 1);
    from + Duration::from_millis(u64::try_from(part).unwrap_or_default())
}

/// Whether an error has the fields that a `catch` names.
fn fits(filter: &ErrorFilter, raised: &Raised) -> bool {
    let fits_text = |wanted: &Option<String>, found: Option<&str>| {
        wanted.is_none() || wanted.as_deref() == found
    };
    let wanted = filter.kind.as_deref().map(kind_of);
    wanted.is_none_or(|wanted| wanted == kind_of(&raised.kind))
        && filter.status.is_none_or(|status| status == raised.status)
        && fits_text(&filter.instance, Some(&raised.instance))
        && fits_text(&filter.title, Some(&raised.title))
        && fits_text(&filter.detail, raised.detail.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_matched_by_the_fields_that_a_catch_names() {
        let raised = Raised::timeout("It is late.", "/do/0/a");
        let none = ErrorFilter::default;
        let of_kind = |kind: &str| ErrorFilter {
            kind: Some(kind.to_owned()),
            ..none()
        };
        let status = |status| ErrorFilter {
            status: Some(status),
            ..none()
        };
        assert!(fits(&none(), &raised));
        assert!(fits(&status(408), &raised));
        assert!(fits(&of_kind(&raised.kind), &raised));
        assert!(fits(
            &of_kind("https://another.example/spec/1.0.0/errors/timeout"),
            &raised
        ));
        assert!(fits(
            &of_kind("https://serverlessworkflow.io/dsl/errors/types/timeout"),
            &raised
        ));
        assert!(!fits(&status(500), &raised));
        assert!(!fits(&of_kind("timeout/else"), &raised));
        let elsewhere = ErrorFilter {
            instance: Some("/do/1/b".to_owned()),
            ..status(408)
        };
        assert!(!fits(&elsewhere, &raised));
    }

    #[test]
    fn delays_grow_and_jitter_is_the_same_whoever_asks() {
        let (second, run) = (Duration::from_secs(1), Uuid::from_u128(7));
        assert_eq!(delayed(second, Backoff::Constant, 9), second);
        assert_eq!(delayed(second, Backoff::Linear, 9), second * 9);
        assert_eq!(delayed(second, Backoff::Exponential, 9), second * 256);
        let longest = delayed(second, Backoff::Exponential, 90);
        assert_eq!(longest, LONGEST_DOUBLED);
        for backoff in [Backoff::Constant, Backoff::Linear, Backoff::Exponential] {
            assert_eq!(delayed(DELAY_LONGEST * 9, backoff, 1), DELAY_LONGEST);
        }
        let of = |tries| between((second, second * 3), run, tries);
        for tries in 1..50 {
            assert!((second..=second * 3).contains(&of(tries)));
            assert_eq!(of(tries), of(tries));
        }
        assert_ne!(of(1), of(2));
        assert_eq!(between((second, second), run, 1), second);
    }
}
