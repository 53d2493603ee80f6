//! The secrets that a tool names: their form, and who may name them.

use super::request_parts::{all_of, invalid_body};
use super::secret_uses::A_SECRET;
use crate::error::{Code, Error, Result};
use crate::http::access::{Access, OnTenant};
use crate::http::context::Cx;
use crate::proof::{Admin, Authorized, Capability};
use crate::store::projects::Project;
use crate::store::tenants::Tenant;
use crate::store::{Tx, secret_uses};
use crate::tools::{header_fault, is_prefix};
use crate::{secrets, uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use time::OffsetDateTime;
use uuid::Uuid;

/// Headers of a tool at most.
pub(super) const HEADERS_MOST: usize = 8;

/// A header of each call whose value is a secret.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ToolHeader")]
pub(super) struct Header {
    /// Its name: not one that the service sends itself, such as `Content-Type`, and none that a proxy takes for itself.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// The name of the secret, found under the environment that the server serves (`SVC_ENVIRONMENT`).
    #[schemars(length(min = 1, max = 128))]
    secret: String,
    /// What stands before the value, such as `Bearer ` with its space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    prefix: Option<String>,
}

/// What a tool that is to be registered says of secrets.
pub(super) struct Named<'a> {
    pub(super) url: Option<&'a str>,
    pub(super) headers: &'a [Header],
    pub(super) signing_secret: Option<&'a str>,
}

/// Uses of secrets that a tool needs and that do not stand, to be written with it.
pub(super) struct Lacking {
    may: Authorized<Tenant, Admin>,
    target: String,
    names: Vec<String>,
}

impl Named<'_> {
    /// The headers and secrets that it names have the form of one.
    pub(super) fn check(&self) -> Result<()> {
        let mut faults = Vec::new();
        if self.headers.len() > HEADERS_MOST {
            let expected = format!("{HEADERS_MOST} headers at most");
            return Err(invalid_body("$.headers", expected));
        }
        let mut seen = HashSet::new();
        for (index, header) in self.headers.iter().enumerate() {
            let at = |field: &str| format!("$.headers[{index}].{field}");
            if let Some(expected) = header_fault(&header.name) {
                faults.push((at("name"), expected));
            } else if !seen.insert(header.name.to_ascii_lowercase()) {
                faults.push((at("name"), "a header that stands once"));
            }
            if !secrets::is_name(&header.secret) {
                faults.push((at("secret"), A_SECRET));
            }
            if !header.prefix.as_deref().is_none_or(is_prefix) {
                let expected = "64 printable ASCII characters at most, the first one no space";
                faults.push((at("prefix"), expected));
            }
        }
        if !self.signing_secret.is_none_or(secrets::is_name) {
            faults.push(("$.signingSecret".to_owned(), A_SECRET));
        }
        all_of(faults)
    }

    /// Whoever says where a secret is sent can read it. So naming one takes a use that stands for the tool's origin and project, or
    /// else what putting a secret takes: then the use is written with the tool.
    pub(super) fn check_right(
        &self,
        cx: &Cx<'_>,
        on: &Authorized<Project, Admin>,
    ) -> Result<Option<Lacking>> {
        let of_headers = self.headers.iter().map(|header| header.secret.as_str());
        let names: BTreeSet<&str> = of_headers.chain(self.signing_secret).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = names.into_iter().collect();
        let origin = self.url.and_then(uri::origin);
        let target = origin
            .as_deref()
            .map(secret_uses::of_origin)
            .unwrap_or_default();
        let lacking = {
            let (tenant_id, project_id) = (on.caller().tenant_id, on.row().project_id);
            secret_uses::lacking(
                &mut cx.store().session()?,
                tenant_id,
                project_id,
                &target,
                &names,
            )?
        };
        let Some(first) = lacking.first() else {
            return Ok(None);
        };
        let said = format!(
            "The secret {first} has no use for {} in this project. A tenant admin whose key has secrets:write can create it (POST /v1/secret-uses), or register the tool.",
            origin.as_deref().unwrap_or("this URL")
        );
        let refused = |error: Error| match error.code() {
            Code::PermissionDenied => error.adding(&said),
            _ => error,
        };
        let OnTenant(may) = OnTenant::<Admin>::check(cx).map_err(refused)?;
        cx.checker()?
            .needs(Capability::SecretsWrite)
            .map_err(refused)?;
        Ok(Some(Lacking {
            may,
            target,
            names: lacking,
        }))
    }
}

impl Lacking {
    pub(super) fn write(
        &self,
        cx: &Cx<'_>,
        tx: &mut Tx<'_>,
        project_id: Uuid,
        now: OffsetDateTime,
    ) -> Result<()> {
        for name in &self.names {
            let new = secret_uses::New {
                secret_use_id: cx.new_id(),
                name,
                project_id: Some(project_id),
                target: &self.target,
            };
            // One that was created since is as good.
            secret_uses::insert(tx, &self.may, self.may.caller(), &new, now)?;
        }
        Ok(())
    }
}
