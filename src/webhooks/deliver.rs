//! The worker: one job, one attempt at one delivery.
//!
//! The attempt begins when the job is claimed (`begin`). The request is signed and sent over a
//! connection of its own. Then the attempt is written together with others (`finish`). If the
//! thread has another delivery to make, it does not wait for that.
//!
//! Nothing is sent after the job's lease would run out without a renewal. So if a job was claimed
//! before and not handed back, the outcome of that attempt is lost, usually by a crash. It counts as
//! a failed connection. If nothing was sent because of a fault of the service itself, the job is
//! handed back, and no attempt counts.

use super::begin::Ready;
use super::job::Deliver;
use super::made::{Begun, Made, Waiter, anothers};
use super::reason::Reason;
use super::turns::Turn;
use super::{Inner, retry_schedule, sign};
use crate::error::{Code, Error, Result};
use crate::outbound::{Client, Failure, Kind, Method, Outgoing, Stream, Timeouts};
use crate::secret::Secret;
use crate::secrets::{SecretRef, Unreadable};
use crate::store::webhook_attempts::{self as rows, AttemptOutcome, Ended, Wanted};
use crate::store::webhook_deliveries::ToFail;
use crate::store::{Tx, queue_error};
use jobs::{Claimed, Outcome};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What is kept of an answer, in bytes.
const ANSWER_BYTES: usize = 16 * 1024;
/// How long the body of an answer is waited for once its head has said the status.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// How long reading the secrets may take, beside the time of the exchange.
const SECRETS_TIME: Duration = Duration::from_secs(6);
/// How long, of that, the earlier ones may take: the one that stands is enough to send.
const EARLIER_TIME: Duration = Duration::from_secs(5);
/// How long, of that, a database that is away is asked again, and the wait between.
const DATABASE_TIME: Duration = Duration::from_secs(4);
const DATABASE_WAIT: Duration = Duration::from_millis(50);
/// Beyond the last moment at which something is sent.
const SLACK: Duration = Duration::from_secs(1);
/// An attempt that takes longer is slow.
const QUICK: Duration = Duration::from_secs(2);
/// How long after it was begun an attempt is made at the latest.
const LATEST_BEGINNING: Duration = Duration::from_secs(5);
/// How long what was read with a claim may wait for a thread. After that the attempt begins anew: it has its time for itself,
/// and sends what stands by then.
const FRESH: Duration = Duration::from_secs(1);
/// Signatures in one header at most.
const SIGNATURES_MOST: usize = 2;
/// How long a delivery waits for which nothing was sent.
const GIVEN_BACK_WAIT: Duration = Duration::from_secs(1);
/// And one that could not be looked at.
const FAULT_WAIT: Duration = Duration::from_secs(3);
/// Of what is kept for a person, in characters.
const MESSAGE_CHARACTERS: usize = 1000;
const USER_AGENT: &str = "Svc-Webhooks/1";

/// What a delivery came to whose attempt has not begun.
enum Instead {
    /// There is nothing to do any more.
    Ended,
    /// An earlier attempt whose outcome was lost was written, and the job ended.
    Recovered {
        outcome: AttemptOutcome,
        turns: Vec<Turn>,
        made: Vec<Made>,
    },
    /// The endpoint is not registered any more: the delivery failed, and the job was ended.
    Unregistered,
    /// It is to be looked at again after this time.
    Later(Duration),
}

/// How an attempt went.
enum Went {
    /// It was made: how it ended, and how long a wait the receiver asks for.
    Ended(Ended, Option<Duration>),
    /// Nothing was sent, and that is the service's own fault; why.
    NotMade(Error),
}

/// The service's own database is away: the reason why an attempt was not made.
fn away(sentence: impl Into<String>) -> Error {
    Error::new(Code::DatabaseUnavailable, sentence)
}

