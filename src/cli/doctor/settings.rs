//! The settings and the license.

use super::code::Code;
use super::finding::{Findings, Level};
use crate::config::license::{Claims, Term};
use crate::config::{Fault, Report};
use crate::ids::rfc3339;
use time::OffsetDateTime;

pub(super) const CODES: &[Code] = &[Code::Settings, Code::License, Code::AuditKey];

/// The variable of the license key.
const LICENSE: &str = "SVC_LICENSE_KEY";

/// Says what `check-config` says.
pub(super) fn look(findings: &Findings, report: &Report, now: OffsetDateTime) {
    let of_license = |fault: &&Fault| fault.setting.starts_with(LICENSE);
    for fault in report.faults.iter().filter(|fault| !of_license(fault)) {
        let sentence = format!("{} {}.", fault.setting, fault.problem);
        let remedy = format!("{}.", fault.remedy);
        findings.remedied(Code::Settings, Level::Fault, sentence, remedy);
    }
    // What is said of the license has a code of its own.
    let warnings = report.warnings.iter();
    for warning in warnings.filter(|warning| !warning.contains(LICENSE)) {
        findings.warning(Code::Settings, warning);
    }
    let given = |source: &str| source != "default" && source != "not set";
    let count = report
        .settings
        .iter()
        .filter(|row| given(&row.source))
        .count();
    if report.faults.iter().all(|fault| of_license(&fault)) {
        findings.ok(
            Code::Settings,
            format!("{count} settings are given and valid."),
        );
    }
    let mut license_faults = report.faults.iter().filter(of_license).peekable();
    match (&report.license, report.development) {
        _ if license_faults.peek().is_some() => {
            for fault in license_faults {
                findings.fault(
                    Code::License,
                    format!("{} {}.", fault.setting, fault.problem),
                );
            }
        }
        (Some(claims), _) => license(findings, claims, now),
        (None, Some(true)) => findings.skipped(Code::License, "Development mode needs none."),
        (None, _) => findings.fault(Code::License, "There is no license key."),
    }
    audit_key(findings, report);
}

fn audit_key(findings: &Findings, report: &Report) {
    let is_given = |name: &str| {
        let mut rows = report.settings.iter();
        rows.any(|row| row.name == name && row.source != "not set")
    };
    match (
        is_given("SVC_COMPLIANCE_CLASSIFIER"),
        is_given("SVC_AUDIT_SIGNING_KEY_PATH"),
    ) {
        (false, _) => findings.skipped(Code::AuditKey, "Nothing is purged of the audit."),
        (true, true) => findings.ok(Code::AuditKey, "Purges of the audit are signed."),
        (true, false) => findings.warning(
            Code::AuditKey,
            "SVC_COMPLIANCE_CLASSIFIER purges the audit, and no key signs that.",
        ),
    }
}

fn license(findings: &Findings, claims: &Claims, now: OffsetDateTime) {
    let ends = rfc3339::text(claims.expires_at);
    let days = (claims.expires_at - now).whole_days();
    match claims.term(now) {
        Term::Valid => findings.ok(
            Code::License,
            format!("It holds for {days} days, until {ends}."),
        ),
        Term::EndsSoon => {
            findings.warning(Code::License, format!("It ends in {days} days, at {ends}."))
        }
        Term::Grace => {
            let left = (claims.ends_at() - now).whole_days();
            findings.warning(
                Code::License,
                format!("It ended at {ends}; the server starts with it for {left} more days."),
            );
        }
        Term::NotYet => findings.fault(Code::License, "It is dated in the future."),
        Term::Expired => findings.fault(Code::License, format!("It ended at {ends}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Finding, Group, look as looked};
    use super::*;
    use crate::config::{self, TrustedKeys, Vars, license};
    use crate::ids::Clock;
    use ed25519_dalek::SigningKey;
    use ed25519_dalek::pkcs8::EncodePrivateKey;
    use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    /// What is said with these settings, in the order of the codes.
    fn said_of(vars: &Vars, clock: &Clock, trusted: &TrustedKeys) -> Vec<Finding> {
        let report = config::check_trusting(vars, clock, trusted);
        let now = clock.now();
        let group = Group {
            name: "settings",
            codes: CODES.to_vec(),
            look: Box::new(move |findings| look(findings, &report, now)),
        };
        looked(vec![group], Duration::from_secs(60))
    }

    /// What is said of a license with so many days to go.
    fn of_license(days: i64, grace_days: u16) -> Finding {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).unwrap();
        let key = SigningKey::from_bytes(&seed);
        let clock = Clock::system();
        let claims = license::Claims {
            v: license::FORMAT_VERSION,
            id: "lic-1".to_owned(),
            licensee: "Example Works".to_owned(),
            issued_at: clock.now() - time::Duration::days(400),
            expires_at: clock.now() + time::Duration::days(days) + time::Duration::hours(1),
            grace_days,
            features: Vec::new(),
        };
        let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
        let vars = Vars::from_pairs([
            ("SVC_LICENSE_KEY", license::sign(&claims, &pem).unwrap()),
            ("SVC_DATABASE_URL", "postgres://localhost/x".to_owned()),
        ]);
        let trusted = TrustedKeys::of(&[key.verifying_key().to_bytes()]);
        let mut found = said_of(&vars, &clock, &trusted);
        assert_eq!(found[0].level, Level::Ok, "{found:?}");
        found.remove(1)
    }

    #[test]
    fn a_key_is_recommended_where_the_audit_is_purged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.pem");
        let pem = SigningKey::from_bytes(&[7; 32]).to_pkcs8_pem(LineEnding::LF);
        std::fs::write(&path, pem.unwrap()).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let path = path.to_str().unwrap();
        let classifier = ("SVC_COMPLIANCE_CLASSIFIER", "shipped");
        let key = ("SVC_AUDIT_SIGNING_KEY_PATH", path);
        for (more, level) in [
            (&[][..], Level::Skipped),
            (&[key], Level::Skipped),
            (&[classifier, key], Level::Ok),
            (&[classifier], Level::Warning),
        ] {
            let base = [
                ("SVC_DEV", "true"),
                ("SVC_DATABASE_URL", "postgres://localhost/x"),
            ];
            let vars = Vars::from_pairs(base.into_iter().chain(more.iter().copied()));
            let found = said_of(&vars, &Clock::system(), &TrustedKeys::default());
            let said = found.iter().find(|one| one.code == Code::AuditKey).unwrap();
            assert_eq!(said.level, level, "{more:?}: {found:?}");
            let remedy = said.remedy.as_deref().unwrap_or_default();
            let is_named = remedy.contains("SVC_AUDIT_SIGNING_KEY_PATH");
            assert_eq!(is_named, level == Level::Warning);
        }
    }

    #[test]
    fn a_license_is_judged_by_its_days() {
        for (days, grace_days, level, word) in [
            (90, 0, Level::Ok, "90 days"),
            (10, 0, Level::Warning, "10 days"),
            (-5, 14, Level::Warning, "9 more days"),
            (-15, 14, Level::Fault, "has expired"),
            (-5, 0, Level::Fault, "has expired"),
        ] {
            let finding = of_license(days, grace_days);
            assert_eq!((finding.code, finding.level), (Code::License, level));
            assert!(finding.sentence.contains(word), "{}", finding.sentence);
            assert_eq!(finding.remedy.is_some(), level != Level::Ok);
        }
    }
}
