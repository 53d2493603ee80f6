//! `/v1/approvals`: the approvals that runs request, and the decisions of reviewers.

use super::approval_views::{EntryView, View, WholeView, digest, subject_view};
use super::page_query::page_query;
use super::request_parts::{SOME_ID, Whom, invalid_body};
use crate::authz::{self, ApprovalReviewer, Decides, Reads, Reassigns, Reviewer, ReviewerFollower};
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::faults::{FAULTS_MOST, both};
use crate::http::input::{Body, Nothing, Query, Text};
use crate::http::output::{ApprovalEvents, Created, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, rfc3339};
use crate::json::{SENT_NESTING_MOST, is_nested_deeper};
use crate::store::approvals::for_reviewers::{self, Approval, AssignedTo, Filters};
use crate::store::approvals::{
    self, ARGUMENTS_BYTES, ApprovalSource, ApprovalStatus, CONTEXT_BYTES, Decided, Decision,
    EscalatedTo, Handed, log,
};
use crate::store::page::Page;
use crate::store::reviewers::is_role;
use crate::tools::{forms, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Post};
    let one = "/v1/approvals/{approvalId}";
    let closed = &[Code::ApprovalClosed, Code::Conflict];
    vec![
        route(
            Get,
            "/v1/approvals",
            "approvals.list",
            "List the approvals of the caller's reviewer roles, those that wait unless asked otherwise",
            list,
        ),
        route(
            Get,
            "/v1/approvals/stream",
            "approvals.follow",
            "Follow what happens to the approvals of the caller's reviewer roles as server-sent events",
            follow,
        )
        .reads(
            "Last-Event-ID",
            "The id of the last event that was received: the stream goes on after it.",
            || json!({"type": "integer", "minimum": 0}),
        ),
        route(
            Get,
            one,
            "approvals.get",
            "Read an approval with what it is about",
            read,
        ),
        route(
            Post,
            "/v1/approvals/{approvalId}/decide",
            "approvals.decide",
            "Approve or reject; the same decision of the same reviewer again changes nothing",
            decide,
        )
        .answers(&[Code::ApprovalClosed, Code::ApprovalChanged]),
        route(
            Post,
            "/v1/approvals/{approvalId}/assign",
            "approvals.assign",
            "Assign an approval that waits to a reviewer with its role, or to nobody",
            assign,
        )
        .answers(closed),
        route(
            Post,
            "/v1/approvals/{approvalId}/escalate",
            "approvals.escalate",
            "Close an approval that waits, and open another for another role in its place",
            escalate,
        )
        .answers(closed),
    ]
}

/// `me`, `none`, or the id of a person.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Assigned {
    Me,
    None,
    User(Uuid),
}

impl<'de> Deserialize<'de> for Assigned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "me" => Ok(Self::Me),
            "none" => Ok(Self::None),
            text => crate::ids::parse(text)
                .map(Self::User)
                .ok_or_else(|| serde::de::Error::custom("expected me, none or a user's id")),
        }
    }
}

impl JsonSchema for Assigned {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Assigned".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"anyOf": [
            {"type": "string", "enum": ["me", "none"]}, {"type": "string", "format": "uuid"}]})
    }
}

page_query! {
    /// Which approvals.
    ListApprovals {
        /// That stand so; left out: those that wait.
        status: Option<ApprovalStatus>,
        /// Of this reviewer role.
        role: Option<Text<1, 40>>,
        /// In this project.
        project_id: Option<Id>,
        /// Of this run.
        run_id: Option<Id>,
        /// Assigned to the caller (`me`), to nobody (`none`), or to this person.
        assigned_to: Option<Assigned>,
    }
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// The run goes on with it.
    Approve,
    /// The run is told that it may not.
    Reject,
}

