//! Pieces of requests that several nouns read: ids, URLs and secrets of a body, people, roles and headers.

use crate::authz::Stage;
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::Text;
use crate::ids::{self, Id};
use crate::proof::Caller;
use crate::secrets::SecretRef;
use crate::store::principals::Named;
use crate::store::project_memberships::Role;
use crate::store::runs::RequestKey;
use crate::text::trim_ows;
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Stands in examples for an id of the caller's own.
pub(super) const SOME_ID: &str = "01980000-0000-7000-8000-000000000001";

/// Judges a URL that stands at this place of the body. A host that the tenant may not reach is recorded
/// as a refusal to administer `resource`, `<kind>:<id>`.
pub(super) fn check_url(
    cx: &Cx<'_>,
    caller: &Caller,
    resource: &str,
    path: &str,
    url: &str,
) -> Result<()> {
    cx.check_tenant_url(url).map_err(|error| {
        let named = match error.code() {
            Code::HostAccessDenied => {
                let checker = cx.checker_of(caller.clone());
                checker.refuse_with(Stage::HostAccessDenied, "admin", resource, error)
            }
            Code::InvalidRequest => {
                let message = format!("The body's {path}: {}", error.message());
                Error::new(Code::InvalidBody, message)
            }
            _ => error,
        };
        named.detail("path", path)
    })
}

/// The body has the route's shape, and this place of it is still wrong.
pub(super) fn invalid_body(path: &str, expected: impl std::fmt::Display) -> Error {
    Error::new(
        Code::InvalidBody,
        format!("The body's {path}: expected {expected}."),
    )
    .detail("path", path)
    .detail("expected", expected.to_string())
}

/// Refuses with all faults, if there are any.
pub(super) fn all_of(faults: impl IntoIterator<Item = (String, &'static str)>) -> Result<()> {
    let with = |all, (path, expected): (String, &str)| {
        both(all, Err(invalid_body(&path, expected))).map(|((), ())| ())
    };
    faults.into_iter().fold(Ok(()), with)
}

/// Tells a null from a field that is left out.
pub(super) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The secret that this place of the body names is there. Whether it can be read is seen at each use.
pub(super) fn check_secret(cx: &Cx<'_>, tenant_id: Uuid, path: &str, at: &SecretRef) -> Result<()> {
    let said = match cx.secrets().exists(tenant_id, at) {
        Ok(true) => return Ok(()),
        Ok(false) => "There is no such secret. Put it first, then name it here.".to_owned(),
        Err(unreadable) if cx.secrets().is_on() => {
            return Err(Error::new(
                Code::SecretsUnavailable,
                unreadable.sentence(at),
            ));
        }
        Err(unreadable) => unreadable.sentence(at),
    };
    let message = format!("The body's {path}: {said}");
    Err(Error::new(Code::InvalidBody, message).detail("path", path))
}

/// An id from the path that no access check reads. A text that is no id names nothing.
pub(super) fn id_in_path(cx: &Cx<'_>, parameter: &str, kind: &'static str) -> Result<Uuid> {
    let text = cx.parameter(parameter)?;
    ids::parse(&text)
        .ok_or_else(|| Error::not_found(kind, text.chars().take(64).collect::<String>()))
}

/// The event after which a stream goes on: what `Last-Event-ID` says, else the parameter of this name. An empty header is none.
pub(super) fn last_event_id(cx: &Cx<'_>, parameter: Option<i64>) -> Result<Option<i64>> {
    match cx.header("last-event-id").map(trim_ows) {
        None | Some("") => Ok(parameter),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Error::new(
                Code::InvalidRequest,
                "Header Last-Event-ID: expected the decimal number of an event.",
            )
        }),
    }
}

/// The request's `Idempotency-Key`, with what it is bound to.
pub(super) fn request_key(cx: &Cx<'_>, user_id: Uuid, route: &str) -> Result<Option<RequestKey>> {
    let Some(key) = cx.header("idempotency-key") else {
        return Ok(None);
    };
    let length = key.chars().count();
    if !(1..=255).contains(&length) {
        return Err(Error::new(
            Code::InvalidRequest,
            format!("Header Idempotency-Key: expected 1 to 255 characters, got {length}."),
        ));
    }
    Ok(Some(RequestKey {
        principal: format!("user:{user_id}"),
        route: route.to_owned(),
        key: key.to_owned(),
        body_digest: Sha256::digest(cx.body()?).into(),
    }))
}

/// Whom a body names: by `userId` or by `email`.
pub(super) struct Whom(pub(super) Option<Id>, pub(super) Option<Text<1, 320>>);

impl Whom {
    pub(super) fn named(self) -> Result<Named> {
        match (self.0, self.1) {
            (Some(Id(user_id)), None) => Ok(Named::Id(user_id)),
            (None, Some(email)) => Ok(Named::Email(email.as_str().to_owned())),
            (None, None) => Err(invalid_body("$.userId", "a userId or an email")),
            (Some(_), Some(_)) => Err(invalid_body("$.email", "no email beside a userId")),
        }
    }
}

/// A project role that may be given (section 4.3 rule 2).
pub(super) fn given_role(role: Role) -> Result<Role> {
    if role == Role::Member {
        return Err(Error::new(
            Code::RoleNotGiven,
            "The project role member is given no more. Use viewer, which grants the same.",
        )
        .detail("path", "$.role"));
    }
    Ok(role)
}

/// The project roles that may be given to a user.
pub(super) fn given_roles(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "string", "enum": ["owner", "admin", "editor", "viewer"]})
}
