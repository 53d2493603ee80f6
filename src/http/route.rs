//! The route table: one list for dispatch, the API description, and the test that calls every
//! route.
//!
//! A route cannot be declared without its access check (`access-before-handler`). The handler's
//! first parameter after the context *is* the check; access, input and answer are inferred from the
//! signature. The server does not start if a path lacks the parameter that its access names, if two
//! routes have the same method and path or the same operation name, or if two types have the same
//! schema name.

use super::access::{Access, Rule};
use super::context::{Cx, Parameters};
use super::faults::BodySchema;
use super::input::Input;
use super::output::{Answer, Output};
use crate::error::{Code, Error, Result};
use crate::proof::Capability;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// When a route is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mount {
    /// Always.
    Always,
    /// With `SVC_CONSOLE`.
    Console,
    /// With `SVC_DOCS`.
    Docs,
    /// With a backend of secrets (`SVC_SECRETS_BACKEND`).
    Secrets,
    /// With `SVC_DEV_CONSOLE_LOGIN`.
    ConsoleLogin,
}

/// The methods in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads.
    Get,
    /// Makes or does.
    Post,
    /// Writes the whole, whether or not it stands.
    Put,
    /// Changes a part.
    Patch,
    /// Takes away.
    Delete,
}

impl Method {
    /// As it stands in a request line.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What clients call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `noun.verb`, such as `runs.create`; a noun within another stands between:
    /// `agents.versions.list`.
    Named(&'static str),
    /// It is no call of a client; the reason says why.
    Unnamed(&'static str),
}

impl Operation {
    /// The name, if it has one.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Unnamed(_) => None,
        }
    }

    /// At least two words, each of letters and with a small one first.
    fn is_well_formed(self) -> bool {
        let is_word = |word: &str| {
            word.starts_with(|first: char| first.is_ascii_lowercase())
                && word.chars().all(|letter| letter.is_ascii_alphabetic())
        };
        match self {
            Self::Named(name) => name.contains('.') && name.split('.').all(is_word),
            Self::Unnamed(why) => !why.is_empty(),
        }
    }
}

impl From<&'static str> for Operation {
    fn from(name: &'static str) -> Self {
        Self::Named(name)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Unnamed(why) => write!(f, "unnamed: {why}"),
        }
    }
}

type Run = Box<dyn Fn(&Cx<'_>) -> Result<Answer> + Send + Sync>;

/// What the API description says of a route's data.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The body's schema.
    pub body: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// The query parameters' schema: an object with a property each.
    pub query: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// The answer's schema.
    pub answer: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// The answer's content type; none for an empty answer.
    pub content_type: Option<&'static str>,
    /// The status of success.
    pub status: u16,
    /// The other status of success, if there is one.
    pub other_status: Option<u16>,
}

/// A header that a route reads.
#[derive(Clone, Copy)]
pub struct Header {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// The schema of its value.
    pub schema: fn() -> Value,
}

/// The header by which a client may send a request again (IETF draft "The Idempotency-Key HTTP Header Field").
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// A route.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, parameters in braces.
    pub path: &'static str,
    /// What clients call it.
    pub operation: Operation,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Who may.
    pub rule: Rule,
    /// What goes in and out.
    pub shape: Shape,
    /// Codes that it can answer beside those of the pipeline.
    pub codes: BTreeSet<Code>,
    /// What a key must say to be taken here.
    pub capability: Option<Capability>,
    /// When it is mounted.
    pub mount: Mount,
    /// The largest body in bytes; zero takes none.
    pub body_bytes: u64,
    /// Headers that it reads.
    pub headers: Vec<Header>,
    /// Browsers on other origins may call it (section 1.3, allowed origins).
    pub cross_origin: bool,
    run: Run,
    /// The body's schema, made when a body is refused.
    body_schema: OnceLock<Option<BodySchema>>,
}

/// The largest body of a route that says nothing else.
pub const BODY_BYTES: u64 = 256 * 1024;

/// Codes that every route can answer, because the door, the pipeline or the database gives them.
pub const COMMON_CODES: [Code; 11] = [
    Code::InvalidRequest,
    Code::RequestTimeout,
    Code::BodyTooLarge,
    Code::TooManyRequests,
    Code::HeadersTooLarge,
    Code::Internal,
    Code::Overloaded,
    Code::DatabaseUnavailable,
    Code::AuditUnavailable,
    Code::ShuttingDown,
    Code::DeadlineExceeded,
];

