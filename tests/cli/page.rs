//! A page for people as a test runs it: its blocks of code, and the program on the path.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The blocks of code in this language, in order.
pub(crate) fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("\n```{language}\n");
    let rests = page.split(opening.as_str()).skip(1);
    rests
        .map(|rest| rest.split("\n```").next().unwrap())
        .collect()
}

/// A path for commands with the program on it. Its `dev` takes any free port, since other tests may run
/// beside this one.
pub(crate) fn path_with_program(directory: &Path) -> String {
    let wrapper = directory.join("agent-runtime");
    let program = env!("CARGO_BIN_EXE_agent-runtime");
    let text =
        format!("#!/bin/sh\n[ \"$*\" != dev ] || set -- dev --port 0\nexec '{program}' \"$@\"\n");
    fs::write(&wrapper, text).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", directory.display())
}

/// A port on which nothing listens, below those that the kernel gives to connections.
pub(crate) fn free_port() -> String {
    loop {
        let mut random = [0; 2];
        getrandom::fill(&mut random).unwrap();
        let port = 10_000 + u16::from_ne_bytes(random) % 20_000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port.to_string();
        }
    }
}
