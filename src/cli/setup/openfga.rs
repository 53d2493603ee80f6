//! The companion package's OpenFGA: its address, and whether setup creates its database.
//!
//! Guarantees: setup creates the database in the cluster that OpenFGA will use. OpenFGA's env file
//! belongs to the operator and is only read.

use super::{Arguments, Paths};
use crate::cli::{Failure, Outcome, deployment};
use crate::secret::Secret;
use crate::uri::UNRESERVED;
use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};
use std::fs;
use std::path::{Path, PathBuf};
use url::Url;

/// The companion's database, as its env file names it.
pub(super) const DATABASE: &str = "agent_runtime_openfga";
/// The default listening address.
const ADDRESS: &str = "127.0.0.1:8180";
/// PostgreSQL's own defaults.
const SOCKET: &str = "/var/run/postgresql";
const PORT: u16 = 5432;

/// Characters allowed in a query, including the slashes of a path.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// The companion package's OpenFGA.
pub(super) struct Openfga {
    pub(super) url: String,
    /// Whether setup creates its database.
    pub(super) is_ours: bool,
}

/// The companion package's OpenFGA, if its env file exists.
///
/// # Errors
/// The env file cannot be read, or names another PostgreSQL cluster of this host than setup uses.
pub(super) fn find(arguments: &Arguments, paths: &Paths) -> Outcome<Option<Openfga>> {
    if arguments.no_openfga {
        return Ok(None);
    }
    let Some(file) = deployment::read_env_file(&paths.openfga_env_file)? else {
        return Ok(None);
    };
    let value = |name: &str| file.value(name).map(Secret::expose).unwrap_or_default();
    let address = match value("OPENFGA_HTTP_ADDR") {
        "" => ADDRESS,
        address => address,
    };
    let cluster = cluster(value("OPENFGA_DATASTORE_URI"));
    if let Some((socket, port)) = &cluster
        && (real(socket), *port) != (real(&arguments.socket), arguments.port)
    {
        let wanted = arguments.socket.to_string_lossy();
        return Err(Failure::new(format!(
            "{} names the PostgreSQL at {} (port {port}), and setup uses {wanted} (port {}). Set \
             there OPENFGA_DATASTORE_URI=postgres:///{DATABASE}?host={}&port={}&user={} and run this \
             again, or leave OpenFGA alone with --no-openfga.",
            paths.openfga_env_file.display(),
            socket.display(),
            arguments.port,
            utf8_percent_encode(&wanted, PATH),
            arguments.port,
            deployment::OPENFGA_USER,
        )));
    }
    Ok(Some(Openfga {
        url: format!("http://{address}"),
        is_ours: cluster.is_some(),
    }))
}

/// One directory may have several names.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Socket and port of the companion's database on this host; none if the URI names another one.
fn cluster(uri: &str) -> Option<(PathBuf, u16)> {
    let uri = Url::parse(uri).ok()?;
    let is_ours = matches!(uri.scheme(), "postgres" | "postgresql")
        && uri.path().strip_prefix('/') == Some(DATABASE);
    let asked = |name: &str| {
        let mut pairs = uri.query_pairs();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    let host = percent_decode_str(uri.host_str().unwrap_or_default()).decode_utf8_lossy();
    let socket = match (asked("host"), host.as_ref()) {
        (Some(host), _) => host,
        (None, "") => SOCKET.to_owned(),
        (None, host) => host.to_owned(),
    };
    let port = match asked("port") {
        Some(port) => port.parse().ok()?,
        None => uri.port().unwrap_or(PORT),
    };
    (is_ours && socket.starts_with('/')).then(|| (PathBuf::from(socket), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_of_the_companion_s_own_database_is_known() {
        let found =
            |uri: &str| cluster(uri).map(|(path, port)| format!("{}:{port}", path.display()));
        let packaged =
            "postgres:///agent_runtime_openfga?host=/var/run/postgresql&user=agent-runtime-openfga";
        for (uri, expected) in [
            (packaged, Some("/var/run/postgresql:5432")),
            (
                "postgres:///agent_runtime_openfga?",
                Some("/var/run/postgresql:5432"),
            ),
            (
                "postgres:///agent_runtime_openfga?host=/run/a&port=5433",
                Some("/run/a:5433"),
            ),
            (
                "postgresql://me@%2Frun%2Fa:5434/agent_runtime_openfga",
                Some("/run/a:5434"),
            ),
            (
                "postgres:///agent_runtime_openfga?host=db.example.com",
                None,
            ),
            ("postgres://db.example.com/agent_runtime_openfga", None),
            (
                "postgres:///agent_runtime_openfga?host=/run/a&port=no",
                None,
            ),
            ("postgres:///other?host=/var/run/postgresql", None),
            ("mysql:///agent_runtime_openfga", None),
            ("", None),
        ] {
            assert_eq!(found(uri).as_deref(), expected, "{uri}");
        }
    }
}
