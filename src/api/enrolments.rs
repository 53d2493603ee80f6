//! Enrolments: how a new person gets a first key, until people can sign in.
//!
//! Guarantees: a code is shown once, used once, replaced by a newer one, and expires after
//! [`LIFE`]. Its key exceeds neither the key that made the code nor the person's role. Making one
//! takes what minting a key takes, and it ends with the key and the role that made it. A wrong code is
//! refused without a reason.

use super::tokens::{Fresh, MintedToken, key_role, maker_ends};
use crate::authn::bearer;
use crate::authz::Stage;
use crate::error::{self, Error, Result};
use crate::http::access::Enrolling;
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Text};
use crate::http::output::Created;
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Caller, Capability, Key, KnownBy};
use crate::secret::Secret;
use crate::store::enrolments::Enrolled;
use crate::store::users::Person;
use crate::store::{Tx, enrolments, tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// How long a code may be taken.
const LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a first key is called, if its person does not say.
const FIRST_KEY: &str = "first key";

pub(super) fn routes() -> Vec<Route> {
    use Method::Post;
    vec![
        route(
            Post,
            "/v1/identity/users/{userId}/enrolments",
            "users.enrolments.create",
            "Make another enrolment code for a person, which takes keys:write as well; the one before it ends",
            create,
        )
        .needs(Capability::AccessWrite)
        .answers(&[error::Code::Conflict]),
        route(
            Post,
            "/v1/identity/enrolments",
            "enrolments.redeem",
            "Turn an enrolment code into the person's first key, which is shown once",
            take,
        )
        .takes(4096),
    ]
}

/// A code that its person turns into a first key.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Enrolment {
    /// The code itself: shown here, and never again.
    code: String,
    expires_at: Timestamp,
}

/// A code, and what is kept of it.
pub(super) struct Code {
    text: Secret,
    row: enrolments::New,
}

impl Code {
    /// A fresh one, for whose key the key of the request mints.
    pub(super) fn mint(cx: &Cx<'_>) -> Result<Self> {
        cx.checker()?.needs(Capability::KeysWrite)?;
        let text = bearer::mint_enrolment()?;
        let (life_ends, key_expires_at) = (cx.now() + LIFE, maker_ends(cx)?);
        let row = enrolments::New {
            enrolment_id: cx.new_id(),
            digest: bearer::digest(text.expose()),
            expires_at: key_expires_at.map_or(life_ends, |end| end.min(life_ends)),
            key_expires_at,
        };
        Ok(Self { text, row })
    }

    /// Keeps it for a person who is added in this transaction.
    pub(super) fn keep_first(
        &self,
        tx: &mut Tx<'_>,
        caller: &Caller,
        person: &Person,
        now: OffsetDateTime,
    ) -> Result<()> {
        enrolments::insert_first(tx, person, caller, &self.row, now)
    }

    /// For its one showing.
    pub(super) fn show(self) -> Enrolment {
        Enrolment {
            code: self.text.expose().to_owned(),
            expires_at: self.row.expires_at.into(),
        }
    }
}

/// A code to take.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"code": "svc_en_the-code-that-was-shown"}))]
struct TakeEnrolment {
    /// The code, as it was shown.
    code: Text<1, 200>,
    /// What the key is to be called; `first key`, if left out.
    name: Option<Name>,
}

fn create(
    cx: &Cx<'_>,
    person: Authorized<Person, Admin>,
    _: Nothing,
) -> Result<Created<Enrolment>> {
    let (code, now) = (Code::mint(cx)?, cx.now());
    cx.transact(|tx| enrolments::insert(tx, &person, &code.row, now))?;
    Ok(Created(code.show()))
}

fn take(
    cx: &Cx<'_>,
    _: Enrolling,
    Body(taken): Body<TakeEnrolment>,
) -> Result<Created<MintedToken>> {
    let (digest, now) = (bearer::digest(taken.code.as_str()), cx.now());
    let name = taken.name.as_ref().map_or(FIRST_KEY, Text::as_str);
    let fresh = Fresh::mint()?;
    let token_id = cx.new_id();
    let kept = cx.transact(|tx| {
        let enrolled = enrolments::take(tx, &digest, cx.enforces(), now)?.ok_or_else(|| {
            Error::new(
                error::Code::Unauthenticated,
                "The enrolment code does not hold. Ask a tenant admin for another one.",
            )
        })?;
        let key = Key {
            role: enrolled.key.role.min(key_role(enrolled.tenant_role)),
            ..enrolled.key
        };
        let owner = enrolled.owner();
        let row = fresh.row(token_id, name, enrolled.key_expires_at);
        let kept = tokens::insert(tx, owner, &row, key, now)?;
        record(cx, &enrolled, token_id, key)?;
        Ok(kept)
    })?;
    Ok(Created(fresh.show(kept)))
}

/// Records whose first key was minted, under the key's own id.
fn record(cx: &Cx<'_>, enrolled: &Enrolled, token_id: Uuid, key: Key) -> Result<()> {
    let caller = Caller {
        tenant_id: enrolled.tenant_id,
        user_id: enrolled.user_id,
        token_id,
        known_by: KnownBy::Token,
        key,
    };
    let (resource, reason) = (
        format!("tenant:{}", enrolled.tenant_id),
        format!("user:{} took {}", enrolled.user_id, enrolled.named()),
    );
    let checker = cx.checker_of(caller);
    checker.allow(Stage::Enrolment, "write", &resource, reason)
}
