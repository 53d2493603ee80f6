//! The collector of traces, and the forward proxy.

use super::code::Code;
use super::finding::Findings;
use crate::cli::reason;
use crate::config::Settings;
use crate::outbound::{Method, Outgoing, Policy, Timeouts};
use crate::server::options;
use crate::traces;
use std::time::Duration;

pub(super) const CODES: &[Code] = &[Code::Otlp, Code::ForwardProxy];

/// For the collector's answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// For the answer of each origin behind the proxy, of so many.
const PATIENCE_OF_EACH: Duration = Duration::from_secs(2);
const ORIGINS: usize = 5;

/// Asks the proxy and the collector.
pub(super) fn look(findings: &Findings, settings: &Settings) {
    proxy(findings, settings);
    collector(findings, settings);
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
