//! The identity providers of the operator's file: every step that a sign-in needs, without a person.

use super::code::Code;
use super::finding::{Findings, Level};
use crate::api::identity_providers::callback_url;
use crate::cli::reason;
use crate::config::Settings;
use crate::config::identity_providers::OperatorProvider;
use crate::ids::Clock;
use crate::oidc::{Issuer, Oidc};
use crate::outbound::Policy;
use crate::server::options;
use std::time::{Duration, Instant};

/// For all requests to one provider.
const PATIENCE_OF_EACH: Duration = Duration::from_secs(5);
/// After this time no further one is asked.
const PATIENCE: Duration = Duration::from_secs(6);

/// Asks each provider of the file.
pub(super) fn look(findings: &Findings, settings: &Settings) {
    let code = Code::IdentityProviders;
    let Some(file) = &settings.sign_in.identity_providers else {
        let told = "Tenants register their own; there is no file (SVC_IDENTITY_PROVIDERS_PATH).";
        return findings.skipped(code, told);
    };
    if file.0.is_empty() {
        return findings.ok(code, "The file names no provider.");
    }
    let outbound = match options::outbound(settings) {
        Ok(outbound) => outbound,
        Err(error) => return findings.warning(code, reason(&error)),
    };
    let oidc = Oidc::new(outbound, Clock::system(), PATIENCE_OF_EACH);
    let own = settings.sign_in.public_url.as_ref();
    let own = own.map_or("http://localhost", |own| own.text());
    let began = Instant::now();
    for provider in &file.0 {
        if began.elapsed() >= PATIENCE {
            let told = "Not every provider of the file could be looked at in time.";
            return findings.warning(code, told);
        }
        one(findings, &oidc, own, provider);
    }
}

fn one(findings: &Findings, oidc: &Oidc, own: &str, provider: &OperatorProvider) {
    let code = Code::IdentityProviders;
    let issuer = Issuer {
        issuer: &provider.issuer,
        client_id: &provider.client_id,
        client_secret: provider.client_secret.as_ref(),
        scopes: &provider.scopes,
        groups_claim: provider.groups_claim.as_deref(),
        policy: Policy::Operator,
    };
    let callback = callback_url(own, provider.id);
    let steps = oidc.check(&issuer, &callback);
    let bad = steps.iter().find(|step| step.is_ok == Some(false));
    let Some(bad) = bad else {
        let told = format!(
            "{} can be used. Register {callback} there.",
            provider.issuer
        );
        return findings.ok(code, told);
    };
    let told = format!("{}, step {}: {}", provider.issuer, bad.name, bad.value);
    match bad.remedy {
        Some(remedy) => findings.remedied(code, Level::Warning, told, remedy.to_owned()),
        None => findings.warning(code, told),
    }
}
