//! Uses of secrets: whether each secret that a tool names has one for the tool's origin and project, and each use a secret.

use super::code::Code;
use super::finding::Findings;
use super::tool_secrets::{NAMES_MOST, Stored, listed};
use crate::config::Settings;
use crate::error::Result;
use crate::store::secret_uses::{self, Needed, OfOperator};
use crate::store::tools::{NamedSecret, named_secrets};
use crate::uri;
use postgres::Client;

/// Looks at the uses, in a database of this program's schema.
pub(super) fn look(findings: &Findings, client: &mut Client, settings: &Settings) -> Result<()> {
    let environment = settings.environment.as_deref();
    let named = named_secrets(client, environment, NAMES_MOST)?;
    let lacking = lacking(client, &named)?;
    let uses = secret_uses::of_operator(client, environment, NAMES_MOST)?;
    let mut empty = Vec::new();
    if let Some(environment) = environment {
        let stored = Stored::of(settings)?;
        for one in &uses {
            if !stored.has(environment, one.tenant_id, &one.name, one.is_stored)? {
                empty.push(one);
            }
        }
    }
    if lacking.is_empty() && empty.is_empty() {
        findings.ok(
            Code::SecretUses,
            format!("{} uses of secrets were found.", uses.len()),
        );
    } else {
        let sentences = [without_use(&lacking), without_secret(environment, &empty)];
        let sentences: Vec<String> = sentences.into_iter().flatten().collect();
        findings.warning(Code::SecretUses, sentences.join(" "));
    }
    Ok(())
}

/// The secrets of tools that have no use.
fn lacking<'a>(client: &mut Client, named: &'a [NamedSecret]) -> Result<Vec<&'a NamedSecret>> {
    let needed = named.iter().map(|one| Needed {
        tenant_id: one.tenant_id,
        project_id: one.project_id,
        name: one.secret.clone(),
        target: secret_uses::of_origin(&uri::origin(&one.url).unwrap_or_default()),
    });
    let needed: Vec<Needed> = needed.collect();
    let lacking = secret_uses::lacking_of_many(client, &needed)?;
    Ok(lacking.into_iter().filter_map(|at| named.get(at)).collect())
}

fn without_use(lacking: &[&NamedSecret]) -> Option<String> {
    let of = |one: &&NamedSecret| {
        let origin = uri::origin(&one.url).unwrap_or_default();
        let (secret, tool, project) = (&one.secret, &one.tool, &one.project);
        format!("{secret} for {origin} (tool {tool}, project {project})")
    };
    listed(lacking, of).map(|all| format!("Calls of tools are not made, for want of a use: {all}."))
}

fn without_secret(environment: Option<&str>, empty: &[&OfOperator]) -> Option<String> {
    let of = |one: &&OfOperator| format!("{} for {}", one.name, one.target);
    let all = listed(empty, of)?;
    let environment = environment.unwrap_or_default();
    Some(format!(
        "Uses without a secret in the environment {environment}: {all}."
    ))
}
