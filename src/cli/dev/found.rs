//! Commands on the database find the private one of `dev` by themselves.
//!
//! Guarantees: settings that name a database win. On a host where the service is installed, the database of `dev` is used
//! only if its directory is named. Whoever gets the database of `dev` is told so. A command that replaces what is in a
//! database does not have this.

use super::super::terminal::note;
use super::super::{Failure, Outcome, World, deployment};
use super::home::Home;
use super::settings;
use crate::dev::cluster;
use clap::Args;
use std::path::{Path, PathBuf};

const DATABASE: &str = "SVC_DATABASE_URL";

/// Where the private database is.
#[derive(Debug, Args)]
pub(in crate::cli) struct Found {
    /// Use the database of `dev` in this directory [default: where dev keeps it, without SVC_DATABASE_URL and where no service is installed]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Found {
    /// Whether a directory was named.
    pub(in crate::cli) fn is_named(&self) -> bool {
        self.data_dir.is_some()
    }

    /// The surroundings with the settings of `dev`, if the given ones name no database and `dev` has
    /// one.
    ///
    /// # Errors
    /// The database of `dev` does not run, or two databases are named.
    pub(in crate::cli) fn world(&self, given: &World) -> Outcome<World> {
        self.world_beside(given, Path::new(deployment::ENV_FILE))
    }

    /// `env_file`: that of the installed service.
    fn world_beside(&self, given: &World, env_file: &Path) -> Outcome<World> {
        let home = Home::named_or_found(self.data_dir.as_deref(), &given.vars)?;
        let is_named = self.is_named();
        let is_production = given
            .vars
            .raw("SVC_DEV")
            .is_some_and(|dev| dev == "false" || dev == "0");
        let names_other = given.vars.gives(DATABASE);
        if is_named && names_other {
            return Err(Failure::usage(format!(
                "The database is given twice: by --data-dir and by {DATABASE}."
            )));
        }
        let Some(home) = home.filter(|home| is_named || cluster::exists(home.path())) else {
            return Ok(given.clone());
        };
        let is_a_servers = is_production || env_file.exists();
        if names_other || (is_a_servers && !is_named) {
            return Ok(given.clone());
        }
        let directory = home.path().display();
        let url = cluster::url_of_running(home.path()).ok_or_else(|| {
            let option = match is_named {
                true => format!(" --data-dir {directory}"),
                false => String::new(),
            };
            Failure::new(format!(
                "The database of dev in {directory} is not running. Start it with: agent-runtime dev{option}\nFor another database, set {DATABASE}."
            ))
        })?;
        note(format_args!("Using the database of dev in {directory}."));
        let vars = settings::with_secrets(settings::of_server(&given.vars, &home), &home);
        let mut vars = vars.with(DATABASE, url);
        if let Some(url) = home.authorization_url()
            && !vars.has_any("SVC_AUTHZ_API_URL")
        {
            vars = vars.with("SVC_AUTHZ_API_URL", url);
        }
        Ok(World {
            vars,
            clock: given.clock.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Vars;
    use crate::ids::Clock;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn beside_an_installed_service_only_a_named_database_of_dev_is_used() {
        let dir = tempfile::tempdir().unwrap();
        // Where root runs the test, the account of PostgreSQL is to pass.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let data = dir.path().join("agent-runtime");
        std::fs::create_dir_all(data.join("pgdata")).unwrap();
        std::fs::write(data.join("pgdata/PG_VERSION"), "16\n").unwrap();
        let (env_file, missing) = (dir.path().join("a.env"), dir.path().join("b.env"));
        std::fs::write(&env_file, "SVC_DEV=false\n").unwrap();
        let given = World {
            vars: Vars::from_pairs([("XDG_DATA_HOME", dir.path().to_str().unwrap())]),
            clock: Clock::system(),
        };
        // A database that is found does not run here, and that is refused.
        let is_found = |data_dir: Option<PathBuf>, env_file: &Path| {
            let found = Found { data_dir }.world_beside(&given, env_file);
            found.is_err_and(|failure| failure.message.contains("is not running"))
        };
        assert!(is_found(None, &missing));
        assert!(!is_found(None, &env_file));
        assert!(is_found(Some(data), &env_file));
    }
}
