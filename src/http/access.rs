//! Access checks of routes. Each kind is the type of a handler's parameter, and its check runs
//! before the handler (`access-before-handler`).

use super::context::Cx;
use super::input::{Described, read_body};
pub use super::rule::Rule;
use super::rule::parameter_of;
use crate::authn::Credential;
use crate::authz;
use crate::error::{Code, Error, Result};
use crate::ids;
use crate::proof::{Action, Admin, Authorized, Caller, Kind, Listing, Write};
use crate::store::agents::Agent;
use crate::store::approvals::for_reviewers::Approval;
use crate::store::changes::ChangeKind;
use crate::store::conversations::Conversation;
use crate::store::flows::{self, Flow};
use crate::store::projects::Project;
use crate::store::runs::Run;
use crate::store::users::Person;
use crate::store::{Find, tenants::Tenant};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::HashMap;
use std::marker::PhantomData;
use time::OffsetDateTime;
use uuid::Uuid;

/// What every check can answer beside what it is about.
const CHECK_CODES: [Code; 5] = [
    Code::Unauthenticated,
    Code::CsrfOriginMismatch,
    Code::PermissionDenied,
    Code::PublicRunTokenNotAllowed,
    Code::AuthorizationUnavailable,
];

/// What a check on an object of a kind can answer beside what it is about.
fn found_codes<K: Kind>() -> Vec<Code> {
    let mut codes = [&CHECK_CODES[..], &[Code::NotFound]].concat();
    if K::NAME == Project::NAME {
        codes.push(Code::KeyProjectMismatch);
    }
    codes
}

