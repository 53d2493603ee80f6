//! Generates `docs/errors.md` from the table of codes: what each means, and what to do. A test
//! fails if the page differs, and rewrites it if `UPDATE_GENERATED=1` is set.

use super::Code;

/// The meaning of a code, and what to do.
#[rustfmt::skip]
const fn words(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::InvalidRequest => ("A query or path parameter, or a header, is not what the route takes.", "Correct what the message names; of a query `details.faults` lists every fault, each with its parameter and what is expected."),
        Code::InvalidBody => ("The body is not JSON, or does not have the form that the route expects.", "Correct it at `details.path`; `details.faults` lists every fault, at most 20, each with its path and what is expected. Unknown fields and NUL characters are refused."),
        Code::InvalidCursor => ("The cursor was not made by this list with these filters and this order.", "Start the list again, without `cursor`."),
        Code::RoleNotGiven => ("The role can no longer be given.", "Give `viewer` in place of `member`."),
        Code::RoleExceedsPrincipal => ("A key may not have a higher role than the key that mints it.", "Mint it with a role or capabilities that the minting key has."),
        Code::WebhookUrlRefused => ("This deployment refuses the receiver's URL.", "Use another address; for private networks the operator sets `SVC_WEBHOOK_PRIVATE_NETWORKS=allow`."),
        Code::WebhookSecretNotFound => ("The named secret does not exist in the named environment.", "Store it first: `PUT /v1/secrets/{envName}/{name}`."),
        Code::WebhookSecretWeak => ("The named secret is no signing secret, or is too short.", "Store `whsec_` and the base64 of at least 24 random bytes."),
        Code::Unauthenticated => ("The credential is missing, unknown, expired or revoked.", "Send `Authorization: Bearer` with a live token, or sign in again."),
        Code::PermissionDenied => ("The caller may not do this, or the key of the request may not; `details.reason` says what is lacking.", "Ask an admin of the project or tenant for the role. If you have the role, use another key: the audit record says which check refused. After too many denials in a minute the answer is 429."),
        Code::KeyProjectMismatch => ("The key is limited to another project than the one that the request names.", "Use a key of that project, or one without a limit."),
        Code::ApprovalOwnRequest => ("The person who started the run cannot decide about its approvals.", "Let another reviewer with the role decide."),
        Code::ApprovalClosed => ("The approval no longer waits; `details` says how it was closed.", "Read it. After an escalation decide the one that `details.escalatedTo` names."),
        Code::ApprovalChanged => ("The subject of the approval is not the one that `expectedDigest` names.", "Read the approval again, then decide."),
        Code::PublicRunTokenNotAllowed => ("A public run token opens the progress of its own runs alone.", "Use a bearer token, or mint a public run token that names the run."),
        Code::CsrfOriginMismatch => ("A request with a session, or one to sign in, did not come from a page of this server.", "Open the server at its own address, `SVC_PUBLIC_URL`. A program sends `Authorization: Bearer`, which needs no origin; [sign-in.md](sign-in.md)."),
        Code::TokenSignInOff => ("Nobody signs in with a token on this server.", "Sign in another way: `GET /v1/sign-in` lists them. Operator: `SVC_TOKEN_SIGN_IN`."),
        Code::TokenSignInNotAllowed => ("This token does not sign in; the message says why.", "Use a token of your own that is not limited to a project, or another way to sign in. Operator: `SVC_TOKEN_SIGN_IN`."),
        Code::IdentityProvidersOperatorManaged => ("The operator keeps identity providers and sign-in settings on this server, in a file.", "Ask the operator for the change. Operator: `SVC_IDENTITY_PROVIDERS_PATH`; [sign-in.md](sign-in.md)."),
        Code::ProviderUnavailable => ("The identity provider cannot be used to sign in just now.", "Try again, or sign in another way. Operator: the log says which step failed and what to do, and so does the check of the provider; [sign-in.md](sign-in.md)."),
        Code::HostAccessDenied => ("This deployment does not let a tenant reach that host, or run commands.", "Use another host; the operator decides by `SVC_HOST_ACCESS`, and can open exact origins on loopback with `SVC_HOST_ACCESS_ORIGINS`."),
        Code::RouteNotFound => ("No route has this path.", "See `/openapi.json`. `/v1/secrets` exists only with a secrets backend."),
        Code::NotFound => ("The tenant has no such object.", "Check the id. Objects of other tenants are not found either."),
        Code::MethodNotAllowed => ("The route exists, but not with this method.", "Use one that the header `Allow` lists."),
        Code::RequestTimeout => ("The head or the body of the request did not arrive in time.", "Send it again, faster; behind a proxy see [proxy.md](proxy.md)."),
        Code::AlreadyExists => ("An object with this name or version exists already.", "Use another name, or change the existing object."),
        Code::MembershipExists => ("The user has another role on the project already.", "Change the role (`PATCH`); `details.role` is the one held."),
        Code::TeamGrantExists => ("The team has another role on the project already.", "Change the role (`PATCH`); `details.role` is the one held."),
        Code::LastOwner => ("A project must keep one owner.", "Make another owner first."),
        Code::LastAdmin => ("A tenant must keep one admin.", "Make another admin first."),
        Code::ProjectArchived => ("The project is archived: nothing new is made or started in it.", "Bring it back: `POST /v1/projects/{projectId}/unarchive`, as an admin of the project."),
        Code::AgentArchived => ("The agent is archived: it starts nothing and gets no versions.", "Bring it back: `POST /v1/agents/{agentId}/unarchive`, as an admin of the project."),
        Code::FlowInvalid => ("The definition of a flow is invalid, or names something that its project does not have.", "Correct it at each path of `details.faults`: each has a code, a sentence, and for common mistakes a hint."),
        Code::InputInvalid => ("The input of a run does not fit the schema of its flow; no run was made.", "Correct `input` as the message says. The schema stands in the definition: `GET /v1/flows/{id}/versions/{version}`."),
        Code::OverrideNotAllowed => ("The run sets what the agent's version does not let a run set; no run was made.", "Leave out the field at `details.path`, or make a version that has it in `overrides`."),
        Code::FlowArchived => ("The flow is archived: it starts nothing and gets no versions.", "Bring it back: `POST /v1/flows/{id}/unarchive`, as an admin of the project."),
        Code::OutcomeUnknown => ("The failed run was cut off during a call of the tool `details.tool`. Nobody knows whether the call took effect.", "Find out at the tool whether it did. To repeat the call, send `repeatUnknownCall`: true."),
        Code::Conflict => ("The object is not in a state that allows this.", "Read the object again, then decide."),
        Code::IdempotencyInFlight => ("A request with this idempotency key is still being answered.", "Send the same again in a moment."),
        Code::BodyTooLarge => ("The body is longer than the route takes.", "Send at most `details.mostBytes`."),
        Code::UnsupportedMediaType => ("The body is not `application/json`.", "Send `Content-Type: application/json`."),
        Code::IdempotencyMismatch => ("The idempotency key was used with another body, or for a run of another project.", "Use a new key for a new request."),
        Code::TooManyRequests => ("The client has too many connections open, its tenant or the run's public tokens too many streams, or it was denied too often. Or the tenant has too many runs that have not ended.", "Wait, and open fewer connections or streams at once. Of runs: wait until some have ended, or cancel some. Operator: `SVC_MAX_DENIALS_PER_MINUTE`, `SVC_MAX_STREAMS`, `SVC_MAX_UNFINISHED_RUNS` and the limits of connections."),
        Code::HeadersTooLarge => ("The header block is too large.", "Send fewer or shorter headers."),
        Code::Internal => ("An internal error of the service.", "Its cause is in the log under the `requestId`. Tell the operator."),
        Code::AuthorizationUnavailable => ("The authorization server does not answer; the message begins with `FGA Error:`.", "Send it again. Operator: [authorization.md](authorization.md)."),
        Code::ProjectAccessUnsupported => ("The access list needs an authorization server.", "Operator: set `SVC_AUTHZ_API_URL`."),
        Code::NotConfigured => ("The route needs something that is not configured here.", "Operator: set what the message names."),
        Code::Overloaded => ("Too much work is waiting.", "Send it again after a moment, with growing pauses. Operator: [sizing.md](sizing.md)."),
        Code::DatabaseUnavailable => ("The database does not answer, accepts no writes, or its disk is full; the message says which.", "Send it again. Operator: `/readyz` and the log say what is wrong."),
        Code::AuditUnavailable => ("The decision about the request could not be recorded, so nothing was done.", "Send it again. Operator: the message and the log say why; [audit.md](audit.md)."),
        Code::SecretsUnavailable => ("A secret cannot be written or read just now; the message says which part refuses.", "Send it again. Operator: [secrets.md](secrets.md)."),
        Code::NewerFormat => ("A later version of the service wrote this, in a form that the answering replica does not know.", "Send it again: a replica of the later version answers. Operator: upgrade every replica; [upgrade.md](upgrade.md)."),
        Code::ShuttingDown => ("The server is stopping.", "Send it again. Another replica answers, or this one after its restart."),
        Code::DeadlineExceeded => ("The request was not answered within its deadline. It may still have taken effect.", "Read the object, or send the request again with the same `Idempotency-Key`."),
    }
}

