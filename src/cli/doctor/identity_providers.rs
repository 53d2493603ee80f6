//! The identity providers of the operator's file: every step that a sign-in needs, without a person.

use super::code::Code;
use super::finding::{Findings, Level};
use crate::api::identity_providers::callback_url;
use crate::cli::reason;
use crate::config::Settings;
use crate::config::identity_providers::OperatorProvider;
use crate::ids::Clock;
use crate::oidc::{Issuer, Oidc, Step};
use crate::outbound::Outbound;
use crate::outbound::Policy;
use std::time::{Duration, Instant};

pub(super) const CODES: &[Code] = &[Code::IdentityProviders];

/// For all providers together.
const PATIENCE: Duration = Duration::from_secs(15);

/// Asks each provider of the file.
pub(super) fn look(findings: &Findings, settings: &Settings) {
    let code = Code::IdentityProviders;
    let Some(file) = &settings.sign_in.identity_providers else {
        let sentence =
            "Tenants register their own; there is no file (SVC_IDENTITY_PROVIDERS_PATH).";
        return findings.skipped(code, sentence);
    };
    if file.0.is_empty() {
        return findings.ok(code, "The file names no provider.");
    }
    let outbound = match Outbound::from_settings(settings) {
        Ok(outbound) => outbound,
        Err(error) => return findings.warning(code, reason(&error)),
    };
    let public = settings.sign_in.public_url.as_ref();
    let own = match (public, settings.development) {
        (Some(public), _) => Some(public.text().to_owned()),
        // In development any loopback address serves.
        (None, true) => Some(format!("http://localhost:{}", settings.http.address.port())),
        (None, false) => None,
    };
    let allowed = settings.sign_in.provider_timeout;
    let began = Instant::now();
    for provider in &file.0 {
        let left = PATIENCE.saturating_sub(began.elapsed());
        if left.is_zero() {
            let sentence = "Not every provider of the file could be looked at in time.";
            return findings.warning(code, sentence);
        }
        // As long as a sign-in waits, and no longer: what is slower signs nobody in.
        let oidc = Oidc::new(outbound.clone(), Clock::system(), allowed.min(left));
        let steps = check(&oidc, own.as_deref(), provider);
        if left < allowed && began.elapsed() >= PATIENCE {
            let sentence = format!(
                "{} did not answer within the {} s that all providers have together here.",
                provider.issuer,
                PATIENCE.as_secs()
            );
            return findings.warning(code, sentence);
        }
        say(findings, provider, &steps);
    }
}

fn check(oidc: &Oidc, own: Option<&str>, provider: &OperatorProvider) -> Vec<Step> {
    let issuer = Issuer {
        issuer: &provider.issuer,
        client_id: &provider.client_id,
        client_secret: provider.client_secret.as_ref(),
        scopes: &provider.scopes,
        groups_claim: provider.groups_claim.as_deref(),
        policy: Policy::Operator,
    };
    let callback = own.map(|own| callback_url(own, provider.id));
    oidc.check(&issuer, callback.as_deref())
}

/// The first step that fails, or what the last one says: which address to register.
fn say(findings: &Findings, provider: &OperatorProvider, steps: &[Step]) {
    let code = Code::IdentityProviders;
    let bad = steps.iter().find(|step| step.is_ok == Some(false));
    let Some(bad) = bad else {
        let register = steps.last().map_or("", |step| step.value.as_str());
        let sentence = format!("{} can be used. {register}", provider.issuer);
        return findings.ok(code, sentence);
    };
    let sentence = format!("{}, step {}: {}", provider.issuer, bad.name, bad.value);
    match bad.remedy {
        Some(remedy) => findings.remedied(code, Level::Warning, sentence, remedy.to_owned()),
        None => findings.warning(code, sentence),
    }
}