/// Handles a job.
pub(super) fn deliver(inner: &Inner, claimed: &Claimed, job: &Deliver) -> Outcome {
    let log = inner.log.new(slog::o!(
        "tenantId" => job.tenant_id.to_string(),
        "endpointId" => job.endpoint_id.to_string(),
        "deliveryId" => job.delivery_id.to_string()));
    match attempt(inner, claimed, job, &log) {
        Ok(outcome) => outcome,
        Err(error) if error.code() == Code::Conflict => {
            slog::debug!(log, "The delivery's job is another's now");
            Outcome::retry(error.to_string())
        }
        Err(error) => {
            crate::warn_unless!(inner.store.is_away(), log, "A delivery could not be worked on; it will be tried again"; crate::log::ErrorValue(&error));
            // Nothing was sent; a retry would say that something may have been.
            Outcome::Snooze { after: FAULT_WAIT }
        }
    }
}

fn attempt(inner: &Inner, claimed: &Claimed, job: &Deliver, log: &slog::Logger) -> Result<Outcome> {
    let read = claimed.take_beside::<Ready>();
    let ready = match read.filter(|ready| ready.read_at.elapsed() <= FRESH) {
        Some(ready) => Some(ready),
        None if hides_an_attempt(claimed) => None,
        None => inner.begin(claimed, job)?,
    };
    let Some(ready) = ready else {
        return instead(inner, claimed, job);
    };
    let began = Instant::now();
    let went = match ready.since.elapsed() > LATEST_BEGINNING {
        true => Went::NotMade(away("It waited too long for the database.")),
        false => make(inner, claimed, job, &ready),
    };
    let attempt = &ready.begun;
    if claimed.lost() {
        // Whoever has the job now finds that it was claimed before.
        return Ok(Outcome::retry("the job was lost during the attempt"));
    }
    let (mut ended, asked) = match went {
        Went::Ended(ended, asked) => (ended, asked),
        Went::NotMade(why) => {
            slog::info!(log, "An attempt could not be made, and does not count"; "attempt" => attempt.number, crate::log::ErrorValue(&why));
            return Ok(Outcome::Snooze {
                after: GIVEN_BACK_WAIT,
            });
        }
    };
    let duration = began.elapsed();
    (ended.duration, ended.is_slow) = (Some(duration), duration > QUICK);
    let message = ended.message.as_deref().unwrap_or_default();
    slog::debug!(log, "Attempt ended"; "attempt" => attempt.number, "reason" => ended.reason,
        "status" => ended.status, "because" => message);
    let begun = Begun {
        number: attempt.number,
        at: began,
    };
    let made = Made::of(claimed, job, begun, ended, asked);
    let waiter = Waiter {
        token: claimed.token(),
        later: claimed.later(),
        log: log.clone(),
    };
    let finish = |all| inner.finish_all(all);
    inner.finishing.put((made, waiter), finish);
    Ok(Outcome::EndedByHandler)
}

/// An earlier claim of the job was lost, and what came of it is not known.
fn hides_an_attempt(claimed: &Claimed) -> bool {
    claimed.attempt() > 1
}

/// How long after its beginning an attempt is over: whatever it does takes less.
pub(super) fn within(inner: &Inner) -> Duration {
    inner.options.timeout + SECRETS_TIME + SLACK
}

/// What else there is to do where the attempt has not begun.
fn instead(inner: &Inner, claimed: &Claimed, job: &Deliver) -> Result<Outcome> {
    let instead = inner.store.transact(|tx| take(inner, tx, claimed, job))?;
    Ok(match instead {
        Instead::Ended => Outcome::Done,
        Instead::Recovered {
            outcome,
            turns,
            made,
        } => {
            inner.tell(&turns, &made);
            inner.count(Some(Reason::ConnectionFailed), outcome);
            Outcome::EndedByHandler
        }
        Instead::Unregistered => {
            inner.counts.unregistered(1);
            Outcome::EndedByHandler
        }
        Instead::Later(after) => Outcome::Snooze { after },
    })
}

