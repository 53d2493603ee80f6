//! Answers and errors in the door's form: the error body of section 7, and the headers of every
//! answer.

use super::door::{Context, Reply};
use super::output::Answer;
use crate::error::{Code, Error};
use rouille::{Response, ResponseBody};
use serde_json::json;
use std::borrow::Cow;

/// Seconds after which a client may try again what was refused for want of room.
const RETRY_AFTER_SECONDS: &str = "1";

/// The policy of an answer that has none of its own: a browser that shows it runs and loads nothing, in no frame.
const NO_CONTENT_OF_ITS_OWN: &str = "default-src 'none'; frame-ancestors 'none'";

type Headers = Vec<(Cow<'static, str>, Cow<'static, str>)>;

/// An error's body. A fault of ours shows nothing but its code and the request id.
pub(super) fn error(error: &Error, context: &Context) -> Response {
    let code = error.code();
    let body = json!({"error": {
        "code": code.text(),
        "message": error.message(),
        "details": error.details(),
        "requestId": request_id(context),
    }});
    let mut headers: Headers = vec![("content-type".into(), "application/json".into())];
    match code {
        Code::Overloaded
        | Code::DatabaseUnavailable
        | Code::AuditUnavailable
        | Code::ShuttingDown
        | Code::TooManyRequests => {
            headers.push(("retry-after".into(), RETRY_AFTER_SECONDS.into()));
        }
        Code::Unauthenticated => headers.push(("www-authenticate".into(), "Bearer".into())),
        _ => {}
    }
    with_common(
        Response {
            status_code: code.status(),
            headers,
            data: ResponseBody::from_data(body.to_string()),
            upgrade: None,
        },
        context,
    )
}

/// A handler's answer.
pub(super) fn answer(answer: Answer, context: &Context) -> Reply {
    match answer {
        Answer::Full {
            status,
            content_type,
            headers,
            body,
        } => {
            let mut all: Headers = Vec::with_capacity(headers.len() + 6);
            if let Some(content_type) = content_type {
                all.push(("content-type".into(), content_type.into()));
            }
            all.extend(
                headers
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into())),
            );
            Reply::Full(with_common(
                Response {
                    status_code: status,
                    headers: all,
                    data: ResponseBody::from_data(body),
                    upgrade: None,
                },
                context,
            ))
        }
        Answer::Shared {
            content_type,
            headers,
            body,
        } => {
            let given = [("content-type", content_type.to_owned())];
            let all = given.into_iter().chain(headers);
            let head = Response {
                status_code: 200,
                headers: all
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                data: ResponseBody::empty(),
                upgrade: None,
            };
            Reply::Shared {
                head: with_common(head, context),
                body,
            }
        }
        Answer::Stream(following) => Reply::Stream {
            head: with_common(
                Response {
                    status_code: 200,
                    headers: vec![
                        ("content-type".into(), "text/event-stream".into()),
                        ("x-accel-buffering".into(), "no".into()),
                    ],
                    data: ResponseBody::empty(),
                    upgrade: None,
                },
                context,
            ),
            body: following.into_body(),
        },
    }
}

/// The head of a reply, to add headers to.
pub(super) fn head(reply: &mut Reply) -> &mut Response {
    match reply {
        Reply::Full(response) => response,
        Reply::Shared { head, .. } | Reply::Stream { head, .. } => head,
    }
}

/// `req-<uuid>` (section 7).
fn request_id(context: &Context) -> String {
    format!("req-{}", context.request_id())
}

/// Adds a header that the answer has not.
pub(super) fn add_missing(response: &mut Response, name: &'static str, value: &'static str) {
    let headers = &mut response.headers;
    if !headers
        .iter()
        .any(|(own, _)| own.eq_ignore_ascii_case(name))
    {
        headers.push((name.into(), value.into()));
    }
}

/// Adds the headers that every answer has.
pub(super) fn with_common(mut response: Response, context: &Context) -> Response {
    add_missing(&mut response, "cache-control", "no-store");
    add_missing(
        &mut response,
        "content-security-policy",
        NO_CONTENT_OF_ITS_OWN,
    );
    response
        .headers
        .push(("x-content-type-options".into(), "nosniff".into()));
    response
        .headers
        .push(("x-request-id".into(), request_id(context).into()));
    // A page of the console that is open over an upgrade sees by it that it is old.
    response
        .headers
        .push(("x-agent-runtime-build".into(), super::console::BUILD.into()));
    response
}
