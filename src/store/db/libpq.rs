//! The connection for PostgreSQL's own programs (`pg_dump`, `pg_restore`, `psql`). It is passed in
//! the environment, because every user of the host can read arguments.

use super::tls::{Tls, invalid, split_tls};
use crate::error::Result;
use crate::secret::Secret;
use postgres::Config;
use postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// Where distributions keep the certificates of known authorities. libpq knows `system` from
/// version 16 on.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What a child is given to reach the database.
pub struct Environment(Vec<(&'static str, OsString)>);

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl Environment {
    /// Reads the connection string.
    ///
    /// # Errors
    /// It is malformed.
    pub fn of(url: &Secret) -> Result<Self> {
        let (plain, tls) = split_tls(url.expose())?;
        let config: Config = plain
            .parse()
            .map_err(|_| invalid("it is not a PostgreSQL connection string"))?;
        let mut made = Self(Vec::new());
        made.place(&config);
        made.add("PGUSER", config.get_user());
        made.add("PGDATABASE", config.get_dbname());
        made.add("PGOPTIONS", config.get_options());
        let password = config.get_password().map(OsStr::from_bytes);
        made.add("PGPASSWORD", password);
        // Nobody's files beside it.
        made.add("PGPASSFILE", Some("/dev/null"));
        made.add("PGSERVICEFILE", Some("/dev/null"));
        made.add("PGGSSENCMODE", Some("disable"));
        made.add("PGCONNECT_TIMEOUT", Some("10"));
        made.tls(&tls);
        if config.get_channel_binding() == ChannelBinding::Require {
            made.add("PGCHANNELBINDING", Some("require"));
        }
        if config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite {
            made.add("PGTARGETSESSIONATTRS", Some("read-write"));
        }
        Ok(made)
    }

    /// Gives a command this environment and no other.
    pub fn apply(&self, command: &mut Command) {
        command.env_clear();
        // What the program says is read by this one.
        command.env("LC_ALL", "C").env("PGCLIENTENCODING", "UTF8");
        command.envs(self.0.iter().map(|(name, value)| (name, value)));
    }

    fn add(&mut self, name: &'static str, value: Option<impl AsRef<OsStr>>) {
        if let Some(value) = value {
            self.0.push((name, value.as_ref().to_owned()));
        }
    }

    fn place(&mut self, config: &Config) {
        let hosts: Vec<String> = config
            .get_hosts()
            .iter()
            .map(|host| match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(path) => path.display().to_string(),
            })
            .collect();
        let addresses: Vec<String> = config
            .get_hostaddrs()
            .iter()
            .map(ToString::to_string)
            .collect();
        let ports: Vec<String> = config.get_ports().iter().map(ToString::to_string).collect();
        for (name, several) in [
            ("PGHOST", hosts),
            ("PGHOSTADDR", addresses),
            ("PGPORT", ports),
        ] {
            self.add(name, (!several.is_empty()).then(|| several.join(",")));
        }
    }

    fn tls(&mut self, tls: &Tls) {
        let mode = match (tls.verify_name, tls.verify_chain, tls.mode) {
            (true, _, _) => "verify-full",
            (false, true, _) => "verify-ca",
            (_, _, SslMode::Disable) => "disable",
            (_, _, SslMode::Prefer) => "prefer",
            _ => "require",
        };
        self.add("PGSSLMODE", Some(mode));
        let system = || BUNDLES.into_iter().find(|path| Path::new(path).exists());
        match &tls.roots {
            Some(path) => self.add("PGSSLROOTCERT", Some(path)),
            None if tls.verify_chain => self.add("PGSSLROOTCERT", system()),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(url: &str) -> Vec<(String, String)> {
        let mut command = Command::new("x");
        Environment::of(&Secret::new(url))
            .unwrap()
            .apply(&mut command);
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        command
            .get_envs()
            .filter_map(|(name, value)| Some((text(name), text(value?))))
            .collect()
    }

    fn has(url: &str, name: &str, value: &str) {
        let all = environment(url);
        assert!(
            all.contains(&(name.to_owned(), value.to_owned())),
            "{all:?}"
        );
    }

    #[test]
    fn a_url_comes_apart_into_what_libpq_reads() {
        let url = "postgres://a%20b:p%40ss@h1:1,h2:2/d%2Fb?options=-c%20role%3Dx&sslmode=verify-full&sslrootcert=/ca.pem";
        for (name, value) in [
            ("PGHOST", "h1,h2"),
            ("PGPORT", "1,2"),
            ("PGUSER", "a b"),
            ("PGPASSWORD", "p@ss"),
            ("PGDATABASE", "d/b"),
            ("PGOPTIONS", "-c role=x"),
            ("PGSSLMODE", "verify-full"),
            ("PGSSLROOTCERT", "/ca.pem"),
        ] {
            has(url, name, value);
        }
        let socket = "postgres://agent-runtime@%2Fvar%2Frun%2Fpostgresql/agent_runtime";
        has(socket, "PGHOST", "/var/run/postgresql");
        has(socket, "PGSSLMODE", "prefer");
        has("postgres://a@h/d?sslmode=require", "PGSSLMODE", "require");
    }

    #[test]
    fn the_password_is_not_shown() {
        let made = Environment::of(&Secret::new("postgres://a:hunter2@h/d")).unwrap();
        assert!(!format!("{made:?}").contains("hunter2"));
    }
}
