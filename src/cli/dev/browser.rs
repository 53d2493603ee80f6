//! Opens the console where somebody sits at a screen: standard input is a terminal, and a desktop is there.
//!
//! Leaves out whether it worked: the address stands on the terminal anyhow.

use crate::config::Vars;
use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

/// Opens the address in the desktop's browser, and does not wait for it.
pub(super) fn open(vars: &Vars, url: &str) {
    let Some(program) = opener(vars).filter(|_| std::io::stdin().is_terminal()) else {
        return;
    };
    let mut command = Command::new(program);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut started) = command.spawn() else {
        return;
    };
    // It hands the address over and ends; somebody has to take its end.
    let waits = std::thread::Builder::new().name("browser".to_owned());
    let _ = waits.spawn(move || started.wait());
}

/// The desktop's program for addresses.
fn opener(vars: &Vars) -> Option<&'static str> {
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    let mut displays = ["DISPLAY", "WAYLAND_DISPLAY"].iter();
    displays
        .any(|name| vars.text(name).is_some())
        .then_some("xdg-open")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_where_there_is_a_desktop() {
        let none = Vars::from_pairs([("SSH_CONNECTION", "10.0.0.1")]);
        assert_eq!(opener(&none), None);
        for name in ["DISPLAY", "WAYLAND_DISPLAY"] {
            assert_eq!(opener(&none.clone().with(name, ":0")), Some("xdg-open"));
        }
    }
}
