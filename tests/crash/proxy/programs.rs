//! The four proxies of `docs/proxy.md`, each with the very text that stands there.

use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const DOCUMENT: &str = include_str!("../../../docs/proxy.md");

/// A kind of proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nginx,
    Caddy,
    Haproxy,
    Apache,
}

/// Where a proxy listens, and what stands behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) server: u16,
    pub(super) plain: u16,
    /// Of nginx alone.
    pub(super) tls: u16,
}

/// A running proxy. It ends with this value.
pub(super) struct Proxy {
    child: Child,
    directory: tempfile::TempDir,
}

impl Proxy {
    pub(super) fn start(kind: Kind, ports: Ports) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        certificate(path);
        let file = path.join("settings");
        std::fs::write(&file, settings(kind, path, ports)).unwrap();
        let log = std::fs::File::create(path.join("log")).unwrap();
        let mut command = command(kind, path, &file);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let child = command.spawn().unwrap();
        Self { child, directory }
    }

    /// What it said of itself so far.
    pub(super) fn log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.directory.path().join(name));
        ["log", "errors"]
            .map(|name| read(name).unwrap_or_default())
            .concat()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // Its workers end with it, which a kill would leave behind.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn command(kind: Kind, path: &Path, file: &Path) -> Command {
    let mut command = Command::new(program(kind));
    match kind {
        Kind::Nginx => command.arg("-e").arg(path.join("errors")).arg("-c"),
        Kind::Caddy => command
            .env("XDG_DATA_HOME", path)
            .env("XDG_CONFIG_HOME", path)
            .args(["run", "--adapter", "caddyfile", "--config"]),
        Kind::Haproxy => command.arg("-f"),
        Kind::Apache => command.arg("-DFOREGROUND").arg("-f"),
    };
    command.arg(file);
    command
}

fn parts() -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/setup");
    let parts = Command::new(setup.join("where")).output().unwrap();
    let parts = String::from_utf8(parts.stdout).unwrap();
    Path::new(parts.trim_end()).join("proxies")
}

fn program(kind: Kind) -> PathBuf {
    let name = match kind {
        Kind::Nginx => {
            let places = [
                "/usr/sbin/nginx",
                "/usr/local/sbin/nginx",
                "/usr/bin/nginx",
                "/opt/homebrew/bin/nginx",
            ];
            let found = places.iter().map(PathBuf::from).find(|path| path.exists());
            return found.expect("nginx; tests/setup/nginx installs it");
        }
        Kind::Caddy => "caddy",
        Kind::Haproxy => "haproxy",
        Kind::Apache => "apache",
    };
    let program = parts().join("bin").join(name);
    assert!(
        program.exists(),
        "{name} is not set up: run tests/setup/proxies"
    );
    program
}

/// A certificate that nobody trusts.
fn certificate(path: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=runtime.example.com"])
        .arg("-keyout")
        .arg(path.join("key.pem"))
        .arg("-out")
        .arg(path.join("fullchain.pem"))
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{made:?}");
}

/// What stands in the document, for these ports on loopback, in the frame that the proxy's package brings.
fn settings(kind: Kind, directory: &Path, ports: Ports) -> String {
    let Ports { server, plain, tls } = ports;
    let server = ("127.0.0.1:4000", format!("127.0.0.1:{server}"));
    let directory = directory.display().to_string();
    let keys = ("/etc/ssl/agent-runtime", directory.clone());
    match kind {
        Kind::Nginx => {
            let listen = format!("listen 127.0.0.1:{tls} ssl http2; listen 127.0.0.1:{plain};");
            let shown = shown("nginx", &[server, keys, ("listen 443 ssl http2;", listen)]);
            in_nginx(&directory, &shown)
        }
        Kind::Caddy => {
            let site = format!("http://:{plain} {{\n    bind 127.0.0.1\n");
            let shown = shown("caddy", &[server, ("runtime.example.com {", site)]);
            format!("{{\n    admin off\n}}\n{shown}")
        }
        Kind::Haproxy => {
            let shown = shown("haproxy", &[server]);
            format!(
                "defaults\n    mode http\n    timeout client 60s\nfrontend clients\n    \
                 bind 127.0.0.1:{plain}\n    default_backend agent_runtime\n{shown}"
            )
        }
        Kind::Apache => {
            let host = ("*:443", format!("127.0.0.1:{plain}"));
            let plainly = ("SSLEngine on", "SSLEngine off".to_owned());
            in_apache(
                &directory,
                plain,
                &shown("apache", &[server, keys, host, plainly]),
            )
        }
    }
}

/// A text of the document, with these of its words replaced.
fn shown(language: &str, replaced: &[(&str, String)]) -> String {
    let begins = format!("```{language}\n");
    let (_, text) = DOCUMENT.split_once(&begins).unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let mut text = text.to_owned();
    for (from, to) in replaced {
        assert!(text.contains(from), "{from} is not in docs/proxy.md");
        text = text.replace(from, to);
    }
    text
}

fn in_nginx(directory: &str, shown: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {directory}/{name};\n"))
        .concat();
    let user = match geteuid().is_root() {
        true => "user root;",
        false => "",
    };
    format!(
        "{user} daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/errors;
         events {{}} http {{ access_log off; {temporary} {shown} }}"
    )
}

fn in_apache(directory: &str, port: u16, shown: &str) -> String {
    let modules = parts().join("apache-modules");
    let load = |name: &str| {
        let file = modules.join(format!("mod_{name}.so"));
        // Some systems build the first ones in.
        match file.exists() {
            true => format!("LoadModule {name}_module {}\n", file.display()),
            false => String::new(),
        }
    };
    let loaded = [
        "mpm_event",
        "authz_core",
        "authz_host",
        "unixd",
        "socache_shmcb",
        "ssl",
        "proxy",
        "proxy_http",
    ]
    .map(load)
    .concat();
    format!(
        "ServerName runtime.example.com\nServerRoot {directory}\nDefaultRuntimeDir {directory}\n\
         PidFile {directory}/pid\nErrorLog {directory}/errors\n{loaded}Listen 127.0.0.1:{port}\n{shown}"
    )
}
