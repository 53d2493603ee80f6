//! A step that waits for the child runs that it started.
//!
//! Each time it is performed it takes the children that have ended since. The next commit adds
//! their usage to the run, each child once.

use super::attempt::{Attempt, Outcome, Performed};
use crate::error::{Error, Result};
use crate::runtime::ends;
use crate::runtime::journal::read;
use crate::runtime::journal::wait::{self, ChildResult, ChildrenRequest};
use crate::runtime::progress::events::{ChildEnd, Event, StepAnswer};
use crate::store::Session;
use crate::store::runs::{self, Cancelled, Child, ChildState, Lease};
use crate::store::steps::Begun;
use serde_json::json;

/// Done once all children have ended.
pub(super) fn perform(attempt: &Attempt<'_>, begun: &Begun) -> Result<Performed> {
    let request: ChildrenRequest = match read(Some(&begun.request)) {
        Ok(request) => request,
        Err(reason) => return Ok(Outcome::refused(reason).into()),
    };
    let (services, now) = (attempt.services, attempt.services.clock.now());
    let mut session = services.store.session()?;
    let mut children = read_children(&mut session, &attempt.lease, &request, false)?;
    let ended = |child: &&Child| child.state != ChildState::Started;
    let is_over = request.until.is_some_and(|until| until <= now);
    let has_failed = |child: &Child| child.state == ChildState::Failed;
    if is_over || request.is_fail_fast && children.iter().any(has_failed) {
        let left = children.iter().filter(|child| !ended(child));
        cancel(attempt, &left.collect::<Vec<_>>())?;
        children = read_children(&mut session, &attempt.lease, &request, false)?;
    }
    let unseen = children.iter().filter(ended).filter(|child| !child.is_seen);
    let unseen: Vec<&Child> = unseen.collect();
    let taken = unseen.iter().map(|child| child.slot).collect();
    let told = match attempt.program.is_flow() {
        true => completed(begun, &request, &unseen),
        false => Vec::new(),
    };
    let outcome = match children.iter().all(|child| ended(&child)) {
        true => done(&read_children(
            &mut session,
            &attempt.lease,
            &request,
            true,
        )?),
        false => Outcome::Waits(wait::children(now, request.until)),
    };
    Ok(Performed {
        taken,
        told,
        ..Performed::from(outcome)
    })
}

fn completed(begun: &Begun, request: &ChildrenRequest, unseen: &[&Child]) -> Vec<Event> {
    let completed = unseen.iter().map(|child| Event::ChildCompleted {
        step: begun.step,
        path: begun.path.clone(),
        index: request.index(child.slot),
        run_id: child.run_id,
        status: child.state.text().to_owned(),
        usage: child.usage,
    });
    completed.collect()
}

/// Asks children to end.
fn cancel(attempt: &Attempt<'_>, children: &[&Child]) -> Result<()> {
    let (services, now) = (attempt.services, attempt.services.clock.now());
    for child in children {
        let own = attempt.lease.child(child.run_id);
        loop {
            let (cancelled, ended) = services.store.transact(|tx| {
                let cancelled = runs::cancel(tx, &own, now)?;
                let ended = match cancelled {
                    Cancelled::AtOnce | Cancelled::Asked { has_more: false } => {
                        runs::cancelled_at(tx, &own, now)?
                    }
                    Cancelled::Asked { has_more: true } | Cancelled::Finished => Vec::new(),
                };
                Ok((cancelled, ended))
            })?;
            ends::report(services, attempt.log, None, &ended);
            if cancelled != (Cancelled::Asked { has_more: true }) {
                break;
            }
        }
        services.feed.changed(child.run_id);
        services.active.interrupt(child.run_id);
    }
    if !children.is_empty() {
        services.wake_queue();
    }
    Ok(())
}

/// The step's children, all of them.
fn read_children(
    session: &mut Session,
    lease: &Lease,
    request: &ChildrenRequest,
    with_outputs: bool,
) -> Result<Vec<Child>> {
    let mut children = runs::children(session, lease, with_outputs)?;
    children.retain(|child| request.has(child.slot));
    match i32::try_from(children.len()) {
        Ok(count) if count == request.count => Ok(children),
        _ => Err(Error::internal("a step's children are not all there")),
    }
}

fn done(children: &[Child]) -> Outcome {
    // A run that takes up another has children of that one among its own, which are kept no longer than that.
    let mut completed = children
        .iter()
        .filter(|child| child.state == ChildState::Completed);
    if let Some(erased) = completed.find(|child| child.is_erased) {
        return Outcome::refused(format!(
            "What the run {} answered was erased.",
            erased.run_id
        ));
    }
    let results = children.iter().map(|child| ChildResult {
        run_id: child.run_id,
        status: child.state.text().to_owned(),
        output: child.output.clone(),
        failure_message: child.failure_message.clone(),
        error: child.error.clone(),
        usage: (child.usage.calls > 0).then_some(child.usage),
    });
    let results: Vec<ChildResult> = results.collect();
    let ends = results.iter().map(|child| ChildEnd {
        run_id: child.run_id,
        status: child.status.clone(),
    });
    Outcome::Done {
        answer: StepAnswer::Child {
            children: ends.collect(),
        },
        result: json!(results),
    }
}
