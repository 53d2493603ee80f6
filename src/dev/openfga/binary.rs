//! The OpenFGA binary: of the companion package, of an earlier build, of `PATH`, or built from
//! source with the Go of this host.
//!
//! A build is in the cache of the project's parts, where `make setup` puts it too. It appears there
//! once it is complete. Processes build one after the other.

use super::super::failure::Failure;
use super::super::postmaster::POLL;
use super::{program_in, tail};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The version that is built.
pub const VERSION: &str = "1.22.1";
/// The companion package's binary.
const OF_PACKAGE: &str = "/usr/lib/agent-runtime-openfga/openfga";
/// Where Go is, beside `PATH`.
const GO_PLACES: [&str; 2] = ["/usr/local/go/bin", "/usr/lib/go/bin"];
/// From this minor version on, Go fetches a newer one of itself where a module asks for it.
const OLDEST_GO_MINOR: u32 = 21;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Where to look, and where to build.
pub struct Paths<'a> {
    /// The text of `PATH`.
    pub search_path: Option<&'a OsStr>,
    /// The cache of the project's parts.
    pub cache: PathBuf,
}

/// Whoever builds hears of it here.
pub trait Listener {
    /// A build goes on, since this long.
    fn building(&self, since: Duration);
    /// Whether it should stop.
    fn is_over(&self) -> bool;
}

impl Paths<'_> {
    fn directories(&self) -> Vec<PathBuf> {
        let path = self.search_path.map(std::env::split_paths);
        let path = path.into_iter().flatten();
        path.filter(|directory| directory.is_absolute()).collect()
    }

    fn built(&self) -> PathBuf {
        self.cache.join(format!("openfga-{VERSION}"))
    }

    /// The binary, if there is one.
    pub fn find(&self) -> Option<PathBuf> {
        let package = Path::new(OF_PACKAGE);
        if package.is_file() {
            return Some(package.to_owned());
        }
        self.find_built()
            .or_else(|| program_in(&self.directories(), "openfga"))
    }

    fn find_built(&self) -> Option<PathBuf> {
        let version = fs::read_to_string(self.built().join(".version")).ok()?;
        (version.trim() == VERSION).then(|| self.built().join("openfga"))
    }

    /// Builds the binary, unless another process has just done so.
    ///
    /// # Errors
    /// There is no Go, or it does not build. The text says what to do.
    pub fn build(&self, listener: &dyn Listener) -> Result<PathBuf, Failure> {
        let go = self.go()?;
        fs::create_dir_all(&self.cache)
            .map_err(|fault| Failure::io("create", &self.cache, &fault))?;
        let _lock = self.lock(listener)?;
        if let Some(built) = self.find_built() {
            return Ok(built);
        }
        let fresh = self.cache.join(format!("openfga-{VERSION}.new"));
        remove(&fresh)?;
        fs::create_dir(&fresh).map_err(|fault| Failure::io("create", &fresh, &fault))?;
        let log = self.cache.join(format!("openfga-{VERSION}.log"));
        install(&go, &fresh, &log, listener)?;
        fs::write(fresh.join(".version"), format!("{VERSION}\n"))
            .map_err(|fault| Failure::io("write", &fresh, &fault))?;
        remove(&self.built())?;
        fs::rename(&fresh, self.built()).map_err(|fault| Failure::io("rename", &fresh, &fault))?;
        Ok(self.built().join("openfga"))
    }

    /// Waits for whoever builds the same.
    fn lock(&self, listener: &dyn Listener) -> Result<File, Failure> {
        let path = self.cache.join(format!(".lock-openfga-{VERSION}"));
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|fault| Failure::io("open", &path, &fault))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) if listener.is_over() => return Err(over()),
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(POLL),
                Err(fault) => return Err(Failure::io("lock", &path, &fault.into())),
            }
        }
    }

    /// A Go that is new enough.
    fn go(&self) -> Result<PathBuf, Failure> {
        let mut directories = self.directories();
        directories.extend(GO_PLACES.map(PathBuf::from));
        let found = directories.iter().map(|directory| directory.join("go"));
        let mut found = found.filter(|go| go.is_file());
        found.find(|go| is_new_enough(go)).ok_or_else(|| {
            Failure::new(format!(
                "There is no OpenFGA on this host, and no Go 1.{OLDEST_GO_MINOR} or later to build it with. \
                 Install Go and start again, install the package agent-runtime-openfga, or name a binary \
                 of OpenFGA with --openfga FILE. Without --authorization none of it is needed."
            ))
        })
    }
}

fn over() -> Failure {
    Failure::new("Building OpenFGA was interrupted.".to_owned())
}

