//! One request: its checks, its body, its wait in the queue, its answer.

use super::answers::COUNTED_FROM_BYTES;
use super::body::{Intake, Outgoing, check_admitted, check_budget};
use super::connection_state::{Acceptance, ConnectionState, Phase};
use super::context::Context;
use super::head;
use super::host::host_of;
use super::pool::{Admission, Job, queue_full};
use super::reply::{Answer, Reply, Responder, convert};
use super::shared::Shared;
use crate::error::{Code, Error, Result};
use crate::log::ErrorValue;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use tokio::sync::oneshot;

/// Answers one request. Never fails: a refusal is an answer.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    state: &Arc<ConnectionState>,
    request: Request<Incoming>,
    has_fragment: bool,
) -> Response<Outgoing> {
    let (parts, body) = request.into_parts();
    let in_flight = InFlight::begin(shared);
    let context = Arc::new(Context::new(state.peer, Some(parts), &shared.clock));
    let mut incoming = Some(body);
    let answer = match has_fragment {
        true => Err(head::fragment()),
        false => respond(shared, state, &context, &mut incoming).await,
    };
    drop(in_flight);
    // What is left of the body will not be read, and what follows it cannot be.
    let unread = incoming.is_some_and(|body| !body.is_end_stream());
    let mut response = match answer {
        Ok(response) => response,
        Err(error) => refusal(shared, &error, &context),
    };
    if let Err(error) = bind(shared, &mut response, state) {
        response = refusal(shared, &error, &context);
        response.body_mut().attach(state);
    }
    if unread || state.acceptance != Acceptance::Served {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    count(shared, response.status());
    state.enter(Phase::Answering);
    response
}

/// Binds an answer to its connection, and counts what it holds.
fn bind(
    shared: &Shared,
    response: &mut Response<Outgoing>,
    state: &Arc<ConnectionState>,
) -> Result<()> {
    let (limits, counters) = (&shared.limits, &shared.counters);
    let body = response.body_mut();
    body.attach(state);
    if !body.open(limits, counters, &shared.stopping, state) {
        return Err(Error::new(
            Code::Overloaded,
            "Too many streams are open. Try again shortly.",
        ));
    }
    let bytes = body.own_bytes();
    if bytes < COUNTED_FROM_BYTES {
        return Ok(());
    }
    let address = host_of(state.peer.ip());
    let share = shared.answers.begin(limits, counters, address, bytes);
    state.hold(share.ok_or_else(|| {
        Error::new(
            Code::Overloaded,
            "Too many bytes of answers are being read at once. Read faster, or try again shortly.",
        )
    })?);
    Ok(())
}

async fn respond(
    shared: &Arc<Shared>,
    state: &Arc<ConnectionState>,
    context: &Arc<Context>,
    incoming: &mut Option<Incoming>,
) -> Answer {
    context.check(&shared.limits)?;
    if let Some(response) = probe(shared, context) {
        return response;
    }
    check_acceptance(state.acceptance)?;
    let mut intake = Intake::new(&shared.counters);
    if let Some(mut body) = incoming.take_if(|body| !body.is_end_stream()) {
        let whole = read(shared, state, context, &mut intake, &mut body).await;
        if !matches!(whole, Ok(None)) {
            *incoming = Some(body);
        }
        if let Some(refused) = whole? {
            return refused;
        }
    }
    let (to, from) = oneshot::channel();
    let counters = Arc::clone(&shared.counters);
    let most = shared.limits.answer_bytes;
    let responder = Responder::new(Arc::clone(context), to, counters, most);
    let body = intake;
    queue(shared, Job::Handle { body, responder })?;
    wait(state, from).await?
}

/// Reads the whole body: `None`, or the application's refusal of it.
async fn read(
    shared: &Arc<Shared>,
    state: &Arc<ConnectionState>,
    context: &Arc<Context>,
    intake: &mut Intake,
    body: &mut Incoming,
) -> Result<Option<Answer>> {
    let declared = body.size_hint().exact();
    if declared.is_some_and(|bytes| bytes > shared.limits.body_bytes) {
        return Err(head::too_large(shared.limits.body_bytes));
    }
    check_budget(&shared.limits, &shared.counters, declared)?;
    let small = shared.limits.small_body_bytes;
    if declared.is_none_or(|bytes| bytes <= small)
        && intake.read(&shared.limits, state, body, small).await?
    {
        return Ok(None);
    }
    let (to, from) = oneshot::channel();
    let context = Arc::clone(context);
    queue(shared, Job::Admit { context, to })?;
    let most = match wait(state, from).await? {
        Admission::Read(bytes) => check_admitted(&shared.limits, bytes, declared)?,
        Admission::Refuse(refused) => return Ok(Some(refused)),
    };
    if intake.read(&shared.limits, state, body, most).await? {
        return Ok(None);
    }
    Err(head::too_large(most))
}

fn probe(shared: &Shared, context: &Context) -> Option<Answer> {
    let response = shared.app.probe(context)?;
    let most = shared.limits.answer_bytes;
    Some(convert(Reply::Full(response), most, context))
}

fn check_acceptance(acceptance: Acceptance) -> Result<()> {
    match acceptance {
        Acceptance::Served => Ok(()),
        Acceptance::TooManyConnections => Err(Error::new(
            Code::Overloaded,
            "Too many connections are open. Try again shortly.",
        )),
        Acceptance::TooManyFromAddress => Err(Error::new(
            Code::TooManyRequests,
            "Too many connections are open from this address. Use those that are open.",
        )),
    }
}

fn queue(shared: &Shared, job: Job) -> Result<()> {
    match shared.pool.jobs.push(job) {
        true => Ok(()),
        // It is closed only once there are no connections any more.
        false => Err(queue_full()),
    }
}

/// Waits for a request thread's word, within the request deadline.
async fn wait<T>(state: &ConnectionState, from: oneshot::Receiver<T>) -> Result<T> {
    state.enter(Phase::Waiting);
    let mut from = pin!(from);
    poll_fn(|cx| match from.as_mut().poll(cx) {
        Poll::Ready(Ok(word)) => Poll::Ready(Ok(word)),
        Poll::Ready(Err(_)) => Poll::Ready(Err(Error::internal(
            "the handler gave up its responder without an answer",
        ))),
        Poll::Pending if state.has_expired() => Poll::Ready(Err(Error::new(
            Code::DeadlineExceeded,
            "The request was not answered within its deadline.",
        ))),
        Poll::Pending => Poll::Pending,
    })
    .await
}

fn refusal(shared: &Shared, error: &Error, context: &Context) -> Response<Outgoing> {
    let reply = Reply::Full(refuse(shared, error, context));
    convert(reply, shared.limits.answer_bytes, context).unwrap_or_else(|cause| {
        slog::error!(context.log(&shared.log), "a refusal could not be sent"; ErrorValue(&cause));
        let mut bare = Response::new(Outgoing::whole(bytes::Bytes::new()));
        *bare.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        bare
    })
}

/// The application's body for one of the door's refusals.
pub(super) fn refuse(shared: &Shared, error: &Error, context: &Context) -> rouille::Response {
    if error.code() == Code::Internal {
        slog::error!(context.log(&shared.log), "a request failed"; ErrorValue(error));
    }
    let mut response = shared.app.refuse(error, context);
    if matches!(error.code().status(), 429 | 503) {
        response
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case(RETRY_AFTER.as_str()));
        response.headers.push(("Retry-After".into(), "1".into()));
    }
    response
}

pub(super) fn count(shared: &Shared, status: StatusCode) {
    let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
    shared.counters.answers_by_class[class].fetch_add(1, Ordering::Relaxed);
}

/// A request between its header block and its answer's beginning.
struct InFlight<'a>(&'a Shared);

impl<'a> InFlight<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.counters.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
