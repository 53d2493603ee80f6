//! The settings of the server of `dev`: those of the environment, and what `dev` adds to them. Other
//! commands take the same ones, so that they see what the server sees.

use super::home::Home;
use crate::config::{Vars, boolean};
use std::net::IpAddr;

/// The settings that do not depend on what runs.
pub(super) fn of_server(given: &Vars, home: &Home) -> Vars {
    let vars = given.clone();
    let vars = vars
        .with("SVC_DEV", "true")
        .with("SVC_STATE_DIR", home.path());
    with_console_login(vars)
}

/// The same with a console that signs in by itself, unless the environment says otherwise, there is no console, or others
/// than this host reach the server.
fn with_console_login(vars: Vars) -> Vars {
    const LOGIN: &str = "SVC_DEV_CONSOLE_LOGIN";
    let has_console = vars.text("SVC_CONSOLE").and_then(boolean) != Some(false);
    let is_for_this_host = match vars.text("SVC_BIND_ADDRESS") {
        Some(address) => address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        // The default in development.
        None => cfg!(target_os = "linux"),
    };
    match vars.raw(LOGIN) {
        None if has_console && is_for_this_host => vars.with(LOGIN, "true"),
        _ => vars,
    }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_console_signs_in_by_itself_where_no_other_host_reaches_it() {
        let login = |pairs: &[(&str, &str)]| {
            let vars = with_console_login(Vars::from_pairs(pairs.iter().copied()));
            vars.text("SVC_DEV_CONSOLE_LOGIN").map(str::to_owned)
        };
        for pairs in [[].as_slice(), &[("SVC_BIND_ADDRESS", "::1")]] {
            assert_eq!(login(pairs).as_deref(), Some("true"), "{pairs:?}");
        }
        for pair in [
            ("SVC_BIND_ADDRESS", "0.0.0.0"),
            ("SVC_BIND_ADDRESS", "nowhere"),
            ("SVC_CONSOLE", "false"),
        ] {
            assert_eq!(login(&[pair]), None, "{pair:?}");
        }
        let given = login(&[("SVC_DEV_CONSOLE_LOGIN", "false")]);
        assert_eq!(given.as_deref(), Some("false"));
    }
}
