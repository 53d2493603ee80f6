//! What is asked over HTTP: the server's own public address, the collector of traces, and the forward proxy.

use super::code::Code;
use super::finding::Findings;
use crate::cli::reason;
use crate::config::Settings;
use crate::http::console::POLICY;
use crate::outbound::{Method, Outbound, Outgoing, Policy, Response, Timeouts};
use crate::traces;
use std::time::Duration;

pub(super) const CODES: &[Code] = &[Code::SignIn, Code::Console, Code::Otlp, Code::ForwardProxy];

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
        let sentence = match settings.development {
            true => "In development people sign in at any loopback address.",
            false => "There is none, so nobody signs in with a browser (SVC_PUBLIC_URL).",
        };
        findings.skipped(Code::SignIn, sentence);
        return findings.skipped(
            Code::Console,
            "There is no public address (SVC_PUBLIC_URL).",
        );
    };
    let url = format!("{}/v1/sign-in", public.text());
    let answer = match asked(settings, &url) {
        Ok(answer) => answer,
        Err(sentence) => {
            findings.skipped(Code::Console, "The public address does not answer.");
            return findings.warning(Code::SignIn, sentence);
        }
    };
    console(findings, settings, public.text());
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

/// What an address answers, or why it does not.
fn asked(settings: &Settings, url: &str) -> Result<Response, String> {
    let outbound = Outbound::from_settings(settings).map_err(|error| reason(&error))?;
    let timeouts = Timeouts {
        connect: PATIENCE_OF_EACH,
        first_byte: PATIENCE_OF_EACH,
        idle: None,
        total: PATIENCE_OF_EACH,
    };
    let asked = outbound.client(Policy::Operator, timeouts).send(&Outgoing {
        method: Method::GET,
        url,
        headers: &[],
        body: &[],
        cap: 64 * 1024,
    });
    asked.map_err(|failure| format!("{url} does not answer: {}", failure.message()))
}

/// Whether the console comes with the policy that it was sent with: with another one its page stays blank.
fn console(findings: &Findings, settings: &Settings, public: &str) {
    if !settings.http.console {
        return findings.skipped(Code::Console, "It is turned off (SVC_CONSOLE).");
    }
    let url = format!("{public}/console/");
    let answer = match asked(settings, &url) {
        Ok(answer) => answer,
        Err(sentence) => return findings.warning(Code::Console, sentence),
    };
    let policies = answer.headers.get_all("content-security-policy");
    let policies: Vec<&str> = policies
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    match (answer.status, policies.as_slice()) {
        (200, [POLICY]) => {
            findings.ok(Code::Console, format!("It is served at {url}."));
        }
        (200, _) => findings.warning(
            Code::Console,
            format!("{url} comes with another content security policy than the server's own, so its page may stay blank."),
        ),
        (status, _) => {
            findings.warning(Code::Console, format!("{url} answered {status}."));
        }
    }
}

fn proxy(findings: &Findings, settings: &Settings) {
    let Some(proxy) = &settings.outbound.forward_proxy else {
        return findings.skipped(Code::ForwardProxy, "There is none (SVC_FORWARD_PROXY).");
    };
    let outbound = match Outbound::from_settings(settings) {
        Ok(outbound) => outbound,
        Err(error) => return findings.warning(Code::ForwardProxy, reason(&error)),
    };
    let timeouts = Timeouts {
        connect: PATIENCE_OF_EACH,
        first_byte: PATIENCE_OF_EACH,
        idle: None,
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
    let Some(collector) = traces::Options::from_settings(settings) else {
        return findings.skipped(Code::Otlp, "There is none (SVC_OTLP_ENDPOINT).");
    };
    let asked = Outbound::from_settings(settings)
        .map_err(|error| reason(&error))
        .and_then(|outbound| traces::probe(&collector, &outbound, PATIENCE));
    match asked {
        Ok(()) => findings.ok(Code::Otlp, format!("{} takes spans.", collector.endpoint)),
        Err(sentence) => findings.warning(Code::Otlp, sentence),
    }
}
