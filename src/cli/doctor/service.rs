//! The unit, as systemd sees it; the file descriptors that its process may have; the certificate authorities of this host.

use super::code::Code;
use super::finding::{Findings, Level};
use crate::config::{Settings, Vars};
use crate::server::options;
use rustix::process::{Resource, getrlimit};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The unit.
const UNIT: &str = "agent-runtime.service";

/// Looks at the unit, and whether it has settings that are not among these.
pub(super) fn look(findings: &Findings, vars: &Vars) {
    if !Path::new("/run/systemd/system").is_dir() {
        return findings.skipped(Code::Service, "systemd does not run here.");
    }
    let asked = Command::new("systemctl")
        .args(["show", UNIT, "--property"])
        .arg("LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,Environment,LoadCredentialEncrypted")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = match asked {
        Ok(output) if output.status.success() => output.stdout,
        _ => return findings.skipped(Code::Service, "systemctl does not answer."),
    };
    let shown = String::from_utf8_lossy(&text);
    let unseen = unseen(&shown, vars);
    if !unseen.is_empty() {
        let sentence = format!(
            "A drop-in of {UNIT} gives what this command does not see: {}.",
            unseen.join(", ")
        );
        let remedy = "Run the doctor with the same lines: `docs/packages.md`, \"Secrets\".";
        findings.remedied(Code::Service, Level::Warning, sentence, remedy.to_owned());
    }
    let (level, sentence) = level_of(&shown);
    match level {
        Level::Ok => findings.ok(Code::Service, sentence),
        Level::Skipped => findings.skipped(Code::Service, sentence),
        Level::Warning => {
            let remedy = "Start it, now and at boot: systemctl enable --now agent-runtime";
            findings.remedied(Code::Service, level, sentence, remedy.to_owned());
        }
        Level::Fault => findings.fault(Code::Service, sentence),
    }
}

/// Compares the limit on file descriptors with what the settings allow to be open at once.
pub(super) fn descriptors(findings: &Findings, settings: &Settings) {
    let own = || getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let (of, limit) = match limit_of_unit() {
        Some(limit) => (UNIT, limit),
        None => ("This process", own()),
    };
    let needed = options::descriptors(settings);
    let code = Code::Descriptors;
    let sentence = format!("{of} may have {limit} file descriptors; the settings allow {needed}.");
    if limit >= needed {
        findings.ok(code, sentence);
    } else if settings.development {
        findings.skipped(code, format!("{sentence} That is no fault in development."));
    } else {
        findings.warning(code, sentence);
    }
}