fn take(inner: &Inner, tx: &mut Tx<'_>, claimed: &Claimed, job: &Deliver) -> Result<Instead> {
    let (tenant_id, delivery_id) = (job.tenant_id, job.delivery_id);
    let is_registered = rows::hold_endpoint(tx, tenant_id, job.endpoint_id)?;
    let Some(waiting) = rows::take(tx, tenant_id, delivery_id, claimed.id())? else {
        return Ok(Instead::Ended);
    };
    if is_registered && hides_an_attempt(claimed) {
        let ended = Ended {
            reason: Some(Reason::ConnectionFailed.text()),
            message: Some("The server stopped during the attempt.".to_owned()),
            ..Ended::default()
        };
        let now = Instant::now();
        let begun = Begun {
            number: waiting.attempts + 1,
            at: now.checked_sub(waiting.due_ago).unwrap_or(now),
        };
        let made = Made::of(claimed, job, begun, ended, None);
        let made = vec![made];
        let (mut ended, turns) = inner.finish_in(tx, &made)?;
        let outcome = ended.pop().flatten().ok_or_else(anothers)?;
        return Ok(Instead::Recovered {
            outcome,
            turns,
            made,
        });
    }
    if is_registered {
        return match waiting.has_event {
            true => Ok(Instead::Later(SLACK)),
            false => Err(Error::internal("a delivery waits whose event was dropped")),
        };
    }
    let to_fail = ToFail {
        endpoint_id: job.endpoint_id,
        delivery_id: Some(delivery_id),
        limit: 1,
    };
    if inner.fail_waiting(tx, tenant_id, to_fail)? == 0 {
        return Ok(Instead::Later(SLACK));
    }
    claimed.complete_in(tx.raw()).map_err(job_error)?;
    Ok(Instead::Unregistered)
}

/// The queue's error as ours. A job that is no longer this claim's rolls the transaction back.
fn job_error(error: jobs::Error) -> Error {
    match error {
        jobs::Error::LeaseLost | jobs::Error::Cancelled => anothers().because(error),
        other => queue_error(other),
    }
}

/// Makes the attempt.
fn make(inner: &Inner, claimed: &Claimed, job: &Deliver, ready: &Ready) -> Went {
    let attempt = &ready.begun;
    let timestamp = inner.clock.now().unix_timestamp();
    let signature = match inner.signature(job.tenant_id, attempt, timestamp, ready.since) {
        Ok(signature) => signature,
        Err(went) => return went,
    };
    let timeouts = Timeouts {
        connect: inner.options.timeout,
        first_byte: inner.options.timeout,
        idle: None,
        total: inner.options.timeout,
    };
    // A client of its own: no connection outlives the check of its address.
    let mut client = inner.outbound.client(inner.options.policy(), timeouts);
    client.set_well(claimed.key_cap() != Some(inner.options.cap(false)));
    let handle = client.cancel_handle();
    claimed.token().on_lost(move || handle.cancel());
    match send(&mut client, attempt, timestamp, &signature) {
        Ok(stream) => answered(inner, stream),
        Err(failure) if failure.kind() == Kind::Busy => {
            Went::NotMade(Error::new(Code::Overloaded, failure.message()))
        }
        Err(failure) => {
            let mut ended = failed(Reason::from(&failure), failure.message());
            ended.address = failure.address();
            Went::Ended(ended, None)
        }
    }
}

fn send(
    client: &mut Client,
    attempt: &rows::Begun,
    timestamp: i64,
    signature: &str,
) -> Result<Stream, Failure> {
    client.open(&Outgoing {
        method: Method::POST,
        url: &attempt.url,
        headers: &[
            ("content-type", "application/json"),
            ("user-agent", USER_AGENT),
            ("webhook-id", &attempt.event_id.to_string()),
            ("webhook-timestamp", &timestamp.to_string()),
            ("webhook-signature", signature),
        ],
        body: attempt.body.as_bytes(),
        // How long an answer is said to be does not matter: its beginning is kept.
        cap: u64::MAX,
    })
}