/// The one way to declare a route: the handler's first parameter after the context is the access
/// check.
pub fn route<A, I, O>(
    method: Method,
    path: &'static str,
    operation: impl Into<Operation>,
    summary: &'static str,
    handler: fn(&Cx<'_>, A, I) -> Result<O>,
) -> Route
where
    A: Access + 'static,
    I: Input + 'static,
    O: Output + 'static,
{
    let mut codes: BTreeSet<Code> = COMMON_CODES.into_iter().collect();
    codes.extend(A::codes());
    codes.extend(I::codes());
    Route {
        method,
        path,
        operation: operation.into(),
        summary,
        rule: A::rule(),
        shape: Shape {
            body: |generator| A::body(generator).or_else(|| I::body(generator)),
            query: I::query,
            answer: O::schema,
            content_type: O::CONTENT_TYPE,
            status: O::STATUS,
            other_status: O::OTHER_STATUS,
        },
        codes,
        capability: None,
        mount: Mount::Always,
        body_bytes: if A::TAKES_BODY || I::TAKES_BODY {
            BODY_BYTES
        } else {
            0
        },
        headers: Vec::new(),
        cross_origin: false,
        body_schema: OnceLock::new(),
        run: Box::new(move |cx| {
            let access = A::check(cx)?;
            let input = I::read(cx)?;
            handler(cx, access, input)?.answer()
        }),
    }
}

impl Route {
    /// Adds the codes that the handler itself answers.
    #[must_use]
    pub fn answers(mut self, codes: &[Code]) -> Self {
        self.codes.extend(codes);
        self
    }

    /// Reads a header that clients may send.
    #[must_use]
    pub fn reads(
        mut self,
        name: &'static str,
        meaning: &'static str,
        schema: fn() -> Value,
    ) -> Self {
        self.headers.push(Header {
            name,
            meaning,
            schema,
        });
        self
    }

    /// Takes a request again by its `Idempotency-Key`.
    #[must_use]
    pub fn repeatable(self, meaning: &'static str) -> Self {
        let schema = || json!({"type": "string", "minLength": 1, "maxLength": 255});
        self.reads(IDEMPOTENCY_KEY, meaning, schema)
    }

    /// Takes keys with this capability alone (section 2.1).
    #[must_use]
    pub fn needs(mut self, capability: Capability) -> Self {
        self.capability = Some(capability);
        self
    }

    /// Takes a larger body than [`BODY_BYTES`].
    #[must_use]
    pub fn takes(mut self, body_bytes: u64) -> Self {
        self.body_bytes = body_bytes;
        self
    }

    /// Mounts it under a condition.
    #[must_use]
    pub fn mounted(mut self, mount: Mount) -> Self {
        self.mount = mount;
        self
    }

    /// Lets browsers on the allowed origins call it.
    #[must_use]
    pub fn cross_origin(mut self) -> Self {
        self.cross_origin = true;
        self
    }

    /// It answers with events that do not end by themselves.
    pub fn is_stream(&self) -> bool {
        self.shape.content_type == Some("text/event-stream")
    }

    /// Runs the check, reads the input, calls the handler.
    ///
    /// # Errors
    /// Theirs. A code that the route does not list is a fault of ours: it is answered as `internal`.
    pub fn call(&self, cx: &Cx<'_>) -> Result<Answer> {
        (self.run)(cx).map_err(|error| {
            if self.codes.contains(&error.code()) {
                return self.with_every_fault(cx, error);
            }
            Error::internal(format!(
                "{} {} answered {}, which its declaration does not list: {error}",
                self.method.text(),
                self.path,
                error.code().text(),
            ))
        })
    }

    /// The error; of a body with everything else that is wrong with it.
    fn with_every_fault(&self, cx: &Cx<'_>, error: Error) -> Error {
        if error.code() != Code::InvalidBody {
            return error;
        }
        let schema = self
            .body_schema
            .get_or_init(|| BodySchema::of(self.shape.body));
        match (schema, cx.body()) {
            (Some(schema), Ok(body)) => schema.complete(error, body),
            _ => error,
        }
    }
}

/// Each operation has a name of its own, or a reason for none.
fn check_operations(routes: &[Route]) {
    let mut names = BTreeSet::new();
    for route in routes {
        let (method, operation) = (route.method.text(), route.operation);
        assert!(
            operation.is_well_formed(),
            "{method} {}: {operation:?} is no name such as runs.create",
            route.path
        );
        assert!(
            operation.name().is_none_or(|name| names.insert(name)),
            "{method} {}: another route has the name {operation}",
            route.path
        );
    }
}

/// Nouns of the API and what each of them is, for its description.
pub type Nouns = &'static [(&'static str, &'static str)];

/// Every mounted route, ready for dispatch.
pub struct Table {
    routes: Vec<Route>,
    nouns: Nouns,
    /// Indexes into `routes` by path.
    paths: matchit::Router<Vec<usize>>,
}

/// What a path and a method lead to.
pub enum Found<'t, 'p> {
    /// A route and its path parameters.
    Route(&'t Route, Parameters<'p>),
    /// The path is known; these are its methods, and the route of `GET` among them, if any.
    OtherMethods(Vec<&'t Route>),
    /// Nothing has this path.
    Nothing,
}

impl Table {
    /// Builds the table from every declared route.
    ///
    /// # Panics
    /// A declaration is wrong (see the module): found by every start and every test.
    #[must_use]
    pub fn new(routes: Vec<Route>, nouns: Nouns, mounted: impl Fn(Mount) -> bool) -> Self {
        let routes: Vec<Route> = routes
            .into_iter()
            .filter(|route| mounted(route.mount))
            .collect();
        check_operations(&routes);
        let mut by_path: std::collections::BTreeMap<&str, Vec<usize>> = Default::default();
        for (index, route) in routes.iter().enumerate() {
            for parameter in route.rule.parameters() {
                assert!(
                    route.path.contains(&format!("{{{parameter}}}")),
                    "{} {}: its access names {{{parameter}}}, its path does not",
                    route.method.text(),
                    route.path
                );
            }
            let same = by_path.entry(route.path).or_default();
            assert!(
                same.iter()
                    .all(|other| routes[*other].method != route.method),
                "{} {} is declared twice",
                route.method.text(),
                route.path
            );
            same.push(index);
        }
        let mut paths = matchit::Router::new();
        for (path, indexes) in by_path {
            if let Err(error) = paths.insert(path, indexes) {
                panic!("{path}: {error}");
            }
        }
        Self {
            routes,
            nouns,
            paths,
        }
    }

    /// Every mounted route.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The nouns of the API, mounted or not.
    pub fn nouns(&self) -> Nouns {
        self.nouns
    }

    /// Looks a request up. `HEAD` finds what `GET` finds.
    pub fn find<'t, 'p>(&'t self, method: &str, path: &'p str) -> Found<'t, 'p> {
        let Ok(found) = self.paths.at(path) else {
            return Found::Nothing;
        };
        let method = if method == "HEAD" { "GET" } else { method };
        let candidates = found.value.iter().map(|index| &self.routes[*index]);
        match candidates
            .clone()
            .find(|route| route.method.text() == method)
        {
            Some(route) => Found::Route(
                route,
                found
                    .params
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            ),
            None => Found::OtherMethods(candidates.collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::Open;
    use crate::http::input::Nothing;
    use crate::http::output::Asset;

    fn nothing(_: &Cx<'_>, _: Open, _: Nothing) -> Result<Asset> {
        Err(Error::internal("it is not called"))
    }

    fn get(path: &'static str, operation: impl Into<Operation>) -> Route {
        route(Method::Get, path, operation, "Reads", nothing)
    }

    #[test]
    fn a_name_is_a_noun_and_a_verb_and_a_reason_is_not_empty() {
        for name in ["runs.create", "agents.versions.list", "runs.checkUrl"] {
            assert!(Operation::Named(name).is_well_formed(), "{name}");
        }
        for name in [
            "",
            "runs",
            "runs.",
            ".create",
            "Runs.create",
            "runs.check-url",
        ] {
            assert!(!Operation::Named(name).is_well_formed(), "{name}");
        }
        assert!(Operation::Unnamed("a page").is_well_formed());
        assert!(!Operation::Unnamed("").is_well_formed());
    }

    #[test]
    #[should_panic(expected = "another route has the name a.get")]
    fn two_routes_of_one_name_refuse_to_start() {
        let routes = vec![get("/a", "a.get"), get("/b", "a.get")];
        let _ = Table::new(routes, &[], |_| true);
    }

    #[test]
    fn routes_without_a_name_are_as_many_as_there_are_reasons() {
        let page = Operation::Unnamed("a page");
        let table = Table::new(vec![get("/a", page), get("/b", page)], &[], |_| true);
        assert!(
            table
                .routes()
                .iter()
                .all(|route| route.operation.name().is_none())
        );
    }
}
