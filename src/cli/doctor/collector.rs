//! What is asked over HTTP: the server's own public address, the collector of traces, and the forward proxy.

use super::code::Code;
use super::finding::Findings;
use crate::cli::reason;
use crate::config::Settings;
use crate::outbound::{Method, Outgoing, Policy, Timeouts};
use crate::server::options;
use crate::traces;
use std::time::Duration;

pub(super) const CODES: &[Code] = &[Code::SignIn, Code::Otlp, Code::ForwardProxy];

/// For the collector's answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// For the answer of each origin behind the proxy, of so many.
const PATIENCE_OF_EACH: Duration = Duration::from_secs(2);
const ORIGINS: usize = 5;

/// Asks the public address, the proxy and the collector.
pub(super) fn look(findings: &Findings, settings: &Settings) {
    public_address(findings, settings);
    proxy(findings, settings);
    collector(findings, settings);
}

/// Whether the server knows the public address for its own, as a browser reaches it.
fn public_address(findings: &Findings, settings: &Settings) {
    let Some(public) = &settings.sign_in.public_url else {
        let told = match settings.development {
            true => "In development people sign in at any loopback address.",
            false => "There is none, so nobody signs in with a browser (SVC_PUBLIC_URL).",
        };
        return findings.skipped(Code::SignIn, told);
    };
    let outbound = match options::outbound(settings) {
        Ok(outbound) => outbound,
        Err(error) => return findings.warning(Code::SignIn, reason(&error)),
    };
    let timeouts = Timeouts {
        connect: PATIENCE_OF_EACH,
        first_byte: PATIENCE_OF_EACH,
        total: PATIENCE_OF_EACH,
    };
    let url = format!("{}/v1/sign-in", public.text());
    let asked = outbound.client(Policy::Operator, timeouts).send(&Outgoing {
        method: Method::GET,
        url: &url,
        headers: &[],
        body: &[],
        cap: 64 * 1024,
    });
    let answer = match asked {
        Ok(answer) => answer,
        Err(failure) => {
            let sentence = format!("{url} does not answer: {}", failure.message());
            return findings.warning(Code::SignIn, sentence);
        }
    };
    let ways: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
    let ways = ways.filter(|ways| answer.status == 200 && ways.get("problem").is_some());
    match ways.map(|ways| ways["problem"].is_null()) {
        Some(true) => findings.ok(
            Code::SignIn,
            format!("People sign in at {}.", public.text()),
        ),
        Some(false) => findings.warning(
            Code::SignIn,
            format!(
                "The server at {} was not addressed by that name: the header Host is changed on the way.",
                public.text()
            ),
        ),
        None => findings.warning(
            Code::SignIn,
            format!("{url} answered {} as no agent-runtime does.", answer.status),
        ),
    }
}

fn proxy(findings: &Findings, settings: &Settings) {
    let Some(proxy) = &settings.outbound.forward_proxy else {
        return findings.skipped(Code::ForwardProxy, "There is none (SVC_FORWARD_PROXY).");
    };
    let outbound = match options::outbound(settings) {
        Ok(outbound) => outbound,
        Err(error) => return findings.warning(Code::ForwardProxy, reason(&error)),
    };
    let timeouts = Timeouts {
        connect: PATIENCE_OF_EACH,
        first_byte: PATIENCE_OF_EACH,
        total: PATIENCE_OF_EACH,
    };
    let mut client = outbound.client_through_proxy(Policy::Operator, timeouts);
    for origin in proxy.origins.iter().take(ORIGINS) {
        let asked = client.open(&Outgoing {
            method: Method::GET,
            url: origin.text(),
            headers: &[],
            body: &[],
            cap: u64::MAX,
        });
        match asked {
            Ok(_) => {
                let sentence = format!("{} is reached through it.", origin.text());
                findings.ok(Code::ForwardProxy, sentence);
            }
            Err(failure) => findings.warning(Code::ForwardProxy, failure.message()),
        }
    }
}

fn collector(findings: &Findings, settings: &Settings) {
    let Some(collector) = options::traces(settings) else {
        return findings.skipped(Code::Otlp, "There is none (SVC_OTLP_ENDPOINT).");
    };
    let asked = options::outbound(settings)
        .map_err(|error| reason(&error))
        .and_then(|outbound| traces::probe(&collector, &outbound, PATIENCE));
    match asked {
        Ok(()) => findings.ok(Code::Otlp, format!("{} takes spans.", collector.endpoint)),
        Err(sentence) => findings.warning(Code::Otlp, sentence),
    }
}