/// The limit that systemd sets for the unit's process, if there is the unit.
fn limit_of_unit() -> Option<u64> {
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let output = Command::new("systemctl")
        .args(["show", UNIT, "--property", "LoadState,LimitNOFILESoft"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    limit_shown(&String::from_utf8_lossy(&output.stdout))
}

/// The limit in the output of `systemctl show`.
fn limit_shown(shown: &str) -> Option<u64> {
    let value = |name: &str| {
        let mut pairs = shown.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    if value("LoadState") != Some("loaded") {
        return None;
    }
    match value("LimitNOFILESoft")? {
        "infinity" => Some(u64::MAX),
        limit => limit.parse().ok(),
    }
}

/// Settings and credentials that a drop-in gives to the unit and that this command was not given, by name.
fn unseen(shown: &str, vars: &Vars) -> Vec<String> {
    let values = |name: &'static str| {
        let pairs = shown.lines().filter_map(|line| line.split_once('='));
        pairs.filter(move |(key, _)| *key == name)
    };
    let directory = vars.raw("CREDENTIALS_DIRECTORY").map(Path::new);
    let is_passed = |id: &str| directory.is_some_and(|directory| directory.join(id).exists());
    let variables = values("Environment").flat_map(|(_, value)| value.split_ascii_whitespace());
    let variables = variables.filter_map(|pair| pair.trim_start_matches('"').split_once('='));
    let settings = variables.map(|(name, _)| name);
    let settings = settings.filter(|name| name.starts_with("SVC_") && !vars.gives(name));
    let credentials = values("LoadCredentialEncrypted").flat_map(|(_, value)| value.split(' '));
    let credentials = credentials.filter_map(|credential| credential.split_once(':'));
    let credentials = credentials.map(|(id, _)| id).filter(|id| !is_passed(id));
    settings.chain(credentials).map(str::to_owned).collect()
}

/// Evaluates the output of `systemctl show`.
fn level_of(shown: &str) -> (Level, String) {
    let properties: HashMap<&str, &str> = shown
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let property = |name: &str| properties.get(name).copied().unwrap_or_default();
    if property("LoadState") != "loaded" {
        return (Level::Skipped, format!("There is no {UNIT}."));
    }
    let (active, sub) = (property("ActiveState"), property("SubState"));
    let restarts = property("NRestarts");
    let at_boot = property("UnitFileState").starts_with("enabled");
    match active {
        "failed" => {
            let result = property("Result");
            (
                Level::Fault,
                format!("{UNIT} failed ({result}) after {restarts} restarts."),
            )
        }
        "active" if at_boot => (
            Level::Ok,
            format!("{UNIT} runs, after {restarts} restarts, and starts at boot."),
        ),
        "active" => (
            Level::Warning,
            format!("{UNIT} runs, but does not start at boot."),
        ),
        "activating" if sub == "auto-restart" => (
            Level::Fault,
            format!("{UNIT} ended and is being restarted; {restarts} restarts so far."),
        ),
        "activating" => (
            Level::Fault,
            format!("{UNIT} is starting and not ready ({sub})."),
        ),
        _ => (Level::Warning, format!("{UNIT} is not started ({active}).")),
    }
}

/// Looks at the certificate authorities.
pub(super) fn tls_roots(findings: &Findings, extra: usize) {
    let found = rustls_native_certs::load_native_certs();
    let count = found.certs.len();
    let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
    match (count, extra, errors.is_empty()) {
        (0, 0, _) => findings.fault(
            Code::TlsRoots,
            format!(
                "This host has no certificate authorities. {}",
                errors.join(" ")
            ),
        ),
        (_, _, false) => findings.warning(
            Code::TlsRoots,
            format!("Some authorities cannot be read: {}.", errors.join("; ")),
        ),
        (count, extra, true) => findings.ok(
            Code::TlsRoots,
            format!("{} certificate authorities are trusted.", count + extra),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_drop_in_gives_is_named_unless_this_command_has_it_too() {
        let shown = "LoadState=loaded\nEnvironment=LANG=C SVC_SECRETS_LOCAL_KEY_PATH=/run/a \"SVC_DOCS=a b\"\n\
                     LoadCredentialEncrypted=secrets.key:/etc/a.cred\n";
        let none = Vars::from_pairs::<&str, &str>([]);
        let all = ["SVC_SECRETS_LOCAL_KEY_PATH", "SVC_DOCS", "secrets.key"];
        assert_eq!(unseen(shown, &none), all);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secrets.key"), "x").unwrap();
        let given = Vars::from_pairs([("SVC_SECRETS_LOCAL_KEY_PATH", "/b"), ("SVC_DOCS", "c")]);
        let given = given.with("CREDENTIALS_DIRECTORY", dir.path());
        assert!(unseen(shown, &given).is_empty());
        assert!(unseen("Environment=\nLoadCredentialEncrypted=\n", &none).is_empty());
    }

    #[test]
    fn the_limit_is_that_of_a_unit_that_there_is() {
        let shown = |state: &str, limit: &str| {
            limit_shown(&format!("LoadState={state}\nLimitNOFILESoft={limit}\n"))
        };
        assert_eq!(shown("loaded", "65536"), Some(65_536));
        assert_eq!(shown("loaded", "infinity"), Some(u64::MAX));
        assert_eq!(shown("not-found", "1024"), None);
        assert_eq!(limit_shown(""), None);
    }

    #[test]
    fn a_unit_is_judged_by_its_state() {
        let shown = |active: &str, sub: &str, file: &str| {
            format!(
                "LoadState=loaded\nActiveState={active}\nSubState={sub}\nUnitFileState={file}\nNRestarts=3\nResult=exit-code\n"
            )
        };
        for (active, sub, file, level) in [
            ("active", "running", "enabled", Level::Ok),
            ("active", "running", "disabled", Level::Warning),
            ("inactive", "dead", "disabled", Level::Warning),
            ("failed", "failed", "enabled", Level::Fault),
            ("activating", "auto-restart", "enabled", Level::Fault),
            ("activating", "start", "enabled", Level::Fault),
        ] {
            assert_eq!(
                level_of(&shown(active, sub, file)).0,
                level,
                "{active} {sub}"
            );
        }
        assert_eq!(level_of("LoadState=not-found\n").0, Level::Skipped);
    }
}
