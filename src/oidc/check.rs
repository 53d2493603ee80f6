//! The check of a provider: every step that a sign-in needs, one after the other, without a person.

use super::cache::Cache;
use super::discovery::{self, Metadata};
use super::exchange::{Exchange, ahead};
use super::fault::{Code, Fault, shown};
use super::issuer::Issuer;
use super::keys::{self, ALGORITHMS, Keys};
use super::verify::SKEW;
use crate::ids::Clock;
use crate::outbound::Response;

/// What a step found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// `discovery`, `issuer`, `endpoints`, `keys`, `algorithms`, `pkce`, `clock`, `callback`.
    pub name: &'static str,
    /// Whether a sign-in passes it. None: it could not be looked at, because one before it failed.
    pub is_ok: Option<bool>,
    /// What was found, in a sentence.
    pub value: String,
    /// What to do, if it is not well.
    pub remedy: Option<&'static str>,
}

impl Step {
    fn well(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            is_ok: Some(true),
            value: value.into(),
            remedy: None,
        }
    }

    fn bad(name: &'static str, value: impl Into<String>, remedy: &'static str) -> Self {
        Self {
            name,
            is_ok: Some(false),
            value: value.into(),
            remedy: Some(remedy),
        }
    }

    fn of_fault(name: &'static str, fault: &Fault) -> Self {
        Self::bad(name, fault.sentence(), fault.remedy())
    }

    fn skipped(name: &'static str) -> Self {
        Self {
            name,
            is_ok: None,
            value: "Not looked at: a step before it failed.".to_owned(),
            remedy: None,
        }
    }
}

/// The steps that need the document.
const OF_DOCUMENT: [&str; 6] = ["issuer", "endpoints", "keys", "algorithms", "pkce", "clock"];

pub(super) fn check(
    exchange: &mut Exchange<'_>,
    cache: &Cache,
    clock: &Clock,
    issuer: &Issuer<'_>,
    redirect_uri: Option<&str>,
) -> Vec<Step> {
    let mut steps = of_provider(exchange, cache, clock, issuer);
    let missing = OF_DOCUMENT
        .into_iter()
        .filter(|name| !steps.iter().any(|step| step.name == *name));
    let missing: Vec<Step> = missing.map(Step::skipped).collect();
    steps.extend(missing);
    steps.push(of_callback(redirect_uri));
    steps
}

/// Only a sign-in shows whether the provider knows the address.
fn of_callback(redirect_uri: Option<&str>) -> Step {
    const NAME: &str = "callback";
    match redirect_uri {
        Some(uri) => Step::well(NAME, format!("Register exactly this address there: {uri}")),
        None => Step::bad(
            NAME,
            "This server has no address to come back to.",
            "The operator sets SVC_PUBLIC_URL to the address that people open.",
        ),
    }
}

fn of_provider(
    exchange: &mut Exchange<'_>,
    cache: &Cache,
    clock: &Clock,
    issuer: &Issuer<'_>,
) -> Vec<Step> {
    let answer = match discovery::fetch(exchange, issuer) {
        Ok(answer) => answer,
        Err(fault) if fault.code() == Code::IssuerDiffers => {
            return vec![Step::skipped("discovery"), Step::of_fault("issuer", &fault)];
        }
        Err(fault) => return vec![Step::of_fault("discovery", &fault)],
    };
    let mut steps = vec![Step::well("discovery", "The provider's document was read.")];
    let metadata = match discovery::metadata(exchange, issuer, &answer) {
        Ok(metadata) => metadata,
        Err(fault) => {
            let name = match fault.code() {
                Code::IssuerDiffers => "issuer",
                Code::EndpointRefused => "endpoints",
                _ => "discovery",
            };
            steps.retain(|step| step.name != name);
            if name == "endpoints" {
                steps.push(Step::well("issuer", issuer.issuer));
            }
            steps.push(Step::of_fault(name, &fault));
            return steps;
        }
    };
    steps.push(Step::well("issuer", issuer.issuer));
    steps.push(Step::well("endpoints", endpoints(&metadata)));
    let keys = keys::fetch(exchange, &metadata.jwks_uri);
    let keys = keys.and_then(|keys| Keys::of(&keys, None, clock.now()));
    steps.push(of_keys(&keys));
    steps.push(of_algorithms(&metadata));
    steps.push(of_pkce(&metadata));
    steps.push(of_clock(clock, &answer));
    cache.keep(issuer, metadata);
    steps
}

fn endpoints(metadata: &Metadata) -> String {
    let hosts = [
        Some(&metadata.authorization_endpoint),
        Some(&metadata.token_endpoint),
        Some(&metadata.jwks_uri),
        metadata.userinfo_endpoint.as_ref(),
    ];
    let hosts = hosts.into_iter().flatten();
    let mut hosts: Vec<&str> = hosts.filter_map(|url| url.host_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    format!("This host asks {}.", hosts.join(", "))
}

fn of_keys(keys: &Result<Keys, Fault>) -> Step {
    const NAME: &str = "keys";
    match keys {
        Ok(keys) if keys.count() > 0 => {
            Step::well(NAME, format!("Keys that verify: {}.", keys.count()))
        }
        Ok(_) => Step::bad(
            NAME,
            "The provider lists no key that verifies RS256, PS256, ES256 or EdDSA.",
            Code::AlgorithmRefused.remedy(),
        ),
        Err(fault) => Step::of_fault(NAME, fault),
    }
}

fn of_algorithms(metadata: &Metadata) -> Step {
    const NAME: &str = "algorithms";
    let offered = &metadata.algorithms;
    let taken: Vec<&str> = ALGORITHMS
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| offered.iter().any(|offered| offered == name))
        .collect();
    if !taken.is_empty() {
        return Step::well(
            NAME,
            format!("Taken of what the provider offers: {}.", taken.join(", ")),
        );
    }
    if offered.is_empty() {
        return Step::well(NAME, "The provider does not say with which it signs.");
    }
    let offered: Vec<String> = offered.iter().take(20).map(|name| shown(name)).collect();
    let value = format!(
        "The provider signs with {} alone, and none of them is taken.",
        offered.join(", ")
    );
    Step::bad(NAME, value, Code::AlgorithmRefused.remedy())
}

fn of_pkce(metadata: &Metadata) -> Step {
    const NAME: &str = "pkce";
    match metadata.takes_pkce {
        Some(true) => Step::well(NAME, "The provider checks PKCE with S256."),
        None => Step::well(
            NAME,
            "The provider does not say whether it checks PKCE; it is used anyway.",
        ),
        Some(false) => Step::bad(
            NAME,
            "The provider does not know PKCE with S256.",
            "Turn PKCE with S256 on for this client at the provider.",
        ),
    }
}

fn of_clock(clock: &Clock, answer: &Response) -> Step {
    const NAME: &str = "clock";
    let Some(ahead) = ahead(answer, clock) else {
        return Step::well(
            NAME,
            "The provider's answer does not say what time it is there.",
        );
    };
    let value = match ahead {
        0.. => format!("The provider's clock is {ahead} s ahead of this host's."),
        _ => format!("The provider's clock is {} s behind this host's.", -ahead),
    };
    // ID tokens are refused beyond it; an answer may be a second old.
    match ahead.unsigned_abs() <= SKEW.as_secs() {
        true => Step::well(NAME, value),
        false => Step::bad(NAME, value, Code::TimeWrong.remedy()),
    }
}
