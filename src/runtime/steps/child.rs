//! A step that waits for the child runs that it started.
//!
//! Each time it is performed it takes the children that have ended since, and begins others in their places where the step
//! has more of them. The next commit adds their usage to the run, each child once.
//!
//! Guarantees: how many children have ended before changes nothing in what this reads, but for the last time, when it reads
//! what all of them answered.

use super::attempt::{Attempt, Outcome, Performed};
use super::checks::Checker;
use super::{approval, http};
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::runtime::counts::ToolOutcome;
use crate::runtime::journal::call::UnbegunRun;
use crate::runtime::journal::decision::ChildRun;
use crate::runtime::journal::wait::{self, ChildResult, ChildrenRequest};
use crate::runtime::journal::{misread, read};
use crate::runtime::progress::events::{ChildEnd, Event, StepAnswer};
use crate::runtime::report_ends;
use crate::runtime::tool_children;
use crate::store::Session;
use crate::store::run_checks::Checks;
use crate::store::runs::{self, Child, ChildState, OUTPUTS_BYTES, Unseen, UnseenChild};
use crate::store::steps::Begun;
use crate::tools::Answer;
use serde::Deserialize;
use serde_json::json;

/// Done once all children have ended.
pub(super) fn perform(attempt: &Attempt<'_>, begun: &Begun) -> Result<Performed> {
    if attempt.run.dry_run && UnbegunRun::deserialize(&begun.request).is_ok() {
        return Ok(http::simulated().into());
    }
    let request: ChildrenRequest = match read(Some(&begun.request)) {
        Ok(request) => request,
        Err(reason) => return Ok(Outcome::refused(misread(reason)).into()),
    };
    if let Some(why) = &request.refused {
        return Ok(refused(attempt, &request, why).into());
    }
    let (services, now) = (attempt.services, attempt.services.clock.now());
    let mut session = services.store.session()?;
    let mut unseen = read_unseen(&mut session, attempt, &request)?;
    let ends_at = attempt.program.ends_at();
    let until = request.until.into_iter().chain(ends_at).min();
    let is_over = until.is_some_and(|until| until <= now);
    let is_cut = is_over || request.is_fail_fast && unseen.has_failed;
    if is_cut {
        cancel(attempt, &unseen.children)?;
        unseen = read_unseen(&mut session, attempt, &request)?;
    }
    let (under_way, ended): (Vec<UnseenChild>, Vec<UnseenChild>) = unseen
        .children
        .into_iter()
        .partition(|child| child.state == ChildState::Started);
    let mut next = match is_cut {
        true => Vec::new(),
        false => {
            let stands = (unseen.next_slot, under_way.len());
            next_children(attempt, begun, &request, stands)?
        }
    };
    let reached = bound_reached(&mut session, attempt, next.len())?;
    if reached.is_some() {
        next.clear();
    }
    let mut checks = Checks::default();
    let mut events = match attempt.program.writes_child_events() {
        true => completed(begun, &request, &ended),
        false => Vec::new(),
    };
    // Calls of a model that come after this one have their approvals already, whose time goes on.
    let asks_until = match &request.call {
        Some(_) => approval::close_due(attempt, begun.step + 1)?.1,
        None => None,
    };
    let asks_until = asks_until.map(|left| now + time::Duration::milliseconds(left));
    let outcome = match under_way.is_empty() && next.is_empty() {
        true => match reached {
            Some(why) => Outcome::Refused(why),
            None => {
                let mut checker = Checker::new(attempt, begun)?;
                let outcome = done(&mut session, attempt, (&request, &begun.name), &mut checker)?;
                events.append(&mut checker.events);
                checks = checker.checks;
                outcome
            }
        },
        false => Outcome::Waits(wait::children(
            now,
            [until, asks_until].into_iter().flatten().min(),
        )),
    };
    Ok(Performed {
        taken: ended.iter().map(|child| child.slot).collect(),
        begins: (unseen.next_slot, next),
        events,
        checks,
        ..Performed::from(outcome)
    })
}

fn read_unseen(
    session: &mut Session,
    attempt: &Attempt<'_>,
    request: &ChildrenRequest,
) -> Result<Unseen> {
    let unseen = runs::unseen_children(session, &attempt.lease, request.slots())?;
    let begun_with_it = match request.places {
        Some(_) => request.first_slot.saturating_add(1),
        None => request.slots().end,
    };
    match unseen.next_slot < begun_with_it {
        true => Err(Error::internal("a step's children are not all there")),
        false => Ok(unseen),
    }
}

