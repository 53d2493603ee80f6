//! Messages to the service manager (`sd_notify`): ready, stopping, alive.

use crate::config::Vars;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The connection to the service manager. Without one, messages go nowhere.
pub(super) struct Manager {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// The watchdog's interval, if it is on.
    every: Option<Duration>,
    /// The manager was told that a part is stuck, and shows that until the next status.
    shows_stuck: AtomicBool,
}

impl Manager {
    /// The service manager that started this process, if one did.
    pub(super) fn of(vars: &Vars) -> Self {
        let to = vars.notify_socket().and_then(|name| {
            let address = address(name)?;
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        Self {
            to,
            // Half the interval, as sd_watchdog_enabled(3) advises.
            every: vars.watchdog_interval().map(|interval| interval / 2),
            shows_stuck: AtomicBool::new(false),
        }
    }

    /// How often to call [`Manager::alive`].
    pub(super) fn every(&self) -> Option<Duration> {
        self.every.filter(|_| self.to.is_some())
    }

    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    pub(super) fn alive(&self) {
        self.tell(match self.shows_stuck.swap(false, Ordering::Relaxed) {
            true => "WATCHDOG=1\nSTATUS=",
            false => "WATCHDOG=1",
        });
    }

    /// Instead of a sign of life: the stuck part, for `systemctl status`.
    pub(super) fn stuck(&self, part: &str) {
        self.shows_stuck.store(true, Ordering::Relaxed);
        self.tell(&format!("STATUS=Stuck: {part}."));
    }

    fn tell(&self, what: &str) {
        if let Some((socket, address)) = &self.to {
            // A manager that does not listen will notice by itself.
            let _ = socket.send_to_addr(what.as_bytes(), address);
        }
    }
}

fn address(name: &OsStr) -> Option<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.as_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        return SocketAddr::from_abstract_name(name).ok();
    }
    name.as_bytes()
        .starts_with(b"/")
        .then(|| SocketAddr::from_pathname(name).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn hears(name: &OsStr, socket: &UnixDatagram) {
        let manager = Manager::of(&Vars::from_pairs([("NOTIFY_SOCKET", name)]));
        manager.ready();
        manager.alive();
        manager.stuck("a part");
        manager.alive();
        manager.alive();
        manager.stopping();
        let mut buffer = [0; 64];
        for expected in [
            "READY=1",
            "WATCHDOG=1",
            "STATUS=Stuck: a part.",
            "WATCHDOG=1\nSTATUS=",
            "WATCHDOG=1",
            "STOPPING=1",
        ] {
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], expected.as_bytes());
        }
    }

    #[test]
    fn a_socket_with_a_path_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        hears(path.as_os_str(), &UnixDatagram::bind(&path).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_abstract_socket_is_told() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("agent-runtime-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        hears(&OsString::from(format!("@{name}")), &socket);
    }

    #[test]
    fn without_a_manager_nothing_is_said() {
        let manager = Manager::of(&Vars::from_pairs([("WATCHDOG_USEC", "1000000")]));
        manager.ready();
        assert_eq!(manager.every(), None);
        for name in ["", "relative", "/no/such/socket"] {
            Manager::of(&Vars::from_pairs([("NOTIFY_SOCKET", name)])).ready();
        }
    }
}
