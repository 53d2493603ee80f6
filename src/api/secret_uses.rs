//! `/v1/secret-uses`: which secret may be sent where, for which project.
//!
//! A tool that names a secret can be registered by a project admin where its uses stand (`tools`), and each call checks them
//! again. Model providers, identity providers and webhooks have rules of their own.

use super::page_query::page_query;
use super::request_parts::invalid_body;
use crate::error::{Code, Error, Result};
use crate::http::access::{MayName, NamingProject, OnTenant};
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::{Body, Nothing, Query};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Capability};
use crate::secrets;
use crate::store::page::Page;
use crate::store::secret_uses::{self, SecretUse};
use crate::uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest target: a URL's bytes and the prefix.
const TARGET_MOST: usize = 2055;

/// The form of a secret's name.
pub(super) const A_SECRET: &str = "the name of a secret: 1 to 128 letters, digits and underscores, no digit first, and not the prefix SVC_";

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    let (all, one) = ("/v1/secret-uses", "/v1/secret-uses/{secretUseId}");
    vec![
        route(
            Post,
            all,
            "secretUses.create",
            "Allow a secret to be sent to a target",
            create,
        )
        .needs(Capability::SecretsWrite)
        .answers(&[Code::AlreadyExists, Code::Conflict]),
        route(
            Get,
            all,
            "secretUses.list",
            "List the uses of secrets",
            list,
        ),
        route(
            Delete,
            one,
            "secretUses.delete",
            "Delete a use of a secret: calls of tools that need it are not made any more, also those of runs under way",
            delete,
        )
        .needs(Capability::SecretsWrite),
    ]
}

/// A use of a secret.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SecretUse")]
struct View {
    id: Uuid,
    /// The secret's name, in every environment.
    name: String,
    /// Where it may be sent, such as `origin:https://api.example.com`.
    target: String,
    /// For this project alone; null: for every project.
    project_id: Option<Uuid>,
    created_by: Uuid,
    created_at: Timestamp,
}

impl From<SecretUse> for View {
    fn from(of: SecretUse) -> Self {
        Self {
            id: of.secret_use_id,
            name: of.name,
            target: of.target,
            project_id: of.project_id,
            created_by: of.created_by,
            created_at: of.created_at.into(),
        }
    }
}

/// A use to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "WEATHER_KEY", "target": "origin:https://api.example.com"}))]
struct NewSecretUse {
    /// The secret's name. It need not be there yet.
    #[schemars(length(min = 1, max = 128))]
    name: String,
    /// `origin:` and the scheme, host and port of the HTTP servers that may get it.
    #[schemars(length(min = 1, max = TARGET_MOST))]
    target: String,
    /// For this project alone; left out: for every project.
    project_id: Option<Id>,
}

impl MayName for NewSecretUse {
    fn project_id(&self) -> Option<Uuid> {
        self.project_id.map(Uuid::from)
    }
}

page_query! {
    /// Which uses.
    ListSecretUses {
        /// Of the secret of this name alone.
        name: Option<String>,
    }
}

/// The target in the one form in which it is compared.
fn target(text: &str) -> Result<String> {
    let refused = |expected: &str| Err(invalid_body("$.target", expected));
    if text.starts_with("pack:") {
        return refused(
            "origin: and an origin. Packs are not built yet, so a secret has no use of one",
        );
    }
    let origin = text
        .strip_prefix("origin:")
        .filter(|_| text.len() <= TARGET_MOST)
        .and_then(uri::bare_origin);
    match origin {
        Some(origin) => Ok(secret_uses::of_origin(&origin)),
        None => refused(
            "origin: and the origin of an HTTP server without a path, such as origin:https://api.example.com",
        ),
    }
}

fn create(
    cx: &Cx<'_>,
    tenant: NamingProject<NewSecretUse, OnTenant<Admin>>,
    Body(new): Body<NewSecretUse>,
) -> Result<Created<View>> {
    let OnTenant(may) = tenant.access;
    let name = match secrets::is_name(&new.name) {
        true => Ok(()),
        false => Err(invalid_body("$.name", A_SECRET)),
    };
    let ((), target) = both(name, target(&new.target))?;
    let new = secret_uses::New {
        secret_use_id: cx.new_id(),
        name: &new.name,
        project_id: new.project_id.map(Uuid::from),
        target: &target,
    };
    let now = cx.now();
    let made = cx.transact(|tx| secret_uses::insert(tx, &may, may.caller(), &new, now))?;
    let made = made.ok_or_else(|| {
        Error::new(
            Code::AlreadyExists,
            format!(
                "The secret {} has this use already. There is nothing to do.",
                new.name
            ),
        )
    })?;
    Ok(Created(made.into()))
}

fn list(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Query(query): Query<ListSecretUses>,
) -> Result<Found<Page<View>>> {
    let binding = ("secret-uses", query.name.as_deref());
    let page = query.page(&binding)?;
    let rows = secret_uses::list(
        &mut cx.store().session()?,
        &tenant.0,
        query.name.as_deref(),
        &page,
    )?;
    Ok(Found(page.page(rows, |row| row.secret_use_id, View::from)))
}

fn delete(cx: &Cx<'_>, of: Authorized<SecretUse, Admin>, _: Nothing) -> Result<Gone> {
    cx.transact(|tx| secret_uses::delete(tx, &of))?;
    Ok(Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_one_form() {
        for (given, stands) in [
            (
                "origin:https://api.example.com",
                "origin:https://api.example.com",
            ),
            (
                "origin:https://api.example.com/",
                "origin:https://api.example.com",
            ),
            (
                "origin:HTTPS://API.Example.com:443",
                "origin:https://api.example.com",
            ),
            (
                "origin:http://api.example.com:80",
                "origin:http://api.example.com",
            ),
            (
                "origin:http://api.example.com:8080",
                "origin:http://api.example.com:8080",
            ),
            (
                "origin:https://bücher.example",
                "origin:https://xn--bcher-kva.example",
            ),
            ("origin:http://[::1]:9", "origin:http://[::1]:9"),
        ] {
            assert_eq!(target(given).ok().as_deref(), Some(stands), "{given}");
        }
        let long = format!("origin:https://{}.example", "a".repeat(TARGET_MOST));
        for bad in [
            "",
            "https://api.example.com",
            "origin:",
            "origin:api.example.com",
            "origin:ftp://api.example.com",
            "origin:file:///etc",
            "origin:https://api.example.com/v1",
            "origin:https://api.example.com?a",
            "origin:https://api.example.com#a",
            "origin:https://ada@api.example.com",
            "origin:https://ada:b@api.example.com",
            "origin: https://api.example.com",
            "origin:https://api.example.com ",
            "origin:https://*.example.com",
            "pack:weather",
            "host:api.example.com",
            &long,
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
        let said = target("pack:weather").unwrap_err();
        assert!(said.message().contains("Packs are not built yet"), "{said}");
    }
}
