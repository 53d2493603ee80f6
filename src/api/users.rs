//! `/v1/identity/users`: the tenant's people (section 2.1).

use super::access_changes::change_access;
use super::enrolments::{self, Enrolment};
use super::page_query::page_query;
use super::request_parts::invalid_body;
use crate::authz::desired_tuples::{Object, mark};
use crate::error::{Code, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query, Text};
use crate::http::output::{Created, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Capability, Kind};
use crate::store::deactivation::{self, RoleScope};
use crate::store::enrolments as stored_enrolments;
use crate::store::page::Page;
use crate::store::principals::PrincipalKind;
use crate::store::users::{self, Filter, NewPerson, Person, TenantRole, User};
use crate::text::is_email;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Patch, Post};
    let (all, one) = ("/v1/identity/users", "/v1/identity/users/{userId}");
    vec![
        route(
            Post,
            all,
            "users.add",
            "Add a person, which takes keys:write as well; the answer shows once the code that mints their first key",
            add,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::AlreadyExists, Code::AuthorizationUnavailable]),
        route(Get, all, "users.list", "List the tenant's people", list),
        route(Get, one, "users.get", "Read a person", read),
        route(
            Patch,
            one,
            "users.update",
            "Change a person's name or tenant role",
            change,
        )
        .needs(Capability::AccessWrite)
        .answers(&[
            Code::Conflict,
            Code::LastAdmin,
            Code::AuthorizationUnavailable,
        ]),
        route(
            Post,
            "/v1/identity/users/{userId}/deactivate",
            "users.deactivate",
            "Deactivate a person: their keys and permissions end",
            deactivate,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::LastAdmin, Code::AuthorizationUnavailable]),
    ]
}

/// A person.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Person")]
struct View {
    id: Uuid,
    /// As it was given. The seed user has none.
    email: Option<String>,
    display_name: String,
    tenant_role: TenantRole,
    /// Who added the person. The seed user was added by nobody, and so was whom an identity provider added.
    created_by: Option<Uuid>,
    created_at: Timestamp,
    deactivated_at: Option<Timestamp>,
}

impl From<User> for View {
    fn from(user: User) -> Self {
        Self {
            id: user.user_id,
            email: user.email,
            display_name: user.display_name,
            tenant_role: user.tenant_role,
            created_by: user.created_by,
            created_at: user.created_at.into(),
            deactivated_at: user.deactivated_at.map(Into::into),
        }
    }
}

/// A person to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"email": "ada@example.com", "displayName": "Ada Lovelace", "tenantRole": "member"}))]
struct NewUser {
    /// It names the person whatever its case.
    email: Text<3, 320>,
    display_name: Name,
    tenant_role: TenantRole,
}

/// A person who was added.
#[derive(Serialize, JsonSchema)]
struct AddedPerson {
    #[serde(flatten)]
    person: View,
    enrolment: Enrolment,
}

/// What to change of a person.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"displayName": "Ada King"}))]
struct ChangeUser {
    display_name: Option<Name>,
    tenant_role: Option<TenantRole>,
}

/// Whether a user may do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "UserStatus")]
pub(super) enum Status {
    /// They may.
    Active,
    /// They were deactivated.
    Deactivated,
}

page_query! {
    /// Which people.
    ListUsers {
        /// With this role in the tenant.
        tenant_role: Option<TenantRole>,
        /// With this status.
        status: Option<Status>,
        /// The whole email, in any case.
        email: Option<Text<1, 320>>,
    }
}

fn check_email(email: &str) -> Result<()> {
    if is_email(email) {
        return Ok(());
    }
    let expected = "3 to 320 characters with one @ inside, no blanks and no control characters";
    Err(invalid_body("$.email", expected))
}

fn add(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Body(new): Body<NewUser>,
) -> Result<Created<AddedPerson>> {
    let OnTenant(may) = tenant;
    check_email(new.email.as_str())?;
    let (caller, now) = (may.caller(), cx.now());
    let row = NewPerson {
        user_id: cx.new_id(),
        email: new.email.as_str(),
        display_name: new.display_name.as_str(),
        tenant_role: new.tenant_role,
    };
    let code = enrolments::Code::mint(cx)?;
    let objects = [Object::Tenant(caller.tenant_id)];
    let person = change_access(cx, caller, &objects, |tx| {
        let person = users::insert_person(tx, &may, caller.user_id, &row, now)?;
        code.keep_first(tx, caller, &person, now)?;
        Ok(person)
    })?;
    Ok(Created(AddedPerson {
        person: person.0.into(),
        enrolment: code.show(),
    }))
}

fn list(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Query(query): Query<ListUsers>,
) -> Result<Found<Page<View>>> {
    let email = query.email.as_ref().map(Text::as_str);
    let binding = ("users", query.tenant_role, query.status, email);
    let page = query.page(&binding)?;
    let filter = Filter {
        tenant_role: query.tenant_role,
        active: query.status.map(|status| status == Status::Active),
        email,
    };
    let kind = PrincipalKind::User;
    let rows = users::list(&mut cx.store().session()?, &tenant.0, kind, &filter, &page)?;
    Ok(Found(page.page(rows, |row| row.user_id, View::from)))
}

fn read(_: &Cx<'_>, person: Authorized<Person, Admin>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(person.into_row().0.into()))
}

fn change(
    cx: &Cx<'_>,
    person: Authorized<Person, Admin>,
    Body(new): Body<ChangeUser>,
) -> Result<Found<View>> {
    let name = new.display_name.as_ref().map(Text::as_str);
    if name.is_none() && new.tenant_role.is_none() {
        return Err(invalid_body("$", "displayName, tenantRole, or both"));
    }
    let caller = person.caller();
    let (objects, now) = ([Object::Tenant(caller.tenant_id)], cx.now());
    let changed = change_access(cx, caller, &objects, |tx| {
        let changed = users::change_person(tx, &person, name, new.tenant_role)?;
        if new.tenant_role == Some(TenantRole::Member) {
            stored_enrolments::end_made_by(tx, &person, now)?;
        }
        Ok(changed)
    })?;
    Ok(Found(changed.0.into()))
}

fn deactivate(cx: &Cx<'_>, person: Authorized<Person, Admin>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(end(cx, &person)?.into()))
}

/// Deactivates a user, and answers once their keys and permissions have ended.
pub(super) fn end<K: Kind>(cx: &Cx<'_>, user: &Authorized<K, Admin>) -> Result<User> {
    let (tenant_id, user_id) = (user.caller().tenant_id, user.row().id());
    let now = cx.now();
    let (ended, objects) = cx.transact(|tx| {
        let ended = deactivation::deactivate(tx, user, now)?;
        let mut objects = vec![Object::Tenant(tenant_id)];
        objects.extend(ended.role_scopes.iter().map(|scope| match *scope {
            RoleScope::Org(id) => Object::Org(id),
            RoleScope::Team(id) => Object::Team(id),
            RoleScope::Project(id) => Object::Project(id),
        }));
        if ended.changed {
            mark(tx, tenant_id, &objects)?;
        }
        Ok((ended, objects))
    })?;
    // The keys end here whatever comes of the rest.
    cx.authn().forget_user(tenant_id, user_id);
    cx.apply_permissions(tenant_id, &objects)?;
    Ok(ended.user)
}