/// A decision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({"decision": "approve", "comment": "The receipt is in order."}))]
struct DecideApproval {
    decision: Verdict,
    /// Why. The run gets to read it.
    comment: Option<Text<1, 4000>>,
    /// What the run gets to read beside: any JSON, 64 KiB at most. If the subject has a `form`, it has to fit that.
    answer: Option<Value>,
    /// Of a tool call that is approved: what the tool is called with in place of the subject's `arguments`. They have to fit
    /// the tool's schema, and the model is told that they are the reviewer's.
    arguments: Option<Value>,
    /// The subject's `digest` that was read: of anything else nothing is decided.
    expected_digest: Option<Text<1, 100>>,
}

/// Whom an approval is assigned to; neither: nobody.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({"userId": SOME_ID}))]
struct AssignApproval {
    user_id: Option<Id>,
    /// In any case.
    email: Option<Text<1, 320>>,
}

/// Who is asked in the place of the role.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({"requiredRole": "finance", "comment": "Over my limit."}))]
struct EscalateApproval {
    /// A reviewer role; left out: the one that the approval names for its escalation.
    required_role: Option<Text<1, 40>>,
    /// Whom the new approval is assigned to. Left out with `requiredRole`: whom the approval names for its escalation.
    user_id: Option<Id>,
    /// The same, in any case.
    email: Option<Text<1, 320>>,
    /// Why.
    comment: Option<Text<1, 4000>>,
}

fn list(
    cx: &Cx<'_>,
    reviewer: Reviewer,
    Query(query): Query<ListApprovals>,
) -> Result<Found<Page<View>>> {
    let role = query.role.as_ref().map(Text::as_str);
    let of = (query.project_id, query.run_id, query.assigned_to);
    let page = query.page(&("approvals", query.status, role, of))?;
    let filters = Filters {
        status: query.status.unwrap_or(ApprovalStatus::Waiting),
        project_id: query.project_id.map(Uuid::from),
        run_id: query.run_id.map(Uuid::from),
        assigned_to: query.assigned_to.map(|assigned| match assigned {
            Assigned::Me => AssignedTo::User(reviewer.user_id()),
            Assigned::User(user_id) => AssignedTo::User(user_id),
            Assigned::None => AssignedTo::Nobody,
        }),
    };
    let mut sight = reviewer.sight().clone();
    if let Some(role) = role {
        let holds = |roles: &Vec<String>| roles.iter().any(|held| held == role);
        let is_seen = sight.roles.as_ref().is_none_or(holds);
        sight.roles = Some(is_seen.then(|| role.to_owned()).into_iter().collect());
    }
    let rows = for_reviewers::list(&mut cx.store().session()?, &sight, &filters, &page)?;
    Ok(Found(page.page(rows, |row| row.approval_id, View::from)))
}

/// Where a stream begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FollowApprovals {
    /// The stream goes on after the event of this number; left out: it begins now. `Last-Event-ID` takes its place.
    #[schemars(range(min = 0))]
    after: Option<i64>,
    /// What `Last-Event-ID` would say, of a client that cannot set the header. The header takes its place, and it takes that of `after`.
    #[schemars(range(min = 0))]
    last_event_id: Option<i64>,
}

fn follow(
    cx: &Cx<'_>,
    reviewer: ReviewerFollower,
    Query(query): Query<FollowApprovals>,
) -> Result<ApprovalEvents> {
    let named = super::request_parts::last_event_id(cx, query.last_event_id)?.or(query.after);
    if let Some(after) = named {
        let newest = log::newest(&mut cx.store().session()?)?.position;
        if !(0..=newest).contains(&after) {
            let message = format!(
                "The newest event of approvals is {newest}; there is nothing after {after}. Begin again without a number."
            );
            return Err(Error::new(Code::InvalidRequest, message).detail("lastSeq", newest));
        }
    }
    let following = cx.streams().follow_approvals(reviewer, named)?;
    Ok(ApprovalEvents(following))
}

fn read(cx: &Cx<'_>, approval: ApprovalReviewer<Reads>, _: Nothing) -> Result<Found<WholeView>> {
    whole(cx, &approval).map(Found)
}