fn remove(directory: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(directory) {
        Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io("remove", directory, &fault))
        }
        _ => Ok(()),
    }
}

fn is_new_enough(go: &Path) -> bool {
    let asked = Command::new(go).args(["env", "GOVERSION"]).output();
    let text = asked.map(|asked| asked.stdout).unwrap_or_default();
    minor_of(&String::from_utf8_lossy(&text)).is_some_and(|minor| minor >= OLDEST_GO_MINOR)
}

/// The minor version in `go1.26.1`.
fn minor_of(text: &str) -> Option<u32> {
    let rest = text.trim().strip_prefix("go1.")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Runs `go install` into the directory.
fn install(
    go: &Path,
    directory: &Path,
    log: &Path,
    listener: &dyn Listener,
) -> Result<(), Failure> {
    let file = File::create(log).map_err(|fault| Failure::io("create", log, &fault))?;
    let second = file
        .try_clone()
        .map_err(|fault| Failure::io("open", log, &fault))?;
    let mut child = Command::new(go)
        .args(["install", "-trimpath", "-ldflags=-s -w"])
        .arg(format!("github.com/openfga/openfga/cmd/openfga@v{VERSION}"))
        .env("GOBIN", directory)
        .env("GOFLAGS", "")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(second)
        .spawn()
        .map_err(|fault| Failure::io("start", go, &fault))?;
    let begin = Instant::now();
    listener.building(Duration::ZERO);
    let mut next_word = begin + PROGRESS_INTERVAL;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if listener.is_over() => {
                let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = child.wait();
                return Err(over());
            }
            Ok(None) => {}
            Err(fault) => return Err(Failure::io("wait for", go, &fault)),
        }
        if Instant::now() >= next_word {
            listener.building(begin.elapsed());
            next_word += PROGRESS_INTERVAL;
        }
        std::thread::sleep(POLL);
    };
    if status.success() && directory.join("openfga").is_file() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "OpenFGA {VERSION} did not build with {}. Building needs a way to the Go module proxy; a binary \
         that was built elsewhere is named with --openfga FILE. The end of the log, {}:\n{}",
        go.display(),
        log.display(),
        tail(log, 0)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    struct Reports(Cell<u32>, bool);

    impl Listener for Reports {
        fn building(&self, _: Duration) {
            self.0.set(self.0.get() + 1);
        }

        fn is_over(&self) -> bool {
            self.1
        }
    }

    fn go(dir: &Path, install: &str) -> PathBuf {
        let bin = dir.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let text = format!("#!/bin/sh\n[ $1 = env ] && echo go1.26.3 && exit\n{install}\n");
        fs::write(bin.join("go"), text).unwrap();
        fs::set_permissions(bin.join("go"), fs::Permissions::from_mode(0o755)).unwrap();
        bin
    }

    #[test]
    fn it_is_built_once_and_found_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let bin = go(dir.path(), "echo \"$*\"; echo built > \"$GOBIN/openfga\"");
        let paths = Paths {
            search_path: Some(bin.as_os_str()),
            cache: dir.path().join("cache"),
        };
        assert_eq!(paths.find_built(), None);
        let reports = Reports(Cell::new(0), false);
        let built = paths.build(&reports).unwrap();
        assert_eq!(fs::read_to_string(&built).unwrap(), "built\n");
        assert_eq!(paths.find_built(), Some(built));
        assert!(reports.0.get() > 0, "progress is reported");
        // Nobody builds what is there.
        go(dir.path(), "exit 1");
        paths.build(&reports).unwrap();
    }

    #[test]
    fn a_build_that_fails_says_why_and_leaves_nothing_that_looks_finished() {
        let dir = tempfile::tempdir().unwrap();
        let bin = go(dir.path(), "echo no network; exit 1");
        let paths = Paths {
            search_path: Some(bin.as_os_str()),
            cache: dir.path().join("cache"),
        };
        let reports = Reports(Cell::new(0), false);
        let text = paths.build(&reports).unwrap_err().to_string();
        for part in ["no network", "--openfga FILE"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(paths.find_built(), None);
        go(dir.path(), "sleep 600");
        let text = paths.build(&Reports(Cell::new(0), true)).unwrap_err();
        assert!(text.to_string().contains("interrupted"), "{text}");
    }

    #[test]
    fn the_version_is_the_one_that_the_tests_set_up() {
        let listed = include_str!("../../../tests/setup/openfga.txt");
        assert_eq!(listed.lines().next(), Some(VERSION));
        assert_eq!(minor_of("go1.26.1\n"), Some(26));
        assert_eq!(minor_of("go1.9"), Some(9));
        assert_eq!(minor_of("devel"), None);
    }
}
