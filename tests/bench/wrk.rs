//! Load from `wrk`, a generator that is not ours (`tests/setup/wrk`).

use super::Outcome;
use super::rounds::Figure;
use std::net::SocketAddr;
use std::process::Command;

const SECONDS: u32 = 3;
const CLIENTS: u32 = 64;

/// Requests answered a second by 64 keep-alive clients, with this process's own processor time for
/// each. Any answer but a 2xx is a failure.
pub(crate) fn load(address: SocketAddr, path: &str, token: Option<&str>) -> Outcome<Figure> {
    let mut figure = Figure::of(|| requests_per_second(address, path, token))?;
    let requests = figure.value * f64::from(SECONDS);
    figure.note = format!(" ({:.1} µs each)", figure.used.own_s * 1e6 / requests);
    Ok(figure)
}

fn requests_per_second(address: SocketAddr, path: &str, token: Option<&str>) -> Outcome<f64> {
    let mut command = Command::new("wrk");
    command
        .args(["--threads", "1"])
        .args(["--connections", &CLIENTS.to_string()])
        .args(["--duration", &format!("{SECONDS}s")]);
    if let Some(token) = token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let output = command
        .arg(format!("http://{address}{path}"))
        .output()
        .map_err(|error| format!("wrk: {error} (tests/setup/wrk installs it)"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || said.contains("Non-2xx") || said.contains("Socket errors") {
        return Err(format!("wrk: {said}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let figure = said
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"))
        .ok_or("wrk gave no figure")?;
    Ok(figure.trim().parse()?)
}
