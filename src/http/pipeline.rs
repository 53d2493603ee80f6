//! The pipeline of every request: find the route, check access, call the handler, build the answer.
//! It is the [`App`] behind the door.

use super::access::Rule;
use super::context::{Cx, Description, Known, Matched, Parameters, Shared};
use super::door::{App, Context, Reply, Responder};
use super::probes::Probes;
use super::route::{Found, Route, Table};
use super::span::RequestSpan;
use super::{cors, origin, reply};
use crate::authz::Tickets;
use crate::error::{Code, Error, Result};
use crate::outbound::Peer;
use rouille::Response;
use std::sync::{Arc, OnceLock};

/// The service behind the door.
pub struct Pipeline {
    shared: Arc<Shared>,
    table: Arc<Table>,
    description: Description,
    probes: Arc<Probes>,
    log: slog::Logger,
}

impl Pipeline {
    /// Puts the service together.
    pub fn new(shared: Arc<Shared>, table: Table, probes: Arc<Probes>, log: slog::Logger) -> Self {
        let table = Arc::new(table);
        let described = Arc::clone(&table);
        Self {
            shared,
            table,
            description: Description::new(Box::new(move || {
                super::openapi::text(&described).into()
            })),
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
        tickets: &Tickets,
        span: &mut RequestSpan,
    ) -> Reply {
        let (route, parameters) = match self.locate(context) {
            Ok(located) => located,
            Err(refusal) => return Reply::Full(refusal),
        };
        let cx = Cx {
            shared: &self.shared,
            request,
            parameters,
            context,
            description: &self.description,
            log: context.log(&self.log),
            body: OnceLock::new(),
            identified: OnceLock::new(),
            matched: Matched {
                method: route.method.text(),
                path: route.path,
                capability: route.capability,
                body_bytes: route.body_bytes,
                is_stream: route.is_stream(),
            },
            facts: OnceLock::new(),
            tickets,
        };
        let called = self
            .ready_for(route)
            .and_then(|()| checked_length(route, &cx))
            .and_then(|()| route.call(&cx));
        span.found(route.path, &Known::new(cx.identified.get(), &cx.parameters));
        match called {
            Ok(answer) => reply::answer(answer, context),
            Err(error) => {
                note(&cx.known_log(), &self.shared, route, &error);
                Reply::Full(reply::error(&error, context))
            }
        }
    }

    /// What is looked at before more of a body is read: who asks, and from where.
    fn known(&self, route: &Route, context: &Context) -> Result<()> {
        match route.rule {
            Rule::SigningIn => origin::signing_in(self.shared.authn.sign_in(), context).map(drop),
            Rule::Returning => origin::returning(self.shared.authn.sign_in(), context).map(drop),
            _ if route.rule.needs_bearer() => {
                origin::credential(&self.shared.authn, context, route.is_stream()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The route of a request, or the answer to one that has none.
    fn locate<'c>(&self, context: &'c Context) -> Result<(&Route, Parameters<'c>), Response> {
        let path = path_of(context);
        match self.table.find(context.method(), path) {
            Found::Route(route, parameters) => Ok((route, parameters)),
            Found::OtherMethods(routes) => Err(self.other_method(&routes, context)),
            Found::Nothing if Probes::has(path) => Err(not_taken("GET, HEAD", context)),
            Found::Nothing => Err(reply::error(&nothing_here(), context)),
        }
    }

    /// While the server is not ready, only what needs no database is answered.
    fn ready_for(&self, route: &Route) -> Result<()> {
        if matches!(route.rule, Rule::Open(_)) {
            return Ok(());
        }
        self.missing().map_or(Ok(()), Err)
    }

    /// What every answer carries: the trace, and on some routes the headers for
    /// browsers.
    fn dress(&self, response: &mut Response, context: &Context) {
        self.looks(context).put_on(response, context);
    }

    fn looks(&self, context: &Context) -> Looks {
        let found = self.table.find(context.method(), path_of(context));
        let cross_origin = matches!(found, Found::Route(route, _) if route.cross_origin);
        Looks(cross_origin.then(|| Arc::clone(&self.shared)))
    }

    fn other_method(&self, routes: &[&Route], context: &Context) -> Response {
        if context.method() == "OPTIONS"
            && routes.iter().any(|route| route.cross_origin)
            && let Some(preflight) = cors::preflight(&self.shared.allowed_origins, context)
        {
            return preflight;
        }
        let mut methods: Vec<&str> = routes.iter().map(|route| route.method.text()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        not_taken(&methods.join(", "), context)
    }
}

/// What an answer carries beside itself. Browsers on other origins may have it where the service's
/// settings are given; nowhere else does a browser let their pages take it in, as a script or an image either.
struct Looks(Option<Arc<Shared>>);

impl Looks {
    fn put_on(&self, response: &mut Response, context: &Context) {
        let trace = context.trace().traceresponse();
        response
            .headers
            .push(("traceresponse".into(), trace.into()));
        match &self.0 {
            Some(shared) => cors::add(&shared.allowed_origins, context, response),
            None => reply::add_missing(response, "cross-origin-resource-policy", "same-origin"),
        }
    }
}

fn not_taken(allow: &str, context: &Context) -> Response {
    let error = Error::new(
        Code::MethodNotAllowed,
        format!(
            "This path does not take {}. It takes {allow}.",
            context.method()
        ),
    );
    let mut response = reply::error(&error, context);
    response
        .headers
        .push(("allow".into(), allow.to_owned().into()));
    response
}

pub(crate) fn nothing_here() -> Error {
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

/// Logs a refusal: our faults as errors with cause and source location, unavailable parts as
/// warnings unless the log has told of their outage, the client's faults at debug.
fn note(log: &slog::Logger, shared: &Shared, route: &Route, error: &Error) {
    let (method, path) = (route.method.text(), route.path);
    let error_value = crate::log::ErrorValue(error);
    match error.code() {
        Code::Internal => {
            slog::error!(log, "A request failed"; "method" => method, "route" => path, error_value);
        }
        Code::DatabaseUnavailable | Code::DeadlineExceeded => {
            crate::warn_unless!(shared.store.is_away(), log, "The database could not be reached for a request"; "method" => method, "route" => path, error_value);
        }
        Code::AuthorizationUnavailable => {
            crate::warn_unless!(shared.outbound.is_away(Peer::AuthorizationServer) || shared.store.is_away(), log, "A request could not be checked"; "method" => method, "route" => path, error_value);
        }
        Code::AuditUnavailable => {
            crate::warn_unless!(shared.store.is_away(), log, "A request's decision could not be recorded"; "method" => method, "route" => path, error_value);
        }
        _ => {
            slog::debug!(log, "A request was refused"; "method" => method, "route" => path, error_value);
        }
    }
}

impl App for Pipeline {
    fn probe(&self, context: &Context) -> Option<Response> {
        let answer = self.probes.answer(context.method(), path_of(context))?;
        let mut answer = reply::with_common(answer, context);
        self.dress(&mut answer, context);
        Some(answer)
    }

    fn admit(&self, _: &rouille::Request, context: &Context) -> Result<u64, Response> {
        let admitted = self.locate(context).and_then(|(route, parameters)| {
            self.ready_for(route)
                .and_then(|()| self.known(route, context))
                .map(|()| route.body_bytes)
                .map_err(|error| {
                    let known = Known::new(None, &parameters);
                    let log = context.log(&self.log).new(slog::o!(known));
                    note(&log, &self.shared, route, &error);
                    reply::error(&error, context)
                })
        });
        admitted.map_err(|mut refusal| {
            self.dress(&mut refusal, context);
            refusal
        })
    }

    fn handle(&self, request: &rouille::Request, responder: Responder) {
        let context = Arc::clone(responder.context());
        let tickets = Tickets::default();
        let mut span = RequestSpan::begin(&self.shared, &context);
        let mut reply = self.answer(request, &context, &tickets, &mut span);
        let head = reply::head(&mut reply);
        let status = head.status_code;
        self.dress(head, &context);
        if tickets.is_empty() {
            span.end(&self.shared, status);
            return responder.send(reply);
        }
        // The thread that writes the record releases the answer (`audit-before-commit`): this one, if no
        // other writes.
        let (ready, looks) = (responder.prepare(reply), self.looks(&context));
        let (log, shared) = (self.log.clone(), Arc::clone(&self.shared));
        tickets.then(move |recorded| match recorded {
            Ok(()) => {
                span.end(&shared, status);
                ready.send();
            }
            Err(error) => {
                span.end(&shared, error.code().status());
                crate::warn_unless!(shared.store.is_away(), context.log(&log), "An answer is withheld: its decision could not be recorded"; crate::log::ErrorValue(&error));
                let mut refusal = reply::error(&error, &context);
                looks.put_on(&mut refusal, &context);
                ready.send_instead(Reply::Full(refusal));
            }
        });
    }

    fn refuse(&self, error: &Error, context: &Context) -> Response {
        let mut response = reply::error(error, context);
        self.dress(&mut response, context);
        response
    }
}