fn whole<A>(cx: &Cx<'_>, reviewer: &ApprovalReviewer<A>) -> Result<WholeView> {
    let mut session = cx.store().session()?;
    let subject = for_reviewers::subject(&mut session, reviewer)?;
    let log = for_reviewers::log(&mut session, reviewer)?;
    let approval = reviewer.approval();
    let may_not_because = match approval.status {
        ApprovalStatus::Waiting if reviewer.may_decide() => None,
        ApprovalStatus::Waiting => Some(Code::ApprovalOwnRequest.text()),
        _ => Some(Code::ApprovalClosed.text()),
    };
    Ok(WholeView {
        subject: subject_view(approval, subject),
        may_decide: may_not_because.is_none(),
        may_edit: match (approval.source, may_not_because) {
            (ApprovalSource::Tool, None) => vec!["arguments"],
            _ => Vec::new(),
        },
        may_not_because,
        log: log.into_iter().map(EntryView::from).collect(),
        approval: approval.clone().into(),
    })
}

fn closed(approval: &Approval) -> Error {
    let how = approval.status.text();
    let error = Error::new(
        Code::ApprovalClosed,
        format!("The approval is {how} and waits no more. Read it to see who closed it and when."),
    );
    let at = approval.closed_at.map(rfc3339::text);
    error
        .detail("status", how)
        .detail("decidedBy", json!(approval.decided_by))
        .detail("decidedAt", at)
        .detail("escalatedTo", json!(approval.escalated_to))
}

fn decide(
    cx: &Cx<'_>,
    reviewer: ApprovalReviewer<Decides>,
    Body(body): Body<DecideApproval>,
) -> Result<Found<WholeView>> {
    let row = reviewer.approval();
    let (tenant_id, approval_id) = tenant_and_id(&reviewer);
    if let Some(expected) = &body.expected_digest
        && expected.as_str() != digest(row)
    {
        let message =
            "The approval is not about what expectedDigest names. Read it again, and decide then.";
        return Err(Error::new(Code::ApprovalChanged, message).detail("digest", digest(row)));
    }
    both(
        check_answer(cx, &reviewer, &body),
        check_arguments(cx, &reviewer, &body),
    )?;
    let is_approved = body.decision == Verdict::Approve;
    let decision = Decision {
        is_approved,
        comment: body.comment.as_ref().map(Text::as_str),
        arguments: body.arguments.as_ref(),
        answer: body.answer.as_ref(),
    };
    let (actor, approval) = (reviewer.actor(), (tenant_id, approval_id));
    let by = (actor, reviewer.needs_role());
    let decided = match cx.is_undecided() {
        // It is one statement.
        true => approvals::decide(&mut cx.store().session()?, approval, by, &decision)?,
        false => cx.transact(|tx| approvals::decide(tx, approval, by, &decision))?,
    };
    if let Decided::Written { .. } = decided {
        // Before anything else is read: the run goes on meanwhile.
        cx.runtime().wake();
    }
    let now = for_reviewers::find(&mut cx.store().session()?, tenant_id, approval_id)?;
    match decided {
        Decided::Written { .. } => {
            let waited = now.closed_at.map(|closed_at| closed_at - now.created_at);
            let waited = waited.and_then(|waited| waited.try_into().ok());
            cx.runtime().count_approval(now.status, waited);
        }
        // The same again: an answer that was lost.
        Decided::Closed
            if now.decided_by == Some(actor.user_id)
                && now.status == ApprovalStatus::of_decision(is_approved)
                && is_the_same(cx, &reviewer, &now, &body)? => {}
        Decided::Closed => return Err(closed(&now)),
        Decided::RoleLost => return Err(authz::role_lost(&cx.checker()?, &now)),
        Decided::Unknown => return Err(Error::internal("an approval is gone")),
    }
    whole(cx, &reviewer.now(now)).map(Found)
}

