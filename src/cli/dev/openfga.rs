//! `--authorization`: finds OpenFGA or builds it, and starts it.

use super::super::terminal::note;
use super::super::{Failure, Outcome};
use super::home::Home;
use crate::config::Vars;
use crate::dev::openfga::OpenFga;
use crate::dev::openfga::binary::{Listener, Paths, VERSION};
use crossbeam_channel::Receiver;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where root's builds are: its home is closed to the account that runs OpenFGA.
const CACHE_OF_ROOT: &str = "/var/cache";
const PARTS: &str = "agent-runtime-parts";

struct Build<'a>(&'a Receiver<()>);

impl Listener for Build<'_> {
    fn building(&self, since: Duration) {
        match since.as_secs() {
            0 => note(format_args!(
                "Building OpenFGA {VERSION}, once; this takes some minutes."
            )),
            seconds => note(format_args!("Still building OpenFGA ({seconds} s).")),
        }
    }

    fn is_over(&self) -> bool {
        self.0.try_recv().is_ok()
    }
}

/// The named binary, else one that is found, else one that is built.
pub(super) fn program(
    vars: &Vars,
    named: Option<&Path>,
    endings: &Receiver<()>,
) -> Outcome<PathBuf> {
    if vars.gives("SVC_AUTHZ_API_URL") {
        return Err(Failure::usage(
            "OpenFGA is given twice: by --authorization, which starts one, and by SVC_AUTHZ_API_URL.",
        ));
    }
    let paths = Paths {
        search_path: vars.raw("PATH"),
        cache: cache(vars)?,
    };
    let program = match named.map(Path::to_owned).or_else(|| paths.find()) {
        Some(program) => program,
        None => {
            let built = paths.build(&Build(endings));
            built.map_err(|failure| Failure::new(failure.to_string()))?
        }
    };
    let program = std::path::absolute(&program).unwrap_or(program);
    if !program.is_file() {
        return Err(Failure::new(format!(
            "There is no file {}, which --openfga names.",
            program.display()
        )));
    }
    Ok(program)
}

/// Starts the binary.
pub(super) fn start(program: &Path, home: &Home) -> Outcome<OpenFga> {
    note("Starting OpenFGA.");
    let started = OpenFga::start(program, &home.path().join("openfga.log"));
    started.map_err(|failure| Failure::new(failure.to_string()))
}

/// Where parts are built, the same for `make setup`.
fn cache(vars: &Vars) -> Outcome<PathBuf> {
    if let Some(named) = vars.text("AGENT_RUNTIME_PARTS") {
        return Ok(PathBuf::from(named));
    }
    let parent = match rustix::process::geteuid().is_root() {
        true => Some(PathBuf::from(CACHE_OF_ROOT)),
        false => vars.user_cache_directory(),
    };
    let parent = parent
        .ok_or_else(|| Failure::new("There is no home directory: set HOME or XDG_CACHE_HOME."))?;
    Ok(parent.join(PARTS))
}
