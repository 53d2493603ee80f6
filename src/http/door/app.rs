//! The interface of the service behind the door.

use super::context::Context;
#[cfg(doc)]
use super::limits::Limits;
use super::reply::Responder;
use crate::error::Error;

/// What stands behind the door: the pipeline in production, small services in the tests.
pub trait App: Send + Sync + 'static {
    /// Answers a probe on the door's own thread, so it never blocks. `None`: not a probe.
    fn probe(&self, context: &Context) -> Option<rouille::Response>;

    /// Before more than [`Limits::small_body_bytes`] of a body is read, and only then: is the
    /// caller known and the route too, and how many bytes may the body have? On a request thread;
    /// the request's body is empty.
    fn admit(
        &self,
        head: &rouille::Request,
        context: &Context,
    ) -> std::result::Result<u64, rouille::Response>;

    /// A complete request, on a request thread, which is free again when this returns. The answer
    /// goes through `responder`, now or later, from any thread. `HEAD` arrives as `GET`.
    fn handle(&self, request: &rouille::Request, responder: Responder);

    /// The body of one of the door's own refusals, mostly on the door's thread, so it never blocks.
    /// `context` has the request id; without a readable header block its method and target are
    /// empty.
    fn refuse(&self, error: &Error, context: &Context) -> rouille::Response;
}