/// One way into a route.
pub trait Access: Sized {
    /// The access reads the body itself.
    const TAKES_BODY: bool = false;
    /// Who may.
    fn rule() -> Rule;
    /// The codes that the check can answer.
    fn codes() -> Vec<Code>;
    /// The body that the access reads, if any.
    fn body(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    /// Makes the check.
    ///
    /// # Errors
    /// The caller is not known or may not.
    fn check(cx: &Cx<'_>) -> Result<Self>;
}

/// Anybody may. Used for what describes the service, never for a tenant's data.
#[derive(Debug)]
pub struct Open(());

impl Access for Open {
    fn rule() -> Rule {
        Rule::Open("describes the service, holds no tenant's data")
    }
    fn codes() -> Vec<Code> {
        Vec::new()
    }
    fn check(_: &Cx<'_>) -> Result<Self> {
        Ok(Self(()))
    }
}

/// The holder of an enrolment code: the handler takes the code, and refuses any other.
#[derive(Debug)]
pub struct Enrolling(());

impl Access for Enrolling {
    fn rule() -> Rule {
        Rule::Enrolling
    }
    fn codes() -> Vec<Code> {
        vec![Code::Unauthenticated]
    }
    fn check(_: &Cx<'_>) -> Result<Self> {
        Ok(Self(()))
    }
}

impl Access for Caller {
    fn rule() -> Rule {
        Rule::Authenticated
    }
    fn codes() -> Vec<Code> {
        CHECK_CODES.to_vec()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        authz::as_caller(&cx.checker()?)
    }
}

/// The caller may do `A` to the tenant of the credential.
#[derive(Debug)]
pub struct OnTenant<A>(pub Authorized<Tenant, A>);

impl<A: Action> Access for OnTenant<A> {
    fn rule() -> Rule {
        Rule::OnTenant(A::NAME)
    }
    fn codes() -> Vec<Code> {
        CHECK_CODES.to_vec()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        authz::on_tenant(&cx.checker()?).map(Self)
    }
}

impl<K: Find, A: Action> Access for Authorized<K, A> {
    fn rule() -> Rule {
        Rule::OnPath {
            kind: K::NAME,
            action: A::NAME,
        }
    }
    fn codes() -> Vec<Code> {
        found_codes::<K>()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let checker = cx.checker()?;
        authz::on_object(&checker, path_id::<K>(cx)?)
    }
}

/// An id from the path. A text that is no id names nothing.
pub(super) fn path_id<K: Kind>(cx: &Cx<'_>) -> Result<Uuid> {
    let text = cx.parameter(&parameter_of(K::NAME))?;
    ids::parse(&text)
        .ok_or_else(|| Error::not_found(K::NAME, text.chars().take(64).collect::<String>()))
}

impl<K: Kind> Access for Listing<K> {
    fn rule() -> Rule {
        Rule::List(K::NAME)
    }
    fn codes() -> Vec<Code> {
        [&CHECK_CODES[..], &[Code::KeyProjectMismatch]].concat()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        authz::listing(&cx.checker()?, filter_project(cx))
    }
}

/// The project that a list's filter names. A text that is no id names none; the handler's input refuses it.
fn filter_project(cx: &Cx<'_>) -> Option<Uuid> {
    let mut parameters = url::form_urlencoded::parse(cx.query_text().as_bytes());
    let (_, text) = parameters.find(|(name, _)| name == "projectId")?;
    ids::parse(&text)
}

/// A body that names the object on which access is checked.
pub trait Names<K: Kind> {
    /// The object's id.
    fn named(&self) -> Uuid;
}

/// The caller may do `A` to the `K` that the body names.
#[derive(Debug)]
pub struct BodyOn<T, K, A> {
    /// The body.
    pub body: T,
    /// The proof.
    pub on: Authorized<K, A>,
}

impl<T, K, A> Access for BodyOn<T, K, A>
where
    T: Names<K> + DeserializeOwned + JsonSchema,
    K: Find,
    A: Action,
{
    const TAKES_BODY: bool = true;
    fn rule() -> Rule {
        Rule::OnBody {
            kind: K::NAME,
            action: A::NAME,
        }
    }
    fn codes() -> Vec<Code> {
        let mut codes = super::input::body_codes();
        codes.extend(found_codes::<K>());
        codes
    }
    fn body(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(T::described(generator))
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let checker = cx.checker()?;
        let body: T = read_body(cx)?;
        let on = authz::on_object(&checker, body.named())?;
        Ok(Self { body, on })
    }
}

/// A body that may name a project besides the object on which access is checked.
pub trait MayName {
    /// The project's id.
    fn project_id(&self) -> Option<Uuid>;
}

/// The access `A`, where the body `T` may name a project: whether the key is limited to another one is looked at first.
/// A body that cannot be read names none; the handler's input refuses it.
#[derive(Debug)]
pub struct NamingProject<T, A> {
    /// The access.
    pub access: A,
    body: PhantomData<T>,
}

impl<T: MayName + DeserializeOwned, A: Access> Access for NamingProject<T, A> {
    const TAKES_BODY: bool = A::TAKES_BODY;
    fn rule() -> Rule {
        A::rule()
    }
    fn codes() -> Vec<Code> {
        [A::codes(), vec![Code::KeyProjectMismatch]].concat()
    }
    fn body(generator: &mut SchemaGenerator) -> Option<Schema> {
        A::body(generator)
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let checker = cx.checker()?;
        let is_limited = checker.caller().key.project_id.is_some();
        if is_limited
            && let Ok(body) = read_body::<T>(cx)
            && let Some(project_id) = body.project_id()
        {
            authz::names_project::<Admin>(&checker, project_id)?;
        }
        Ok(Self {
            access: A::check(cx)?,
            body: PhantomData,
        })
    }
}

/// A body that names a flow by its `flowId`.
pub trait NamesFlow {
    /// The `flowId`, and the flow's project if the body names it.
    fn flow(&self) -> (&str, Option<Uuid>);
}

/// The caller may start the flow that the body names. A key of one project names its project.
#[derive(Debug)]
pub struct BodyOnFlow<T> {
    /// The body.
    pub body: T,
    /// The proof.
    pub on: Authorized<Flow, Write>,
}

impl<T: NamesFlow + DeserializeOwned + JsonSchema> Access for BodyOnFlow<T> {
    const TAKES_BODY: bool = true;
    fn rule() -> Rule {
        Rule::OnBody {
            kind: Flow::NAME,
            action: Write::NAME,
        }
    }
    fn codes() -> Vec<Code> {
        let mut codes = super::input::body_codes();
        codes.extend(found_codes::<Flow>());
        codes.extend([Code::KeyProjectMismatch, Code::Conflict]);
        codes
    }
    fn body(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(T::described(generator))
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let checker = cx.checker()?;
        let body: T = read_body(cx)?;
        let (flow_id, named) = body.flow();
        if let Some(project_id) = named {
            authz::names_project::<Write>(&checker, project_id)?;
        }
        let caller = checker.caller();
        let project_id = named.or(caller.key.project_id);
        let mut session = cx.store().session()?;
        let found = flows::of_name(&mut session, caller.tenant_id, flow_id, project_id)?;
        drop(session);
        let id = match found.as_slice() {
            [] => return Err(Error::not_found(Flow::NAME, flow_id)),
            [one] => *one,
            _ => return Err(ambiguous(flow_id)),
        };
        let on = authz::on_object(&checker, id)?;
        Ok(Self { body, on })
    }
}

/// Without the projects: which ones have the flow is not for everyone to know.
fn ambiguous(flow_id: &str) -> Error {
    Error::new(
        Code::Conflict,
        format!(
            "Several projects have a flow {flow_id}. Name the one that is meant in `projectId`."
        ),
    )
}

/// A body of one of two forms, each with its own access. The second one is meant where the body has its field.
#[derive(Debug)]
pub enum Either<A, B> {
    /// The first form.
    First(A),
    /// The second form.
    Second(B),
}

/// A form of a body that is known by a field, of what it is about.
pub trait Form {
    /// The field.
    const FIELD: &'static str;
}

impl<T, A> Form for BodyOn<T, Agent, A> {
    const FIELD: &'static str = "agentId";
}

impl<T> Form for BodyOnFlow<T> {
    const FIELD: &'static str = "flowId";
}

impl<A: Access + Form, B: Access + Form> Access for Either<A, B> {
    const TAKES_BODY: bool = true;
    fn rule() -> Rule {
        Rule::Either(Box::new(A::rule()), Box::new(B::rule()))
    }
    fn codes() -> Vec<Code> {
        [A::codes(), B::codes()].concat()
    }
    fn body(generator: &mut SchemaGenerator) -> Option<Schema> {
        let forms: Vec<Schema> = [A::body(generator)?, B::body(generator)?].into();
        Some(schemars::json_schema!({ "anyOf": forms }))
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        match has_field(cx, B::FIELD)? {
            true => B::check(cx).map(Self::Second),
            false => A::check(cx)
                .map(Self::First)
                .map_err(|error| neither(cx, error, &[B::FIELD, A::FIELD])),
        }
    }
}

/// Says of a body that has none of the fields by which its form is known which ones there are. Who asks may do so already, or
/// the error is another one.
fn neither(cx: &Cx<'_>, error: Error, fields: &[&'static str]) -> Error {
    let lacks = |field: &&str| has_field(cx, field).is_ok_and(|has| !has);
    if error.code() != Code::InvalidBody
        || !fields.iter().all(lacks)
        || error.details().get("path").is_none()
    {
        return error;
    }
    let expected = format!("one of the fields {}", fields.join(" and "));
    Error::new(
        Code::InvalidBody,
        format!("The body's $: expected {expected}."),
    )
    .detail("path", "$")
    .detail("expected", expected)
}

/// Whether the body has the field. A body without its name is not read for that.
fn has_field(cx: &Cx<'_>, field: &str) -> Result<bool> {
    let quoted = format!("\"{field}\"");
    let bytes = cx.body()?;
    if !bytes
        .windows(quoted.len())
        .any(|part| part == quoted.as_bytes())
    {
        return Ok(false);
    }
    let fields = serde_json::from_slice::<HashMap<String, IgnoredAny>>(bytes);
    Ok(fields.is_ok_and(|fields| fields.contains_key(field)))
}

impl Access for authz::RunReader {
    fn rule() -> Rule {
        Rule::RunReader
    }
    fn codes() -> Vec<Code> {
        found_codes::<Run>()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let credential = cx.credential()?;
        let run_id = path_id::<Run>(cx)?;
        match credential {
            Credential::Bearer(known) | Credential::Session(known) => {
                let checker = cx.checker_of(cx.identify(known.caller));
                authz::run_reader(&checker, known.expires_at, run_id)
            }
            Credential::Public(token) => authz::public_reader(cx.store(), &token, run_id),
        }
    }
}

impl Access for authz::GrantsReader {
    fn rule() -> Rule {
        Rule::GrantsReader
    }
    fn codes() -> Vec<Code> {
        found_codes::<Person>()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let checker = cx.checker()?;
        authz::grants_reader(&checker, path_id::<Person>(cx)?)
    }
}

impl Access for authz::ConversationEraser {
    fn rule() -> Rule {
        Rule::ConversationEraser
    }
    fn codes() -> Vec<Code> {
        found_codes::<Conversation>()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let checker = cx.checker()?;
        authz::conversation_eraser(&checker, path_id::<Conversation>(cx)?)
    }
}

impl Access for authz::Reviewer {
    fn rule() -> Rule {
        Rule::Reviewer
    }
    fn codes() -> Vec<Code> {
        [&CHECK_CODES[..], &[Code::KeyProjectMismatch]].concat()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        authz::reviewer(&cx.checker()?, filter_project(cx))
    }
}

impl Access for authz::ReviewerFollower {
    fn rule() -> Rule {
        Rule::Reviewer
    }
    fn codes() -> Vec<Code> {
        CHECK_CODES.to_vec()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let (checker, ends_at) = until_its_end(cx)?;
        authz::reviewer_follower(&checker, ends_at)
    }
}

impl Access for authz::ChangeFollower {
    fn rule() -> Rule {
        Rule::List("change")
    }
    fn codes() -> Vec<Code> {
        [&CHECK_CODES[..], &[Code::KeyProjectMismatch]].concat()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let (kinds, project_id) = (filter_kinds(cx), filter_project(cx));
        let (checker, ends_at) = until_its_end(cx)?;
        authz::change_follower(&checker, ends_at, &kinds, project_id)
    }
}

/// Who asks for a stream, which ends with the credential.
fn until_its_end<'a>(cx: &'a Cx<'_>) -> Result<(authz::Checker<'a>, Option<OffsetDateTime>)> {
    match cx.credential()? {
        Credential::Bearer(known) | Credential::Session(known) => {
            Ok((cx.checker_of(cx.identify(known.caller)), known.expires_at))
        }
        Credential::Public(_) => Ok((cx.checker()?, None)),
    }
}

