//! CORS. It covers only routes that accept a public run token, and only the origins that the
//! operator lists (section 1.3). Without a list no route has a CORS header.

use super::door::Context;
use rouille::{Response, ResponseBody};

fn allowed<'a>(origins: &'a [String], context: &Context) -> Option<&'a String> {
    let origin = context.header("origin")?;
    origins.iter().find(|allowed| *allowed == origin)
}

/// Adds the headers to an answer, errors included, so that the page can read why.
pub(super) fn add(origins: &[String], context: &Context, response: &mut Response) {
    if origins.is_empty() {
        return;
    }
    response.headers.push(("vary".into(), "Origin".into()));
    if let Some(origin) = allowed(origins, context) {
        response
            .headers
            .push(("access-control-allow-origin".into(), origin.clone().into()));
        response.headers.push((
            "access-control-expose-headers".into(),
            "x-request-id, traceresponse".into(),
        ));
    }
}

/// The answer to a browser that asks first, if its origin is listed.
pub(super) fn preflight(origins: &[String], context: &Context) -> Option<Response> {
    context.header("access-control-request-method")?;
    allowed(origins, context)?;
    let mut response = Response {
        status_code: 204,
        headers: vec![
            ("access-control-allow-methods".into(), "GET".into()),
            (
                "access-control-allow-headers".into(),
                "authorization, last-event-id, traceparent, tracestate".into(),
            ),
            ("access-control-max-age".into(), "600".into()),
        ],
        data: ResponseBody::empty(),
        upgrade: None,
    };
    add(origins, context, &mut response);
    Some(response)
}
