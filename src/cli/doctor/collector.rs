//! The collector of traces.

use super::code::Code;
use super::finding::Findings;
use crate::cli::reason;
use crate::config::Settings;
use crate::server::options;
use crate::traces;
use std::time::Duration;

pub(super) const CODES: &[Code] = &[Code::Otlp];

/// For the collector's answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// Asks the collector.
pub(super) fn look(findings: &Findings, settings: &Settings) {
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
