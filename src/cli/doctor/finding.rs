//! Findings, and how checks run: each group has a thread of its own, so that a part
//! that is dead or hangs stops no other.
//!
//! Guarantees: every code of a group is in the report, whatever became of the group.

use super::code::Code;
use crossbeam_channel::{Receiver, Sender, bounded};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Findings of a group that wait to be read.
const QUEUE: usize = 256;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// All is well.
    Ok,
    /// There was nothing to look at, or no way to.
    Skipped,
    /// It works, and should not stay so.
    Warning,
    /// It does not work, or is not safe.
    Fault,
}

/// What one check found. No secret is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) code: Code,
    pub(super) level: Level,
    /// What was found.
    pub(super) sentence: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

/// Collects the findings of a group of checks.
pub(super) struct Findings(Sender<Finding>);

impl Findings {
    pub(super) fn ok(&self, code: Code, sentence: impl Into<String>) {
        self.send(code, Level::Ok, sentence.into(), None);
    }

    pub(super) fn skipped(&self, code: Code, sentence: impl Into<String>) {
        self.send(code, Level::Skipped, sentence.into(), None);
    }

    pub(super) fn warning(&self, code: Code, sentence: impl Into<String>) {
        let remedy = code.about().to_do.to_owned();
        self.send(code, Level::Warning, sentence.into(), Some(remedy));
    }

    pub(super) fn fault(&self, code: Code, sentence: impl Into<String>) {
        let remedy = code.about().to_do.to_owned();
        self.send(code, Level::Fault, sentence.into(), Some(remedy));
    }

    /// A warning or a fault with a remedy of its own.
    pub(super) fn remedied(&self, code: Code, level: Level, sentence: String, remedy: String) {
        self.send(code, level, sentence, Some(remedy));
    }

    /// A fault if there is a reason, else `well`.
    pub(super) fn fault_or_ok(&self, code: Code, fault: Option<String>, well: impl Into<String>) {
        match fault {
            Some(sentence) => self.fault(code, sentence),
            None => self.ok(code, well),
        }
    }

    /// A finding of another process.
    pub(super) fn pass_on(&self, finding: Finding) {
        let Finding {
            code,
            level,
            sentence,
            remedy,
        } = finding;
        self.send(code, level, sentence, remedy);
    }

    fn send(&self, code: Code, level: Level, sentence: String, remedy: Option<String>) {
        // After the deadline nobody receives, and a group with too many findings is cut.
        let _ = self.0.try_send(Finding {
            code,
            level,
            sentence,
            remedy,
        });
    }
}

/// Checks that need the same part, and run one after another.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) codes: Vec<Code>,
    pub(super) look: Box<dyn FnOnce(&Findings) + Send>,
}

/// Runs all groups in parallel, each for at most `within`.
pub(super) fn look(groups: Vec<Group>, within: Duration) -> Vec<Finding> {
    let deadline = Instant::now() + within;
    let begun: Vec<_> = groups.into_iter().map(begin).collect();
    let mut found = Vec::new();
    for (codes, findings) in begun {
        let before = found.len();
        let is_late = loop {
            match findings.recv_deadline(deadline) {
                Ok(finding) => found.push(finding),
                Err(error) => break error.is_timeout(),
            }
        };
        let missing = missing(&codes, &found[before..], is_late.then_some(within));
        found.extend(missing);
    }
    found.sort_by_key(|finding| finding.code);
    found
}

fn begin(group: Group) -> (Vec<Code>, Receiver<Finding>) {
    let (to, findings) = bounded(QUEUE);
    let look = group.look;
    // If the system refuses the thread, the group has no findings. A group that hangs ends with
    // the process.
    let _ = std::thread::Builder::new()
        .name(format!("doctor-{}", group.name))
        .spawn(move || look(&Findings(to)));
    (group.codes, findings)
}

/// Findings for the codes that a group reported nothing about.
fn missing(codes: &[Code], found: &[Finding], late: Option<Duration>) -> Vec<Finding> {
    let is_found = |code: &Code| found.iter().any(|finding| finding.code == *code);
    let faulty = found.iter().find(|finding| finding.level == Level::Fault);
    let mut cause = faulty
        .filter(|_| late.is_none())
        .map(|finding| finding.code);
    let mut missing = Vec::new();
    for code in codes.iter().filter(|code| !is_found(code)) {
        let (level, sentence) = match (cause, late) {
            (Some(cause), _) => (
                Level::Skipped,
                format!("Not checked: first see {}.", cause.name()),
            ),
            (None, Some(within)) => {
                let seconds = within.as_secs();
                (Level::Fault, format!("No answer came within {seconds} s."))
            }
            (None, None) => (
                Level::Fault,
                "The check panicked or ended early.".to_owned(),
            ),
        };
        cause = cause.or(Some(*code));
        missing.push(Finding {
            code: *code,
            level,
            sentence,
            remedy: (level == Level::Fault).then(|| code.about().to_do.to_owned()),
        });
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: &[Code] = &[Code::Database, Code::Schema, Code::Clock];

    fn looked(
        look: impl FnOnce(&Findings) + Send + 'static,
        within: Duration,
    ) -> Vec<(Code, Level)> {
        let group = Group {
            name: "test",
            codes: CODES.to_vec(),
            look: Box::new(look),
        };
        let findings = super::look(vec![group], within);
        findings.iter().map(|f| (f.code, f.level)).collect()
    }

    #[test]
    fn what_comes_after_a_fault_is_skipped() {
        let found = looked(
            |findings| findings.fault(Code::Database, "Away."),
            Duration::from_secs(60),
        );
        assert_eq!(
            found,
            [
                (Code::Database, Level::Fault),
                (Code::Schema, Level::Skipped),
                (Code::Clock, Level::Skipped)
            ]
        );
    }

    #[test]
    fn a_check_that_hangs_is_a_fault_and_keeps_what_came_before() {
        let (_held, never) = bounded::<()>(0);
        let hang = move |findings: &Findings| {
            findings.ok(Code::Database, "Well.");
            let _ = never.recv();
        };
        assert_eq!(
            looked(hang, Duration::from_secs(4)),
            [
                (Code::Database, Level::Ok),
                (Code::Schema, Level::Fault),
                (Code::Clock, Level::Skipped)
            ]
        );
    }

    #[test]
    fn a_check_that_panics_is_a_fault() {
        let found = looked(|_| panic!("broken on purpose"), Duration::from_secs(60));
        assert_eq!(found[0], (Code::Database, Level::Fault));
        assert_eq!(found.len(), 3);
    }
}
