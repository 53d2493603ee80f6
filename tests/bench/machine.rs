//! Who used the processors: this process, what it started, and everybody else. A ratio measured
//! while others work says little, so each round says how much they took (Linux's /proc).

use super::Outcome;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::fs;

/// Linux counts in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time until now.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// Of this process alone, its ended children apart.
    own: f64,
    /// Of this process and everything that it started.
    family: f64,
    /// Of everybody, and what the host of a virtual machine took away.
    busy: f64,
    /// All there was.
    total: f64,
}

/// Processor time between two moments.
#[derive(Clone, Copy, Default)]
pub(crate) struct Used {
    /// Seconds of this process alone.
    pub(crate) own_s: f64,
    /// Which part of all processors others used, 0 to 1.
    pub(crate) others: f64,
    /// Which part of all processors anybody used, 0 to 1.
    pub(crate) busy: f64,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let (busy, total) = machine().unwrap_or_default();
        let (own, family) = family(std::process::id());
        Self {
            own,
            family,
            busy,
            total,
        }
    }

    pub(crate) fn until_now(self) -> Used {
        let now = Self::now();
        let total = (now.total - self.total).max(1.0);
        let busy = now.busy - self.busy;
        let others = busy - (now.family - self.family);
        Used {
            own_s: (now.own - self.own) / TICKS_PER_SECOND,
            others: (others / total).clamp(0.0, 1.0),
            busy: (busy / total).clamp(0.0, 1.0),
        }
    }
}

/// Busy and all ticks of all processors together.
fn machine() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<f64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|field| field.parse().ok())
        .collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let total: f64 = ticks.iter().sum();
    Some((total - idle, total))
}

/// Ticks of one process alone, and of it with all that descends from it.
fn family(root: u32) -> (f64, f64) {
    let mut processes = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if let Some(process) = process(id) {
            processes.insert(id, process);
        }
    }
    let descends = |id: u32| {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == root {
                return true;
            }
            at = processes.get(&id).map(|process: &Process| process.parent);
        }
        false
    };
    let all = processes
        .iter()
        .filter(|(id, _)| descends(**id))
        .map(|(_, process)| process.own + process.ended)
        .sum();
    (processes.get(&root).map_or(0.0, |own| own.own), all)
}

struct Process {
    parent: u32,
    own: f64,
    /// Of its ended children.
    ended: f64,
}

fn process(id: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before the closing parenthesis may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(11)? + ticks(12)?,
        ended: ticks(13)? + ticks(14)?,
    })
}

/// Lets this process, and what it starts from now on, open this many files and sockets.
pub(crate) fn raise_descriptors(wanted: u64) -> Outcome {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|most| most < wanted) {
        return Err(format!("needs {wanted} file descriptors (ulimit -Hn)").into());
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

/// Resident memory of a process, in KiB.
pub(crate) fn resident_kib(id: u32) -> Outcome<f64> {
    status(id, "VmRSS:")
}

/// The most resident memory that a process ever had, in KiB.
pub(crate) fn peak_kib(id: u32) -> Outcome<f64> {
    status(id, "VmHWM:")
}

/// Threads of a process.
pub(crate) fn threads(id: u32) -> Outcome<f64> {
    status(id, "Threads:")
}

/// A number that the kernel tells of a process.
fn status(id: u32, name: &str) -> Outcome<f64> {
    let text = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure
        .ok_or_else(|| format!("a process without {name}"))?
        .parse()?)
}

/// What this machine is, for the page of figures.
pub(crate) fn description() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = memory.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    format!(
        "{processors} processor cores and {} GiB of memory under Linux",
        kib.unwrap_or_default().div_ceil(1024 * 1024)
    )
}
