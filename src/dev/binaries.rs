//! Finds the host's PostgreSQL: `initdb` and `postgres` in one directory, of a supported version
//! that fits the data.
//!
//! An existing data directory needs the binaries of its own major version. A new one takes the
//! first that is found.

use super::failure::Failure;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest major version that the service runs on.
const OLDEST_MAJOR: u32 = 14;

/// Directories in which distributions keep one directory for each version: parent, prefix, suffix.
const VERSIONED: [(&str, &str, &str); 6] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/usr/lib", "postgresql", "bin"),
    ("/usr/libexec", "postgresql", ""),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
];

/// Directories that hold the binaries of one version.
const DIRECT: [&str; 5] = [
    "/opt/homebrew/bin",
    "/usr/local/bin",
    "/usr/local/pgsql/bin",
    "/usr/bin",
    "/usr/lib/postgresql/bin",
];

/// The server's binaries.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    pub(super) initdb: PathBuf,
    pub(super) postgres: PathBuf,
    pub(super) major: u32,
}

impl Binaries {
    /// The binaries to use: from `bin_dir` if it is given, else from `search_path` (the text of
    /// `PATH`), else from where packages install them. `data_major` is the version that made the
    /// data, if there is any.
    pub(super) fn find(
        bin_dir: Option<&Path>,
        search_path: Option<&OsStr>,
        data_major: Option<u32>,
    ) -> Result<Self, Failure> {
        let places = match bin_dir {
            Some(dir) => vec![dir.to_owned()],
            None => host_places(search_path),
        };
        let found: Vec<Self> = places.iter().filter_map(|dir| Self::at(dir)).collect();
        let chosen = match data_major {
            Some(major) => found.iter().find(|binaries| binaries.major == major),
            None => found.iter().find(|binaries| binaries.major >= OLDEST_MAJOR),
        };
        match (chosen, found.first(), data_major) {
            (Some(binaries), _, _) => Ok(binaries.clone()),
            (None, Some(other), Some(major)) => Err(Failure::new(format!(
                "The data was made by PostgreSQL {major}, but the PostgreSQL here is {}, which \
                 cannot open it. Install PostgreSQL {major}, or start with another data directory.",
                other.major
            ))),
            (None, Some(other), None) => Err(Failure::new(format!(
                "The PostgreSQL here is {}; {OLDEST_MAJOR} or later is needed. Install it with: {}",
                other.major,
                install_line()
            ))),
            (None, None, _) => Err(Failure::new(format!(
                "PostgreSQL is not installed: no directory with both initdb and postgres in {}. \
                 Install it with: {}",
                match bin_dir {
                    Some(dir) => dir.display().to_string(),
                    None => "PATH or the usual places".to_owned(),
                },
                install_line()
            ))),
        }
    }

    fn at(dir: &Path) -> Option<Self> {
        let (initdb, postgres) = (dir.join("initdb"), dir.join("postgres"));
        if !initdb.is_file() || !postgres.is_file() {
            return None;
        }
        let output = Command::new(&postgres).arg("--version").output().ok()?;
        let major = major_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self {
            initdb,
            postgres,
            major,
        })
    }
}

/// The directories to search, in order, without repeats.
pub(crate) fn host_places(search_path: Option<&OsStr>) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = search_path
        .map(|path| std::env::split_paths(path).collect())
        .unwrap_or_default();
    for (parent, prefix, rest) in VERSIONED {
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(parent)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let version = name.strip_prefix(prefix)?.parse().ok()?;
                Some((version, entry.path().join(rest)))
            })
            .collect();
        versions.sort_unstable_by_key(|(version, _)| std::cmp::Reverse(*version));
        places.extend(versions.into_iter().map(|(_, dir)| dir));
    }
    places.extend(DIRECT.iter().map(PathBuf::from));
    let mut seen = std::collections::HashSet::new();
    places.retain(|dir| dir.is_absolute() && seen.insert(dir.clone()));
    places
}

/// Parses the major version in `postgres (PostgreSQL) 15.13 (Debian …)`.
pub(crate) fn major_version(text: &str) -> Option<u32> {
    let rest = text.split("(PostgreSQL) ").nth(1)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The command that installs the server on this host.
fn install_line() -> String {
    let known = [
        ("/usr/bin/apt-get", "apt-get install -y postgresql"),
        ("/usr/bin/dnf", "dnf install -y postgresql-server"),
        ("/opt/homebrew/bin/brew", "brew install postgresql@17"),
        ("/usr/local/bin/brew", "brew install postgresql@17"),
    ];
    let line = known
        .iter()
        .find(|(tool, _)| Path::new(tool).exists())
        .map_or("your system's package manager", |(_, line)| line);
    let as_root = rustix::process::geteuid().is_root() || !line.contains("-y");
    format!("{}{line}", if as_root { "" } else { "sudo " })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_releases_and_betas() {
        let text = "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n";
        assert_eq!(major_version(text), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(major_version("mysql 8"), None);
    }

    #[test]
    fn the_search_path_comes_first_and_relative_places_never() {
        let places = host_places(Some(OsStr::new("/first/bin:relative:/first/bin:/second")));
        assert_eq!(places[0], Path::new("/first/bin"));
        assert_eq!(places[1], Path::new("/second"));
        assert!(places.iter().all(|dir| dir.is_absolute()));
        assert_eq!(
            places.iter().filter(|d| d.ends_with("first/bin")).count(),
            1
        );
    }
}
