//! Commands on the database find the private one of `dev` by themselves.
//!
//! Guarantees: settings that name a database win. Whoever gets the database of `dev` is told so. A
//! command that replaces what is in a database does not have this.

use super::super::terminal::note;
use super::super::{Failure, Outcome, World};
use super::home::Home;
use super::settings;
use crate::dev::cluster;
use clap::Args;
use std::path::PathBuf;

const DATABASE: &str = "SVC_DATABASE_URL";

/// Where the private database is.
#[derive(Debug, Args)]
pub(in crate::cli) struct Found {
    /// Use the database of `dev` in this directory [default: where dev keeps it, without SVC_DATABASE_URL]
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
        if names_other || (is_production && !is_named) {
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
