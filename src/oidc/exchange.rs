//! One exchange with a provider: several requests under one deadline, each with a bound on its answer, none redirected.

use super::fault::{Code, Fault};
use crate::ids::{Clock, http_date};
use crate::outbound::{Client, Method, Outbound, Outgoing, Peer, Policy, Response, Timeouts};
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use url::Url;

/// Bytes of an answer: of a document, of keys, of a token call, of userinfo.
pub(super) const ANSWER_BYTES: u64 = 64 * 1024;

/// How much time providers took.
#[derive(Debug, Default)]
pub(super) struct Figures {
    requests: AtomicU64,
    microseconds: AtomicU64,
}

impl Figures {
    fn add(&self, took: Duration) {
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// How many requests there were, and how long they took together.
    pub(super) fn all(&self) -> (u64, Duration) {
        let microseconds = self.microseconds.load(Ordering::Relaxed);
        let requests = self.requests.load(Ordering::Relaxed);
        (requests, Duration::from_micros(microseconds))
    }
}

/// Several requests to one provider.
pub(super) struct Exchange<'a> {
    outbound: &'a Outbound,
    policy: Policy,
    client: Client,
    timeout: Duration,
    pub(super) deadline: Instant,
    figures: &'a Figures,
}

impl<'a> Exchange<'a> {
    pub(super) fn begin(
        outbound: &'a Outbound,
        policy: Policy,
        timeout: Duration,
        figures: &'a Figures,
    ) -> Self {
        let client = outbound.client_through_proxy(policy, timeouts(timeout));
        Self {
            outbound,
            policy,
            client: client.to(Peer::IdentityProvider),
            timeout,
            deadline: Instant::now() + timeout,
            figures,
        }
    }

    /// The fault of a provider that takes too long. `what` is the subject of a sentence.
    pub(super) fn late(&self, what: &str) -> Fault {
        let milliseconds = self.timeout.as_millis();
        let sentence = format!(
            "{what} did not come within the {milliseconds} ms that all requests of a sign-in have together \
             (SVC_SIGN_IN_TIMEOUT_MS)."
        );
        Fault::new(Code::Unavailable, sentence)
    }

    fn send(&mut self, what: &str, outgoing: &Outgoing<'_>) -> Result<Response, Fault> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.late(what));
        }
        self.client.set_timeouts(timeouts(left));
        let began = Instant::now();
        let answer = self.client.send(outgoing);
        self.figures.add(began.elapsed());
        let answer = answer.map_err(|failure| Fault::of_failure(what, &failure))?;
        match answer.status {
            300..=399 => Err(Fault::new(
                Code::Redirected,
                format!(
                    "{what} is answered with a redirect (HTTP {}), which is not followed.",
                    answer.status
                ),
            )),
            500.. => Err(Fault::new(
                Code::Unavailable,
                format!("{what} is answered with HTTP {}.", answer.status),
            )),
            _ => Ok(answer),
        }
    }

    /// Gets JSON.
    pub(super) fn get(
        &mut self,
        what: &str,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response, Fault> {
        let all = [&[("accept", "application/json")][..], headers].concat();
        self.send(
            what,
            &Outgoing {
                method: Method::GET,
                url,
                headers: &all,
                body: &[],
                cap: ANSWER_BYTES,
            },
        )
    }

    /// Posts a form.
    pub(super) fn post(
        &mut self,
        what: &str,
        url: &str,
        headers: &[(&str, &str)],
        form: &str,
    ) -> Result<Response, Fault> {
        let form_headers = [
            ("accept", "application/json"),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let all = [&form_headers[..], headers].concat();
        self.send(
            what,
            &Outgoing {
                method: Method::POST,
                url,
                headers: &all,
                body: form.as_bytes(),
                cap: ANSWER_BYTES,
            },
        )
    }

    /// Judges a URL of a provider's document as one that the provider was registered with.
    pub(super) fn judge(&self, name: &str, text: &str, scheme: &str) -> Result<Url, Fault> {
        let refused = |why: String| {
            let sentence = format!("The provider's {name} {why}");
            Fault::new(Code::EndpointRefused, sentence)
        };
        let url = self.outbound.check_url(self.policy, text);
        let url =
            url.map_err(|error| refused(format!("is not to be used. {}", error.message())))?;
        match url.scheme() == scheme {
            true => Ok(url),
            false => Err(refused(format!(
                "begins with {}, and its issuer with {scheme}.",
                url.scheme()
            ))),
        }
    }
}

/// A body that has to be JSON of this form.
pub(super) fn read<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|error| {
        // Of the error only where it is: it may repeat what was sent.
        let sentence = format!(
            "{what} is not JSON of the form that the standard gives (line {}, column {}).",
            error.line(),
            error.column()
        );
        Fault::new(Code::AnswerMalformed, sentence)
    })
}

/// The answer 200, or a fault.
pub(super) fn expect_ok(what: &str, answer: Response) -> Result<Response, Fault> {
    match answer.status {
        200 => Ok(answer),
        status => Err(Fault::new(
            Code::AnswerMalformed,
            format!("{what} is answered with HTTP {status}."),
        )),
    }
}

fn timeouts(left: Duration) -> Timeouts {
    Timeouts {
        connect: left,
        first_byte: left,
        idle: None,
        total: left,
    }
}

/// How far the other side's clock is ahead of ours, in seconds, by the time at which it says that it answered.
pub(super) fn ahead(answer: &Response, clock: &Clock) -> Option<i64> {
    let at = http_date(answer.headers.get("date")?.to_str().ok()?)?;
    Some(at.unix_timestamp() - clock.now().unix_timestamp())
}