/// The answer fits the form of the approval, if it has one. Who rejects need not answer.
fn check_answer(
    cx: &Cx<'_>,
    reviewer: &ApprovalReviewer<Decides>,
    body: &DecideApproval,
) -> Result<()> {
    let answer = body.answer.as_ref();
    if let Some(answer) = answer {
        check_bounds("$.answer", answer, CONTEXT_BYTES)?;
    }
    if body.decision == Verdict::Reject && answer.is_none() {
        return Ok(());
    }
    let form = for_reviewers::form(&mut cx.store().session()?, reviewer)?;
    let Some(form) = form else {
        return Ok(());
    };
    let faults = forms::answer_faults(&form, answer, FAULTS_MOST);
    let faults = faults.map_err(|_| Error::internal("the form of an approval is not valid"))?;
    all_of("$.answer", faults)
}

/// Refuses a field of the body that a run could not keep.
fn check_bounds(field: &str, value: &Value, bytes_most: usize) -> Result<()> {
    if value.to_string().len() > bytes_most {
        let most = format!("at most {bytes_most} bytes of JSON");
        return Err(invalid_body(field, most));
    }
    if is_nested_deeper(value, SENT_NESTING_MOST) {
        let most = format!("JSON of at most {SENT_NESTING_MOST} levels");
        return Err(invalid_body(field, most));
    }
    Ok(())
}

/// Refuses a field of the body with all that does not fit there, if anything does not.
fn all_of(field: &str, faults: Vec<schema::Fault>) -> Result<()> {
    let told = |all, fault: schema::Fault| {
        let path = format!("{field}{}", fault.path);
        both(all, Err(invalid_body(&path, fault.expected))).map(|((), ())| ())
    };
    faults.into_iter().fold(Ok(()), told)
}

/// The arguments in place of those of the call fit the schema of its tool, as those of a model have to.
fn check_arguments(
    cx: &Cx<'_>,
    reviewer: &ApprovalReviewer<Decides>,
    body: &DecideApproval,
) -> Result<()> {
    let Some(arguments) = &body.arguments else {
        return Ok(());
    };
    check_bounds("$.arguments", arguments, ARGUMENTS_BYTES)?;
    let refuse = |expected: String| Err(invalid_body("$.arguments", expected));
    if body.decision == Verdict::Reject {
        return refuse("none with a rejection".to_owned());
    }
    let schema = for_reviewers::arguments_schema(&mut cx.store().session()?, reviewer)?;
    let Some(schema) = schema else {
        return refuse("none, since the approval is about no tool call".to_owned());
    };
    let fits = schema::compile(&schema);
    let fits = fits.map_err(|_| Error::internal("the schema of a tool is not valid"))?;
    all_of(
        "$.arguments",
        schema::faults_at(&fits, arguments, "the tool's schema", FAULTS_MOST),
    )
}

/// Whether the decision that stands was made with the same comment and answer, and the same arguments in place of those of the
/// call.
fn is_the_same(
    cx: &Cx<'_>,
    reviewer: &ApprovalReviewer<Decides>,
    now: &Approval,
    body: &DecideApproval,
) -> Result<bool> {
    if now.comment.as_deref() != body.comment.as_ref().map(Text::as_str) {
        return Ok(false);
    }
    let stands = for_reviewers::subject(&mut cx.store().session()?, reviewer)?;
    Ok(stands.edited_arguments == body.arguments && stands.answer == body.answer)
}

fn tenant_and_id<A>(reviewer: &ApprovalReviewer<A>) -> (Uuid, Uuid) {
    use crate::proof::May;
    (reviewer.tenant_id(), reviewer.object_id())
}

/// Why an approval was not given to somebody else.
fn not_handed(cx: &Cx<'_>, handed: Handed, now: &Approval) -> Result<Error> {
    Ok(match handed {
        Handed::RoleLost => authz::role_lost(&cx.checker()?, now),
        Handed::Written | Handed::Closed => closed(now),
    })
}