fn markdown() -> String {
    let mut codes = Code::ALL;
    codes.sort_by_key(|code| (code.status(), code.text()));
    let mut out: Vec<String> = [
        "# Errors",
        "",
        "```json",
        r#"{"error": {"code": "not-found", "message": "There is no run … here.", "details": {}, "requestId": "req-…"}}"#,
        "```",
        "",
        "Use `code` in programs: messages are for people and may change. The log has the cause under the \
         `requestId`, which is also in the header `x-request-id`. `GET /v1/audit/authz` and \
         `GET /v1/runs` take it as the filter `requestId`, so you find what was decided about the request, and \
         the run that it started. `/openapi.json` says which routes answer \
         which codes. After 408, 429, 500 `authorization-unavailable`, 503 and 504 you can send a GET, PUT \
         or DELETE again unchanged. Send a POST again only with the same `Idempotency-Key`, if the route takes \
         one; otherwise read first whether it took effect. `POST /v1/runs`, `POST /v1/runs/{runId}/retry` and \
         `POST /v1/webhook-endpoints` take one, and remember it for 24 hours.",
        "",
        "| status | code | meaning | what to do |",
        "|---|---|---|---|",
    ]
    .map(str::to_owned)
    .into();
    out.extend(codes.iter().map(|code| {
        let (meaning, remedy) = words(*code);
        let (status, text) = code.status_and_text();
        format!("| {status} | `{text}` | {meaning} | {remedy} |")
    }));
    out.join("\n") + "\n"
}

#[test]
fn the_page_equals_the_table() {
    crate::config::generated::file("docs/errors.md", &markdown(), "error::document");
}