/// The kinds that a filter names. A text that is no kind names none; the handler's input refuses it.
fn filter_kinds(cx: &Cx<'_>) -> Vec<ChangeKind> {
    let parameters = url::form_urlencoded::parse(cx.query_text().as_bytes());
    let named = parameters.filter(|(name, _)| name == "kind");
    named
        .filter_map(|(_, text)| ChangeKind::parse(&text))
        .collect()
}

impl<A: authz::Act> Access for authz::ApprovalReviewer<A> {
    fn rule() -> Rule {
        Rule::ApprovalReviewer {
            decides: A::DECIDES,
        }
    }
    fn codes() -> Vec<Code> {
        let own = A::DECIDES.then_some(Code::ApprovalOwnRequest);
        found_codes::<Approval>().into_iter().chain(own).collect()
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let checker = cx.checker()?;
        authz::approval_reviewer(&checker, path_id::<Approval>(cx)?)
    }
}

/// Both, in this order: two objects in the path, or one in the path and one in the body.
impl<A: Access, B: Access> Access for (A, B) {
    const TAKES_BODY: bool = A::TAKES_BODY || B::TAKES_BODY;
    fn rule() -> Rule {
        Rule::Both(Box::new(A::rule()), Box::new(B::rule()))
    }
    fn codes() -> Vec<Code> {
        [A::codes(), B::codes()].concat()
    }
    fn body(generator: &mut SchemaGenerator) -> Option<Schema> {
        A::body(generator).or_else(|| B::body(generator))
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        Ok((A::check(cx)?, B::check(cx)?))
    }
}