fn answered(inner: &Inner, stream: Stream) -> Went {
    let status = i16::try_from(stream.status).unwrap_or(i16::MAX);
    let mut ended = Ended {
        status: Some(status),
        address: stream.address(),
        ..Ended::default()
    };
    let mut asked = None;
    if !(200..300).contains(&stream.status) {
        ended.reason = Some(Reason::HttpStatus.text());
        asked = stream
            .header("retry-after")
            .and_then(|value| retry_schedule::retry_after(value, inner.clock.now()));
    }
    ended.answer = Some(stream.excerpt(ANSWER_BYTES, ANSWER_TIME));
    Went::Ended(ended, asked)
}

fn failed(reason: Reason, message: impl Into<String>) -> Ended {
    let message: String = message.into();
    Ended {
        reason: Some(reason.text()),
        // Postgres takes no NUL.
        message: Some(
            message
                .chars()
                .filter(|c| *c != '\0')
                .take(MESSAGE_CHARACTERS)
                .collect(),
        ),
        ..Ended::default()
    }
}

impl Inner {
    /// Begins an attempt that did not begin with its claim, or too long ago, if there is one to begin.
    fn begin(&self, claimed: &Claimed, job: &Deliver) -> Result<Option<Ready>> {
        let wanted = Wanted {
            tenant_id: job.tenant_id,
            endpoint_id: job.endpoint_id,
            delivery_id: job.delivery_id,
            job_id: claimed.id(),
            lease_id: claimed.lease_id(),
        };
        let since = Instant::now();
        let now = self.clock.now();
        let begun = self
            .store
            .transact(|tx| rows::begin(tx, wanted, within(self), now))?;
        Ok(begun.map(|begun| Ready::new(begun, since)))
    }

    /// The signatures of an attempt, or how it went without.
    fn signature(
        &self,
        tenant_id: Uuid,
        attempt: &rows::Begun,
        timestamp: i64,
        started: Instant,
    ) -> Result<String, Went> {
        let unusable = |message| Went::Ended(failed(Reason::SecretUnavailable, message), None);
        let mut was_away = false;
        let secrets = loop {
            match self.secrets(tenant_id, attempt, started + EARLIER_TIME) {
                Ok(secrets) => break secrets,
                Err((Unreadable::DatabaseAway(_), _)) if started.elapsed() < DATABASE_TIME => {
                    was_away = true;
                    std::thread::sleep(DATABASE_WAIT);
                }
                Err((Unreadable::DatabaseAway(_), message)) => {
                    return Err(Went::NotMade(away(message)));
                }
                Err((_, message)) => return Err(unusable(message)),
            }
        };
        // What is sent later than this could be in flight when the lease is over.
        if started.elapsed() > SECRETS_TIME {
            let message = "Reading the signing secret took too long.".to_owned();
            return Err(match was_away {
                true => Went::NotMade(away(message)),
                false => unusable(message),
            });
        }
        let id = attempt.event_id.to_string();
        sign::header(&secrets, &id, timestamp, &attempt.body).map_err(unusable)
    }

    /// What signs, the newest first: the endpoint's secret, and what it was before. That is the
    /// endpoint's earlier reference for its time, else the secret's own earlier value.
    fn secrets(
        &self,
        tenant_id: Uuid,
        attempt: &rows::Begun,
        until: Instant,
    ) -> Result<Vec<Secret>, (Unreadable, String)> {
        let reference = |(environment, name): &(String, String)| SecretRef {
            environment: environment.clone(),
            name: name.clone(),
        };
        let said = |at: &SecretRef, why: Unreadable| {
            let sentence = why.sentence(at);
            (why, sentence)
        };
        let at = reference(&attempt.secret);
        let signing = self
            .secrets
            .signing(tenant_id, &at, Some(attempt.stored.clone()), until);
        let mut secrets = signing.map_err(|why| said(&at, why))?;
        if let Some(previous) = &attempt.previous_secret {
            let at = reference(previous);
            let beside = self.secrets.beside(tenant_id, &at, until);
            // The one that stands signs whether or not the earlier one can still be read.
            if let Some(previous) = beside.map_err(|why| said(&at, why))? {
                secrets.truncate(SIGNATURES_MOST - 1);
                secrets.push(previous);
            }
        }
        secrets.truncate(SIGNATURES_MOST);
        Ok(secrets)
    }
}