/// The children that have a place now, from a slot on, beside so many that are under way.
fn next_children(
    attempt: &Attempt<'_>,
    begun: &Begun,
    request: &ChildrenRequest,
    (next_slot, under_way): (i32, usize),
) -> Result<Vec<ChildRun>> {
    let left = usize::try_from(request.slots().end - next_slot).unwrap_or_default();
    let places = request
        .places
        .map_or(0, |places| usize::try_from(places).unwrap_or_default());
    let count = left.min(places.saturating_sub(under_way));
    if count == 0 {
        return Ok(Vec::new());
    }
    let first = usize::try_from(request.index(next_slot)).map_err(Error::internal)?;
    let program = attempt.program;
    let children = program.later_children(&begun.path, first..first + count);
    children.map_err(Error::internal)
}

/// Why so many children may not begin. While others are under way, the step waits for these; it is refused once there are
/// none.
fn bound_reached(
    session: &mut Session,
    attempt: &Attempt<'_>,
    count: usize,
) -> Result<Option<String>> {
    if count == 0 {
        return Ok(None);
    }
    let (services, run) = (attempt.services, attempt.run);
    let of = (run.tenant_id, Some(run.root_run_id));
    let counted = |of, most| runs::count(session, of, most);
    let reached = services.bounds.reached(of, count, counted)?;
    Ok(reached.map(|reached| {
        services.note_reached(run.tenant_id, reached);
        format!("{reached}.")
    }))
}

/// The end of a step whose child runs may not begin. A model gets it as its tool's answer, and goes on without it.
fn refused(attempt: &Attempt<'_>, request: &ChildrenRequest, why: &str) -> Outcome {
    let Some(target) = request.target.filter(|_| !attempt.program.is_flow()) else {
        return Outcome::Refused(why.to_owned());
    };
    let answer = Answer::error(format!("It was not called: {why} Go on without it."));
    let services = attempt.services;
    services.counts.tool_call(target, ToolOutcome::Refused);
    Outcome::Done {
        answer: StepAnswer::Child {
            children: Vec::new(),
        },
        result: json!(answer),
    }
}

fn completed(begun: &Begun, request: &ChildrenRequest, ended: &[UnseenChild]) -> Vec<Event> {
    let completed = ended.iter().map(|child| Event::ChildCompleted {
        step: begun.step,
        path: begun.path.clone(),
        index: request.index(child.slot),
        run_id: child.run_id,
        status: child.state.text().to_owned(),
        usage: child.usage,
    });
    completed.collect()
}

/// Asks those to end that have not ended.
fn cancel(attempt: &Attempt<'_>, children: &[UnseenChild]) -> Result<()> {
    let (services, now) = (attempt.services, attempt.services.clock.now());
    let is_under_way = |child: &&UnseenChild| child.state == ChildState::Started;
    for child in children.iter().filter(is_under_way) {
        let own = attempt.lease.child(child.run_id);
        let (_, ended) = services.store.transact(|tx| runs::cancel(tx, &own, now))?;
        report_ends::report(services, attempt.log, None, &ended);
        services.feed.changed(child.run_id);
        services.active.interrupt(child.run_id);
    }
    if children.iter().any(|child| is_under_way(&child)) {
        services.wake_queue();
    }
    Ok(())
}

/// The end of the step: what all children answered.
fn done(
    session: &mut Session,
    attempt: &Attempt<'_>,
    (request, tool): (&ChildrenRequest, &str),
    checker: &mut Checker<'_>,
) -> Result<Outcome> {
    let children = runs::children(session, &attempt.lease, request.slots(), true)?;
    if children.iter().any(|child| child.is_left_out) {
        let most = OUTPUTS_BYTES >> 20;
        return Ok(Outcome::refused(Failure::of(&[
            &"What the runs answered has more than ",
            &most,
            &" MiB of JSON together.",
        ])));
    }
    // A run that takes up another has children of that one among its own, which are kept no longer than that.
    if let Some(erased) = children.iter().find(|child| child.is_erased) {
        return Ok(Outcome::refused(Failure::of(&[
            &"What the run ",
            &erased.run_id,
            &" answered was erased.",
        ])));
    }
    Ok(answer(attempt, (request, tool), &children, checker))
}

fn answer(
    attempt: &Attempt<'_>,
    (request, tool): (&ChildrenRequest, &str),
    children: &[Child],
    checker: &mut Checker<'_>,
) -> Outcome {
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
    let answer = StepAnswer::Child {
        children: ends.collect(),
    };
    let result = match (request.target, results.as_slice()) {
        (Some(target), [only]) => {
            let services = attempt.services;
            let most = services.options.tool_answer_bytes;
            let mut answer = tool_children::answer(target, only, most);
            checker.check_result(tool, &mut answer.output);
            let outcome = match answer.is_error {
                true => ToolOutcome::Error,
                false => ToolOutcome::Answered,
            };
            services.counts.tool_call(target, outcome);
            json!(answer)
        }
        _ => json!(results),
    };
    Outcome::Done { answer, result }
}
