//! Files of an installed service, and the disks that they lie on.

use super::code::Code;
use super::finding::{Findings, Level};
use crate::cli::account::Account;
use crate::cli::deployment;
use crate::cli::private_file::{self, Access};
use rustix::fs::{Access as Right, StatVfs};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What is looked at where the settings come from an env file.
pub(super) const CODES: &[Code] = &[Code::SettingsFile, Code::Files];

/// Below this share of a disk, in per cent, and this many MiB it warns.
const WARNING: (u64, u64) = (10, 5 * 1024);
/// Below these it is a fault.
const FAULT: (u64, u64) = (2, 512);

/// The files of an installed service.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) env_file: PathBuf,
    pub(super) credentials: Option<PathBuf>,
    pub(super) state: PathBuf,
    /// Who runs the service, if this host has that account.
    pub(super) service: Option<Account>,
}

/// Looks at owners, modes, and how systemd reads the env file.
pub(super) fn look(findings: &Findings, files: &Files) {
    env_file(findings, files);
    let mut faults = Vec::new();
    let mut looked_at = 0;
    let mut check = |access: Access, path: &Path| {
        looked_at += 1;
        match private_file::faults(access, path) {
            Ok(None) => {}
            Ok(Some(fault)) => faults.push(format!("{} {fault}.", path.display())),
            // What was not made yet cannot be wrong.
            Err(error) if error.kind() == ErrorKind::NotFound => looked_at -= 1,
            Err(error) => faults.push(format!("{} cannot be seen: {error}.", path.display())),
        }
    };
    check(
        deployment::state_access(files.service.as_ref()),
        &files.state,
    );
    if let Some(directory) = &files.credentials {
        check(deployment::credentials_access(), directory);
        for path in deployment::credentials(directory).unwrap_or_default() {
            check(deployment::credential_access(), &path);
        }
    }
    if faults.is_empty() {
        let what = "files and directories have the right owner and mode.";
        findings.ok(Code::Files, format!("{looked_at} {what}"));
    }
    for fault in faults {
        findings.fault(Code::Files, fault);
    }
}

fn env_file(findings: &Findings, files: &Files) {
    let path = &files.env_file;
    let access = deployment::env_file_access(files.service.as_ref());
    match private_file::faults(access, path) {
        Ok(None) => {}
        Ok(Some(fault)) => {
            return findings.fault(Code::SettingsFile, format!("{} {fault}.", path.display()));
        }
        Err(error) => {
            let sentence = format!("{} cannot be seen: {error}.", path.display());
            return findings.fault(Code::SettingsFile, sentence);
        }
    }
    let read = deployment::read_env_file(path).ok().flatten();
    let foreign: Vec<String> = read
        .iter()
        .flat_map(|file| file.foreign())
        .map(str::to_owned)
        .collect();
    if foreign.is_empty() {
        let well = format!("Only the service reads {}.", path.display());
        return findings.ok(Code::SettingsFile, well);
    }
    let sentence = format!(
        "systemd parses these lines of {} differently than they look: {}.",
        path.display(),
        foreign.join(", ")
    );
    findings.fault(Code::SettingsFile, sentence);
}

/// Looks at the disk of the state directory, and whether this account can write there.
pub(super) fn state(findings: &Findings, directory: &Path) {
    let found = std::fs::metadata(directory);
    if found.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let sentence = format!("{} is created at the first start.", directory.display());
        return findings.skipped(Code::Disk, sentence);
    }
    let rights = Right::WRITE_OK | Right::EXEC_OK;
    if let Err(error) = rustix::fs::access(directory, rights) {
        let sentence = format!("{} cannot be written: {error}.", directory.display());
        return findings.fault(Code::Disk, sentence);
    }
    disk(findings, Code::Disk, directory);
}

/// Looks at the disk that a path lies on.
pub(super) fn disk(findings: &Findings, code: Code, path: &Path) {
    match rustix::fs::statvfs(path) {
        Ok(found) => {
            let (level, sentence) = level_of(&found, path);
            match level {
                Level::Ok => findings.ok(code, sentence),
                Level::Warning => findings.warning(code, sentence),
                _ => findings.fault(code, sentence),
            }
        }
        Err(error) => {
            let sentence = format!("The disk of {} cannot be seen: {error}.", path.display());
            findings.skipped(code, sentence);
        }
    }
}

fn level_of(found: &StatVfs, path: &Path) -> (Level, String) {
    let mebibytes = |blocks: u64| blocks.saturating_mul(found.f_frsize) / (1024 * 1024);
    let (free, all) = (mebibytes(found.f_bavail), mebibytes(found.f_blocks));
    // A large disk has enough space at a small share; a small disk is measured by its share.
    let below = |(percent, most): (u64, u64)| free < most.min(all * percent / 100);
    let without_names = found.f_files > 0 && found.f_favail.saturating_mul(100) < found.f_files;
    let level = match (below(FAULT), below(WARNING) || without_names) {
        (true, _) => Level::Fault,
        (false, true) => Level::Warning,
        (false, false) => Level::Ok,
    };
    let mut sentence = format!(
        "{free} MiB of {all} MiB are free where {} lies.",
        path.display()
    );
    if without_names {
        sentence.push_str(" Nearly no more files can be made there (inodes).");
    }
    (level, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_judged_by_what_is_free() {
        const MIB: u64 = 1024 * 1024;
        let mut found = rustix::fs::statvfs("/").unwrap();
        found.f_frsize = MIB;
        found.f_files = 0;
        for (blocks, free, level) in [
            (100_000, 50_000, Level::Ok),
            (1_000_000, 6_000, Level::Ok),
            (1_000_000, 5_000, Level::Warning),
            (100_000, 600, Level::Warning),
            (100_000, 500, Level::Fault),
            (4_000, 401, Level::Ok),
            (4_000, 399, Level::Warning),
            (4_000, 79, Level::Fault),
            (64, 32, Level::Ok),
            (64, 0, Level::Fault),
        ] {
            (found.f_blocks, found.f_bavail) = (blocks, free);
            let (found, sentence) = level_of(&found, Path::new("/"));
            assert_eq!(found, level, "{sentence}");
        }
        (found.f_blocks, found.f_bavail) = (100_000, 50_000);
        (found.f_files, found.f_favail) = (1_000_000, 10);
        assert_eq!(super::level_of(&found, Path::new("/")).0, Level::Warning);
    }
}
