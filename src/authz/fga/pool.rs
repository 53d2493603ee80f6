//! The connections to OpenFGA: a bounded pool, and one exchange with its safe repetition.

use super::failure::Failure;
use crate::outbound::{self, Kind, Method, Outbound, Outgoing, Peer, Policy, Timeouts};
use serde::Deserialize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest answer taken: a page of 100 tuples is about 100 KB at the most.
const ANSWER_CAP_BYTES: u64 = 1024 * 1024;
/// The longest code taken from an answer.
const MAX_CODE_BYTES: usize = 64;

pub(super) struct Pool {
    outbound: Outbound,
    base: String,
    limit: usize,
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    idle: Vec<outbound::Client>,
    in_use: usize,
    /// Since when a call is under way, or was, and none was answered. A call that fails without an
    /// answer does not end the silence.
    silent_since: Option<Instant>,
}

/// A connection on loan. Dropping it gives it back.
struct Loan<'a> {
    pool: &'a Pool,
    client: Option<outbound::Client>,
}

/// A request, and whether it may be sent again when the connection breaks under it.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: &'a [u8],
    pub(super) repeatable: bool,
}

impl Pool {
    pub(super) fn new(outbound: Outbound, base: String, limit: usize) -> Self {
        Self {
            outbound,
            base,
            limit: limit.max(1),
            state: Mutex::new(State {
                idle: Vec::new(),
                in_use: 0,
                silent_since: None,
            }),
            freed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn borrow(&self, deadline: Instant) -> Result<Loan<'_>, Failure> {
        let mut state = self.lock();
        while state.in_use >= self.limit {
            let left = left(deadline).ok_or(Failure::Busy)?;
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.in_use += 1;
        state.silent_since.get_or_insert_with(Instant::now);
        // The one used last, so that the others grow old and are closed.
        let idle = state.idle.pop();
        drop(state);
        Ok(Loan {
            pool: self,
            client: idle,
        })
    }

    pub(super) fn is_away(&self) -> bool {
        self.outbound.is_away(Peer::AuthorizationServer)
    }

    /// How long calls have waited without an answer to any of them.
    pub(super) fn silent_for(&self) -> Duration {
        let since = self.lock().silent_since;
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn answered(&self) {
        let mut state = self.lock();
        let others_wait = state.in_use > 1;
        state.silent_since = others_wait.then(Instant::now);
    }

    /// Sends the request and reads the answer's body. Anything but a 2xx is a failure.
    pub(super) fn exchange(
        &self,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Vec<u8>, Failure> {
        let url = format!("{}{}", self.base, request.path);
        let outgoing = Outgoing {
            method: request.method.clone(),
            url: &url,
            headers: &[("content-type", "application/json")],
            body: request.body,
            cap: ANSWER_CAP_BYTES,
        };
        let mut loan = self.borrow(deadline)?;
        let answer = match loan.send(&outgoing, deadline) {
            // Most often a kept connection that the other side had just closed.
            Err(failure) if failure.kind() == Kind::Reset && request.repeatable => {
                loan.send(&outgoing, deadline)
            }
            answer => answer,
        }?;
        self.answered();
        if (200..300).contains(&answer.status) {
            return Ok(answer.body);
        }
        Err(refusal(answer.status, &answer.body))
    }
}

impl Loan<'_> {
    fn send(
        &mut self,
        outgoing: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<outbound::Response, outbound::Failure> {
        let timeouts = timeouts(left(deadline).unwrap_or_default());
        let outbound = &self.pool.outbound;
        let new = || {
            let client = outbound.client(Policy::Operator, timeouts);
            client.to(Peer::AuthorizationServer)
        };
        let client = self.client.get_or_insert_with(new);
        client.set_timeouts(timeouts);
        client.send(outgoing)
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.in_use -= 1;
        state.idle.extend(self.client.take());
        drop(state);
        self.pool.freed.notify_one();
    }
}

fn timeouts(total: Duration) -> Timeouts {
    Timeouts {
        connect: total,
        first_byte: total,
        idle: None,
        total,
    }
}

fn left(deadline: Instant) -> Option<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}

/// What an answer other than a success says. Codes are stable across versions, texts are not.
fn refusal(status: u16, body: &[u8]) -> Failure {
    #[derive(Deserialize)]
    struct Refusal {
        code: String,
    }
    let code = serde_json::from_slice(body).map_or_else(|_| String::new(), |r: Refusal| r.code);
    let is_code = code.len() <= MAX_CODE_BYTES
        && code
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let code = if is_code { code } else { String::new() };
    match code.as_str() {
        "store_id_not_found" => Failure::StoreUnknown,
        "authorization_model_not_found" => Failure::ModelUnknown,
        _ => Failure::Refused { status, code },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_code_alone() {
        let refused = |status, code: &str| Failure::Refused {
            status,
            code: code.into(),
        };
        let long = format!(r#"{{"code":"{}"}}"#, "x".repeat(65));
        for (status, body, expected) in [
            (
                404,
                r#"{"code":"store_id_not_found"}"#,
                Failure::StoreUnknown,
            ),
            (
                400,
                r#"{"code":"authorization_model_not_found","message":"m"}"#,
                Failure::ModelUnknown,
            ),
            (
                400,
                r#"{"code":"validation_error","message":"store_id_not_found"}"#,
                refused(400, "validation_error"),
            ),
            (502, "<html>bad gateway</html>", refused(502, "")),
            (400, r#"{"code":"a\nb"}"#, refused(400, "")),
            (400, r#"{"code":12}"#, refused(400, "")),
            (400, long.as_str(), refused(400, "")),
        ] {
            assert_eq!(refusal(status, body.as_bytes()), expected, "{body}");
        }
    }
}