fn assign(
    cx: &Cx<'_>,
    reviewer: ApprovalReviewer<Reassigns>,
    Body(body): Body<AssignApproval>,
) -> Result<Found<View>> {
    let named = match (body.user_id, body.email) {
        (None, None) => None,
        (user_id, email) => Some(Whom(user_id, email).named()?),
    };
    let (tenant_id, approval_id) = tenant_and_id(&reviewer);
    let (row, by) = (
        reviewer.approval(),
        (reviewer.actor(), reviewer.needs_role()),
    );
    let assigned = cx.transact(|tx| {
        for_reviewers::assign(
            tx,
            row,
            tenant_id,
            by,
            (named.as_ref(), reviewer.starters()),
        )
    })?;
    let now = for_reviewers::find(&mut cx.store().session()?, tenant_id, approval_id)?;
    match assigned {
        Handed::Written => Ok(Found(now.into())),
        not_written => Err(not_handed(cx, not_written, &now)?),
    }
}

fn escalate(
    cx: &Cx<'_>,
    reviewer: ApprovalReviewer<Reassigns>,
    Body(body): Body<EscalateApproval>,
) -> Result<Created<View>> {
    let row = reviewer.approval();
    if row.escalated_from.is_some() {
        let message = "This approval took the place of another one, and there is one level of escalation. Decide it, or assign it.";
        return Err(Error::new(Code::Conflict, message));
    }
    let asked = body.required_role.as_ref().map(Text::as_str);
    let role = asked.or(row.escalate_role.as_deref());
    let role = role.filter(|role| is_role(role)).ok_or_else(|| {
        let form =
            "a reviewer role: 1 to 40 lowercase letters, digits and hyphens, no hyphen first";
        invalid_body("$.requiredRole", form)
    })?;
    let named = match (body.user_id, body.email) {
        (None, None) => None,
        (user_id, email) => Some(Whom(user_id, email).named()?),
    };
    let (tenant_id, approval_id) = tenant_and_id(&reviewer);
    let (by, new_id) = ((reviewer.actor(), reviewer.needs_role()), cx.new_id());
    let comment = body.comment.as_ref().map(Text::as_str);
    let escalated = cx.transact(|tx| {
        let starters = reviewer.starters();
        let holder =
            |tx: &mut _, named| for_reviewers::holder(tx, tenant_id, named, (role, by.1), starters);
        let to = EscalatedTo {
            approval_id: new_id,
            required_role: role,
            user_id: named.as_ref().map(|named| holder(tx, named)).transpose()?,
        };
        let approval = (tenant_id, approval_id);
        let escalated = approvals::escalate(tx, approval, to, Some(by), comment, cx.now())?;
        if escalated == Handed::Written {
            let named = row.escalate_assignee.as_deref();
            let named = named.filter(|_| asked.is_none() && to.user_id.is_none());
            if let Some(named) = named {
                approvals::assign_named(tx, (tenant_id, new_id), named, by.1, cx.now())?;
            }
            cx.webhooks().approval_requested(tx, tenant_id, new_id)?;
        }
        Ok(escalated)
    })?;
    let mut session = cx.store().session()?;
    if escalated != Handed::Written {
        let now = for_reviewers::find(&mut session, tenant_id, approval_id)?;
        return Err(not_handed(cx, escalated, &now)?);
    }
    cx.runtime().feed().changed(reviewer.approval().run_id);
    cx.runtime().count_approval(ApprovalStatus::Escalated, None);
    let new = for_reviewers::find(&mut session, tenant_id, new_id)?;
    Ok(Created(new.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reviewer_sends_has_bounds_that_are_named() {
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let refused = |value: &Value| {
            check_bounds("$.answer", value, 200)
                .unwrap_err()
                .to_string()
        };
        assert!(check_bounds("$.answer", &deep(SENT_NESTING_MOST), 200).is_ok());
        let said = refused(&deep(SENT_NESTING_MOST + 1));
        assert!(said.contains("at most 64 levels"), "{said}");
        let said = refused(&json!("x".repeat(200)));
        assert!(said.contains("at most 200 bytes"), "{said}");
    }
}
