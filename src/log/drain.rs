//! The one drain. It filters, collects, redacts and formats each record, and writes it with one
//! call.
//!
//! While the sink is locked, no foreign code runs except the sink itself.

use super::collect::{Fields, Finder};
use super::format::Entry;
use super::level::Level;
use super::nested::Room;
use super::options::{Format, Options};
use super::redact::Keys;
use super::subsystem::Subsystem;
use crate::ids::{Clock, rfc3339};
use serde_json::Value;
use slog::{Drain, KV, Never, OwnedKVList, Record};
use std::io::{ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// A record has at most this many bytes.
pub(super) const RECORD_MAX_BYTES: usize = 256 * 1024;
/// For the journal: it cuts longer lines (`LineMax=`). The rest would have no priority and would
/// not be JSON.
pub(super) const JOURNAL_MAX_BYTES: usize = 48 * 1024;
/// The part of that for the fixed fields and the notes of what was cut.
const FRAME_BYTES: usize = 8 * 1024;

/// The correlation fields that the specification names, in its order.
const CORRELATION: [&str; 8] = [
    "traceId",
    "spanId",
    "requestId",
    "tenantId",
    "projectId",
    "runId",
    "agentId",
    "toolId",
];

/// The fixed fields. An event's own field of the same name gets a trailing `_`.
const FIXED: [&str; 5] = ["time", "level", "severity", "subsystem", "message"];

const fn most_bytes(format: Format) -> usize {
    match format {
        Format::Journal => JOURNAL_MAX_BYTES,
        Format::Json | Format::Pretty { .. } => RECORD_MAX_BYTES,
    }
}

pub(super) struct Log {
    levels: [Level; Subsystem::ALL.len()],
    /// The most verbose of `levels`.
    most: Level,
    keys: Keys,
    format: Format,
    clock: Clock,
    sink: Mutex<Sink>,
}

impl Log {
    pub(super) fn new(options: &Options, clock: Clock, sink: Box<dyn Write + Send>) -> Self {
        let levels = Subsystem::ALL.map(|at| at.level(options.level, &options.levels));
        Self {
            levels,
            most: levels.into_iter().max().unwrap_or(options.level),
            keys: Keys::new(&options.redact_keys),
            format: options.format,
            clock,
            sink: Mutex::new(Sink {
                out: sink,
                torn: false,
            }),
        }
    }

    fn record(&self, record: &Record<'_>, values: &OwnedKVList) {
        let level = Level::from(record.level());
        let mut finder = Finder(None);
        // The error only ends the iteration: the subsystem was found.
        let _ = values.serialize(record, &mut finder);
        let subsystem = finder.0.unwrap_or(Subsystem::Root);
        let chosen = self.levels[subsystem as usize];
        if level > chosen {
            return;
        }
        let mut fields = Fields {
            room: Room {
                keys: &self.keys,
                left_bytes: most_bytes(self.format) - FRAME_BYTES,
            },
            with_stack: level == Level::Error || chosen >= Level::Debug,
            fields: Vec::with_capacity(16),
        };
        let message = fields.arguments(record.msg());
        // A value's own code may panic or fail; what was collected before is written.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _ = record.kv().serialize(record, &mut fields);
        }));
        let own = fields.fields.len();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _ = values.serialize(record, &mut fields);
        }));
        let line = Entry {
            time: rfc3339::text(self.clock.now()),
            level,
            subsystem: subsystem.name(),
            message,
            fields: ordered(fields.fields, own),
        }
        .write(self.format);
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write(line.as_bytes());
    }
}

/// The order: correlation fields, the logger's others, then the event's own (the first `own`,
/// newest first).
fn ordered(mut fields: Vec<(&'static str, Value)>, own: usize) -> Vec<(String, Value)> {
    fields.reverse();
    let context = fields.len() - own;
    let mut ordered = Vec::with_capacity(fields.len());
    let mut rest = Vec::with_capacity(fields.len());
    for field in fields.into_iter().enumerate() {
        match CORRELATION.iter().position(|key| *key == field.1.0) {
            Some(place) => ordered.push((place, field.1)),
            None => rest.push((
                (CORRELATION.len() + usize::from(field.0 >= context)),
                field.1,
            )),
        }
    }
    ordered.append(&mut rest);
    ordered.sort_by_key(|(place, _)| *place);
    let mut unique: Vec<(String, Value)> = Vec::with_capacity(ordered.len());
    for (_, (key, value)) in ordered {
        let mut key = key.to_owned();
        while FIXED.contains(&key.as_str()) || unique.iter().any(|(known, _)| *known == key) {
            key.push('_');
        }
        unique.push((key, value));
    }
    unique
}

impl Drain for Log {
    type Ok = ();
    type Err = Never;

    fn log(&self, record: &Record<'_>, values: &OwnedKVList) -> Result<(), Never> {
        if Level::from(record.level()) <= self.most {
            let _ = catch_unwind(AssertUnwindSafe(|| self.record(record, values)));
        }
        Ok(())
    }

    fn is_enabled(&self, level: slog::Level) -> bool {
        Level::from(level) <= self.most
    }
}

struct Sink {
    out: Box<dyn Write + Send>,
    /// Whether the last record was written only in part.
    torn: bool,
}

impl Sink {
    /// Writes one record. What the sink refuses is lost.
    fn write(&mut self, record: &[u8]) {
        if self.torn && !self.all(b"\n") {
            return;
        }
        self.torn = true;
        let mut written = 0;
        while written < record.len() {
            match self.out.write(&record[written..]) {
                Ok(0) => break,
                Ok(length) => written += length.min(record.len() - written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.torn = written > 0 && written < record.len();
        let _ = self.out.flush();
    }

    fn all(&mut self, bytes: &[u8]) -> bool {
        self.out.write_all(bytes).is_ok()
    }
}
