//! The settings of the server of `dev`: those of the environment, and what `dev` adds to them. Other
//! commands take the same ones, so that they see what the server sees.

use super::home::Home;
use crate::config::Vars;

/// The settings that do not depend on what runs.
pub(super) fn of_server(given: &Vars, home: &Home) -> Vars {
    let vars = given.clone();
    vars.with("SVC_DEV", "true")
        .with("SVC_STATE_DIR", home.path())
}

/// The same with secrets turned on under the keys of `dev`, unless the environment has settings of
/// secrets.
pub(super) fn with_secrets(vars: Vars, home: &Home) -> Vars {
    let [wrapping, binding] = home.key_paths();
    if vars.has_any("SVC_SECRETS_") || !wrapping.exists() || !binding.exists() {
        return vars;
    }
    vars.with("SVC_SECRETS_BACKEND", "postgres")
        .with("SVC_SECRETS_BACKEND_KMS", "local")
        .with("SVC_SECRETS_LOCAL_KEY_PATH", wrapping)
        .with("SVC_SECRETS_AAD_KEY_PATH", binding)
}
