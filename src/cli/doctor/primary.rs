//! Which of several hosts is the primary database.
//!
//! Not here: since when. The host does not say so to a role without further rights; each server's metrics have it.

use super::code::Code;
use super::database::asked_of;
use super::finding::{Findings, Level};
use crate::config::Settings;
use crate::error::Result;
use crate::store;
use crate::store::connect::Manager;
use crate::store::primary::{Host, Said};

pub(super) const CODES: &[Code] = &[Code::DatabasePrimary];

/// Asks every host.
pub(super) fn look(findings: &Findings, settings: &Settings) {
    asked_of(findings, Code::DatabasePrimary, ask(findings, settings));
}

fn ask(findings: &Findings, settings: &Settings) -> Result<()> {
    let code = Code::DatabasePrimary;
    let Some(hosts) = Manager::new(&store::Options::from_settings(settings))?.ask_hosts() else {
        findings.skipped(code, "SVC_DATABASE_URL names one host.");
        return Ok(());
    };
    let (level, sentence) = judged(&hosts);
    match level {
        Level::Fault => findings.fault(code, sentence),
        Level::Warning => findings.warning(code, sentence),
        Level::Ok | Level::Skipped => findings.ok(code, sentence),
    }
    Ok(())
}

/// What the hosts said, and how bad that is.
fn judged(hosts: &[Host]) -> (Level, String) {
    let primaries = hosts.iter().filter_map(|host| match host.said {
        Said::Primary(seen) => Some(seen),
        _ => None,
    });
    let newest = primaries.max_by_key(|seen| seen.timeline);
    let each = hosts.iter().map(|Host { name, said }| match said {
        Said::Primary(seen) if Some(*seen) == newest => {
            let timeline = seen.timeline;
            (
                Level::Ok,
                format!("{name} is the primary, on timeline {timeline}"),
            )
        }
        Said::Primary(seen) if newest.is_some_and(|newest| newest.system != seen.system) => (
            Level::Fault,
            format!("{name} is the primary of another cluster"),
        ),
        Said::Primary(seen) => {
            let timeline = seen.timeline;
            (
                Level::Fault,
                format!("{name} is an old primary, on timeline {timeline}"),
            )
        }
        Said::Standby => (Level::Ok, format!("{name} is a standby")),
        Said::Nothing(why) => (Level::Warning, format!("{name} does not answer: {why}")),
    });
    let (levels, mut parts): (Vec<_>, Vec<_>) = each.unzip();
    let mut worst = levels.into_iter().max().unwrap_or(Level::Fault);
    if newest.is_none() {
        worst = Level::Fault;
        parts.insert(0, "no host is a primary".to_owned());
    }
    (worst, format!("{}.", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::primary::Seen;

    #[track_caller]
    fn check(said: impl IntoIterator<Item = Said>, level: Level, sentence: &str) {
        let names = ["a:1", "b:2", "c:3"].map(str::to_owned);
        let hosts = names.into_iter().zip(said);
        let hosts: Vec<Host> = hosts.map(|(name, said)| Host { name, said }).collect();
        assert_eq!(judged(&hosts), (level, sentence.to_owned()));
    }

    #[test]
    fn the_newest_primary_is_named_and_what_is_wrong_beside_it() {
        let primary = |system, timeline| Said::Primary(Seen { system, timeline });
        let nothing = || Said::Nothing("timed out".to_owned());
        check(
            [Said::Standby, primary(1, 2), Said::Standby],
            Level::Ok,
            "a:1 is a standby; b:2 is the primary, on timeline 2; c:3 is a standby.",
        );
        // Two names of one server.
        check(
            [primary(1, 2), primary(1, 2)],
            Level::Ok,
            "a:1 is the primary, on timeline 2; b:2 is the primary, on timeline 2.",
        );
        check(
            [primary(1, 1), primary(1, 2), nothing()],
            Level::Fault,
            "a:1 is an old primary, on timeline 1; b:2 is the primary, on timeline 2; c:3 does not answer: timed out.",
        );
        check(
            [primary(2, 1), primary(1, 2)],
            Level::Fault,
            "a:1 is the primary of another cluster; b:2 is the primary, on timeline 2.",
        );
        check(
            [nothing(), primary(1, 1)],
            Level::Warning,
            "a:1 does not answer: timed out; b:2 is the primary, on timeline 1.",
        );
        check(
            [nothing(), Said::Standby],
            Level::Fault,
            "no host is a primary; a:1 does not answer: timed out; b:2 is a standby.",
        );
    }
}
