//! The calls of one attempt of a model step: mostly one. A server that is loading its model is called again until the
//! provider's limit for the first byte is over; a conversation that is too long is shortened once.
//!
//! Guarantees: no call goes on beyond the time of its run. Such calls are parts of one attempt, so they are no tries. Not here:
//! tries, which are durable and the driver's.

use super::attempt::Attempt;
use crate::failure::Failure;
use crate::model::{self, ChatRequest, Completion, ModelFailure, Piece, Provider};
use crate::outbound::Limit;
use crate::runtime::progress::text::Text;
use crate::runtime::turn::prompt::Prompt;
use crate::store::steps::{Begun, Step};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The longest pause between two calls of a server that is loading its model, unless it asks for more.
const LOADING_PAUSE: Duration = Duration::from_secs(5);

/// Asks the model. The prompt is the one that was sent last.
pub(super) fn ask(
    attempt: &mut Attempt<'_>,
    (journal, begun): (&[Step], &Begun),
    provider: &Provider,
    prompt: Prompt,
    text: &mut Text<'_>,
) -> (Result<Completion, ModelFailure>, Prompt) {
    let has_text = Cell::new(false);
    let mut say = |piece: Piece<'_>| {
        has_text.set(true);
        match piece {
            Piece::Text(piece) => text.say(piece),
            Piece::Reasoning(piece) => text.think(piece),
        }
    };
    let answer = call_loaded(attempt, provider, &prompt.request, &mut say);
    let failure = match answer {
        Err(failure) if failure.too_long.is_some() && !has_text.get() => failure,
        answer => return (answer, prompt),
    };
    let told = failure.too_long.as_deref().copied().unwrap_or_default();
    let origin = attempt.origin(begun);
    let program = attempt.program;
    let Some(shorter) = program.prompt_within(journal, &origin, &prompt, told) else {
        let why = failure.why.then(&[&"No older exchange could be left out."]);
        return (Err(ModelFailure { why, ..failure }), prompt);
    };
    let answer = call_loaded(attempt, provider, &shorter.request, &mut say);
    let left_out = shorter.size.map_or(0, |size| size.exchanges_left_out);
    let answer = answer.map_err(|failure| match failure.too_long {
        None => failure,
        Some(_) => ModelFailure {
            why: failure.why.then(&[
                &"It was too long with ",
                &left_out,
                &" of the oldest exchanges left out, too.",
            ]),
            ..failure
        },
    });
    (answer, shorter)
}

/// Calls the model, again while its server is loading it.
fn call_loaded(
    attempt: &mut Attempt<'_>,
    provider: &Provider,
    request: &ChatRequest,
    say: &mut dyn FnMut(Piece<'_>),
) -> Result<Completion, ModelFailure> {
    let services = attempt.services;
    let timeouts = provider
        .options
        .timeouts
        .or(services.options.model_timeouts);
    let until = (Instant::now() + timeouts.first_byte).min(attempt.ends_by);
    let mut pause = services.options.first_wait;
    loop {
        let switch = &attempt.interrupt.switch;
        let within = timeouts.within(attempt.time_left());
        let client = attempt.clients.model(switch, within);
        let answer = model::chat(&services.clock, client, provider, request, say);
        let failure = match answer {
            Err(failure) if failure.is_loading => failure,
            answer => return answer,
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(failure.while_loading(timeouts.first_byte));
        }
        let wanted = pause.max(failure.retry_after.unwrap_or_default());
        if attempt.interrupt.wait(wanted.min(left)) {
            return Err(ModelFailure::interrupted());
        }
        if attempt.time_left().is_zero() {
            return Err(failure);
        }
        pause = (pause * 2).min(LOADING_PAUSE);
    }
}

/// Why a call failed whose turn has no time left: the turn's limit ended it.
pub(super) fn out_of_time(attempt: &Attempt<'_>, failure: &ModelFailure) -> Option<Failure> {
    let during = match failure.limit {
        _ if failure.is_loading => "The model provider was loading its model.",
        Some(Limit::Connect(_)) => "The model provider had not accepted a connection.",
        Some(Limit::FirstByte(_)) => "The model provider had not begun to answer.",
        Some(Limit::Idle(_)) => {
            "The model provider had sent nothing for a while in the middle of its answer."
        }
        Some(Limit::Total(_)) => "The model provider had not ended its answer.",
        None => return None,
    };
    let is_over = attempt.time_left().is_zero();
    is_over.then(|| attempt.program.out_of_time().then(&[&during]))
}

/// Why a call failed that may be made again only after the turn's time.
pub(super) fn beyond_turn(attempt: &Attempt<'_>, failure: &ModelFailure) -> Option<Failure> {
    let asked = failure.retry_after.filter(|_| failure.retryable)?;
    let is_beyond = asked >= attempt.time_left();
    is_beyond.then(|| {
        let seconds = asked.as_secs() + u64::from(asked.subsec_nanos() > 0);
        failure.why.clone().then(&[
            &"It asks to be left alone for ",
            &seconds,
            &" s, and the turn has less time left (turnTimeoutMs).",
        ])
    })
}
