//! The frame around every request: find the route, check access, call the handler, answer in one
//! form. It is the [`App`] behind the door.

use super::access::Rule;
use super::context::{Cx, Shared};
use super::door::{App, Context, Reply, Responder};
use super::probes::Probes;
use super::route::{Found, Route, Table};
use super::{cors, reply};
use crate::error::{Code, Error, Result};
use crate::log::trace::TraceContext;
use std::sync::{Arc, OnceLock};

/// The service behind the door.
pub struct Frame {
    shared: Arc<Shared>,
    table: Table,
    description: String,
    probes: Arc<Probes>,
    log: slog::Logger,
}

impl Frame {
    /// Puts the service together.
    pub fn new(shared: Arc<Shared>, table: Table, probes: Arc<Probes>, log: slog::Logger) -> Self {
        Self {
            shared,
            description: super::openapi::document(&table).to_string(),
            table,
            probes,
            log,
        }
    }

    /// While the server is not ready, the database may be away or without its schema.
    fn missing(&self) -> Option<Error> {
        let reason = self.probes.missing("server")?;
        Some(Error::new(
            Code::DatabaseUnavailable,
            format!("The server is not ready. {reason}"),
        ))
    }

    fn answer(
        &self,
        request: &rouille::Request,
        context: &Arc<Context>,
        trace: &TraceContext,
    ) -> Reply {
        let path = path_of(context);
        let (route, parameters) = match self.table.find(context.method(), path) {
            Found::Route(route, parameters) => (route, parameters),
            Found::OtherMethods(routes) => return self.other_method(&routes, context),
            Found::Nothing => return Reply::Full(reply::error(&nothing_here(), context)),
        };
        let cx = Cx {
            shared: &self.shared,
            request,
            parameters,
            context,
            trace,
            description: &self.description,
            log: self.log.new(slog::o!(
                "requestId" => reply::request_id(context),
                "traceId" => trace.trace_id(),
                "spanId" => trace.span_id(),
            )),
            body: OnceLock::new(),
        };
        let ready = match (&route.rule, self.missing()) {
            (Rule::Open(_), _) | (_, None) => Ok(()),
            (_, Some(error)) => Err(error),
        };
        let called = ready
            .and_then(|()| checked_length(route, &cx))
            .and_then(|()| route.call(&cx));
        let mut reply = match called {
            Ok(answer) => reply::answer(answer, context),
            Err(error) => {
                note(&cx.log, route, &error);
                Reply::Full(reply::error(&error, context))
            }
        };
        if route.cross_origin {
            cors::add(
                &self.shared.allowed_origins,
                context,
                reply::head(&mut reply),
            );
        }
        reply
    }

    fn other_method(&self, routes: &[&Route], context: &Context) -> Reply {
        if context.method() == "OPTIONS"
            && routes.iter().any(|route| route.cross_origin)
            && let Some(preflight) = cors::preflight(&self.shared.allowed_origins, context)
        {
            return Reply::Full(preflight);
        }
        let mut methods: Vec<&str> = routes.iter().map(|route| route.method.text()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        let allow = methods.join(", ");
        let error = Error::new(
            Code::MethodNotAllowed,
            format!(
                "This path does not take {}. It takes {allow}.",
                context.method()
            ),
        );
        let mut response = reply::error(&error, context);
        response.headers.push(("allow".into(), allow.into()));
        Reply::Full(response)
    }
}

fn nothing_here() -> Error {
    Error::new(
        Code::RouteNotFound,
        "No route has this path. The routes are listed at /openapi.json.",
    )
}

fn path_of(context: &Context) -> &str {
    context.target().split('?').next().unwrap_or_default()
}

/// The door bounds bodies by what any route takes; a route may take less.
fn checked_length(route: &Route, cx: &Cx<'_>) -> Result<()> {
    if route.body_bytes == 0 {
        return Ok(());
    }
    let length = u64::try_from(cx.body()?.len()).unwrap_or(u64::MAX);
    if length <= route.body_bytes {
        return Ok(());
    }
    Err(Error::new(
        Code::BodyTooLarge,
        format!(
            "The body has {length} bytes; this route takes {}.",
            route.body_bytes
        ),
    )
    .detail("mostBytes", route.body_bytes))
}

/// What we did wrong goes to the log with its cause and its place; what the client did wrong, at
/// debug.
fn note(log: &slog::Logger, route: &Route, error: &Error) {
    if error.code().status() >= 500 {
        slog::error!(log, "A request failed";
            "method" => route.method.text(), "route" => route.path,
            crate::log::ErrorValue(error));
    } else {
        slog::debug!(log, "A request was refused";
            "method" => route.method.text(), "route" => route.path,
            crate::log::ErrorValue(error));
    }
}

impl App for Frame {
    fn probe(&self, method: &str, path: &str) -> Option<rouille::Response> {
        self.probes.answer(method, path)
    }

    fn admit(&self, _: &rouille::Request, context: &Context) -> Result<u64, rouille::Response> {
        let refused = |error: Error| Err(reply::error(&error, context));
        let Found::Route(route, _) = self.table.find(context.method(), path_of(context)) else {
            return refused(nothing_here());
        };
        if route.rule.needs_bearer()
            && let Err(error) = self
                .shared
                .authn
                .credential(context.header("authorization"))
        {
            return refused(error);
        }
        Ok(route.body_bytes)
    }

    fn handle(&self, request: &rouille::Request, responder: Responder) {
        let context = Arc::clone(responder.context());
        let trace =
            TraceContext::incoming(context.header("traceparent"), context.header("tracestate"));
        let mut reply = self.answer(request, &context, &trace);
        reply::head(&mut reply)
            .headers
            .push(("traceresponse".into(), trace.traceresponse().into()));
        responder.send(reply);
    }

    fn refuse(&self, error: &Error, context: &Context) -> rouille::Response {
        if error.code() == Code::Internal {
            slog::error!(self.log, "A request failed";
                "requestId" => reply::request_id(context), crate::log::ErrorValue(error));
        }
        reply::error(error, context)
    }
}
