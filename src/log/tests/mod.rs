//! What the log promises, looked at from its output.

mod properties;

use super::*;
use crate::error::{Code, Error};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::{Arc, Mutex};

/// What cannot be in the output: every secret of the tests has it inside.
const MARK: &str = "XSECRETX";

const JSON: Format = Format::Json;
const PRETTY: Format = Format::Pretty { colours: false };

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The one record, checked for what holds of every JSON record.
    fn record(&self) -> Value {
        let text = self.text();
        let line = text.strip_suffix('\n').unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(!line.contains(['\r', '\u{85}', '\u{2028}', '\u{2029}', '\x1b']));
        assert!(line.len() <= drain::RECORD_MAX_BYTES, "{}", line.len());
        serde_json::from_str::<Unique>(line).unwrap();
        serde_json::from_str(line).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// JSON whose objects have unique keys at any depth.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON with unique keys")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Unique, A::Error> {
                let mut keys = std::collections::HashSet::new();
                while let Some((key, Unique)) = map.next_entry::<String, Unique>()? {
                    if !keys.insert(key) {
                        return Err(serde::de::Error::custom("a key stands twice"));
                    }
                }
                Ok(Unique)
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<Unique, A::Error> {
                while let Some(Unique) = list.next_element()? {}
                Ok(Unique)
            }

            fn visit_unit<E>(self) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
                Ok(Unique)
            }
        }
        from.deserialize_any(Visitor)
    }
}

fn logger(options: Options) -> (Logger, Lines) {
    let lines = Lines::default();
    (open(&options, Clock::system(), lines.clone()), lines)
}

fn with_format(format: Format) -> (Logger, Lines) {
    logger(Options {
        format,
        ..Options::default()
    })
}

/// What one call writes as JSON.
fn record(log: impl FnOnce(&Logger)) -> Value {
    let (logger, lines) = with_format(JSON);
    log(&logger);
    lines.record()
}

#[test]
fn what_is_cut_off_hides_the_secret_that_began_before() {
    let blank = "x".repeat(redact::TEXT_MAX_BYTES - 100);
    for secret in [
        "postgres://u:",
        "postgres://u:1",
        "postgres://u:x/",
        "svc_bt_",
        "Bearer ",
    ] {
        let long = format!("{blank} {secret}{}@h", MARK.repeat(10_000));
        let shown = redact::text(&long, true);
        assert!(!shown.contains(MARK), "{secret}");
        assert!(shown.len() <= redact::TEXT_MAX_BYTES + redact::CUT.len());
        let record = record(|log| slog::info!(log, "{}", format_args!("{long}{long}")));
        assert!(!record.to_string().contains(MARK), "{secret}");
    }
}

#[test]
fn a_record_has_its_fields_in_order() {
    let (log, lines) = with_format(JSON);
    let log = subsystem(&log, Subsystem::RuntimeSteps);
    let log = log.new(slog::o!("conversationId" => "c", "runId" => "r", "attempt" => 1));
    let log = log.new(slog::o!("tenantId" => "t", trace::TraceContext::fresh()));
    slog::info!(log, "step {}", 3; "zeta" => 1, "alpha" => true, "attempt" => 2, "toolId" => "x");
    let record = lines.record();
    let keys: Vec<_> = record.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "time",
            "level",
            "severity",
            "subsystem",
            "message",
            "traceId",
            "spanId",
            "tenantId",
            "runId",
            "toolId",
            "conversationId",
            "zeta",
            "alpha",
            "attempt"
        ]
    );
    assert_eq!(record["message"], "step 3");
    assert_eq!(record["subsystem"], "runtime.steps");
    assert_eq!(record["attempt"], 2);
    let time = record["time"].as_str().unwrap();
    assert!(crate::ids::rfc3339::parse(time).is_some() && time.len() == 24);
}

#[test]
fn a_level_has_its_severity() {
    let (log, lines) = logger(Options {
        level: Level::Trace,
        ..Options::default()
    });
    slog::crit!(log, "x");
    slog::error!(log, "x");
    slog::warn!(log, "x");
    slog::info!(log, "x");
    slog::debug!(log, "x");
    slog::trace!(log, "x");
    let pairs: Vec<_> = lines
        .text()
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["subsystem"], "root");
            format!("{} {}", record["level"], record["severity"]).replace('"', "")
        })
        .collect();
    let expected = [
        "error ERROR",
        "error ERROR",
        "warn WARNING",
        "info INFO",
        "debug DEBUG",
        "trace DEBUG",
    ];
    assert_eq!(pairs, expected);
}

struct Counted<'a>(&'a std::cell::Cell<u32>);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.set(self.0.get() + 1);
        f.write_str("counted")
    }
}

#[test]
fn levels_filter_before_anything_is_formatted() {
    let (log, lines) = logger(Options {
        level: Level::Warn,
        levels: vec![
            (Subsystem::Http, Level::Trace),
            (Subsystem::HttpDoor, Level::Error),
        ],
        ..Options::default()
    });
    let formatted = std::cell::Cell::new(0);
    let counted = Counted(&formatted);
    let door = subsystem(&log, Subsystem::HttpDoor);
    slog::info!(log, "{}", counted; "x" => %counted);
    slog::warn!(door, "{}", counted);
    slog::debug!(subsystem(&log, Subsystem::Runtime), "{}", counted);
    assert_eq!((formatted.get(), lines.text().as_str()), (0, ""));
    slog::trace!(subsystem(&door, Subsystem::HttpStream), "{}", counted);
    slog::error!(door, "{}", counted);
    assert_eq!(formatted.get(), 2);
    assert_eq!(lines.text().lines().count(), 2);
}

#[test]
fn an_error_has_name_message_code_and_where_wanted_its_stack() {
    let error = Error::new(Code::Conflict, "The run has ended.")
        .because(Error::internal(std::io::Error::other("disk on fire")));
    let written = record(|log| slog::error!(log, "x"; ErrorValue(&error)));
    assert_eq!(written["error"]["name"], "Error");
    assert_eq!(written["error"]["code"], "conflict");
    let message = written["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("The run has ended."), "{message}");
    let stack = written["error"]["stack"].as_str().unwrap();
    for part in [
        "conflict: The run",
        "src/log/tests/mod.rs:",
        "caused by: internal:",
        "disk on fire",
    ] {
        assert!(stack.contains(part), "{stack}");
    }
    let written = record(|log| slog::warn!(log, "x"; ErrorValue(&error)));
    assert!(written["error"].get("stack").is_none());

    let (log, lines) = logger(Options {
        levels: vec![(Subsystem::Store, Level::Debug)],
        ..Options::default()
    });
    slog::info!(subsystem(&log, Subsystem::Store), "x"; ErrorValue(&error));
    assert!(lines.record()["error"]["stack"].is_string());

    let number = "x".parse::<i32>().unwrap_err();
    let written = record(|log| slog::info!(log, "x"; "why" => #&number));
    let expected = json!({ "name": "ParseIntError", "message": number.to_string(), "code": null });
    assert_eq!(written["why"], expected);
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let written = record(|log| slog::info!(log, "x"; ErrorValue(&refused)));
    assert_eq!(written["error"]["code"], "ConnectionRefused");
}

/// An error that says where another was met.
#[derive(Debug)]
struct Outer(std::io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file cannot be read")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn an_error_without_a_code_has_its_causes() {
    let outer = Outer(std::io::Error::from(std::io::ErrorKind::NotFound));
    let written = record(|log| slog::warn!(log, "x"; "error" => #outer));
    assert_eq!(written["error"]["name"], "Outer");
    assert_eq!(written["error"]["code"], "NotFound");
    let panic = std::panic::catch_unwind(|| panic!("a bad day")).unwrap_err();
    let written = record(|log| slog::error!(log, "x"; ErrorValue(&Panic::caught(&*panic))));
    let expected =
        json!({"name": "Panic", "message": "a bad day", "code": null, "stack": "Panic: a bad day"});
    assert_eq!(written["error"], expected);
}

#[test]
fn further_key_patterns_are_ends_of_keys() {
    let (log, lines) = logger(Options {
        redact_keys: vec!["Card-Number".to_owned(), "é".to_owned()],
        ..Options::default()
    });
    let value =
        json!({ "creditCardNumber": MARK, "card_number": MARK, "cardNumbers": 1, "É": MARK });
    slog::info!(log, "x"; "value" => slog::Serde(value), "CARDNUMBER" => 7);
    let record = lines.record();
    assert!(!record.to_string().contains(MARK));
    assert_eq!(record["CARDNUMBER"], "[redacted]");
    assert_eq!(record["value"]["cardNumbers"], 1);
}

#[derive(Clone)]
enum Foreign {
    Fails,
    Panics,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fails => f.write_str("part").and(Err(fmt::Error)),
            Self::Panics => panic!("a Display panics"),
        }
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Foreign {}

impl serde::Serialize for Foreign {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fails => Err(serde::ser::Error::custom("no")),
            Self::Panics => panic!("a Serialize panics"),
        }
    }
}

#[test]
fn foreign_code_that_fails_or_panics_costs_its_own_field_alone() {
    for foreign in [Foreign::Fails, Foreign::Panics] {
        let written = record(|log| {
            let log = log.new(slog::o!("runId" => "r"));
            slog::error!(log, "message {}", foreign; "first" => 1, "display" => %foreign,
                "serde" => slog::Serde(foreign.clone()), ErrorValue(&foreign),
                "lazy" => slog::FnValue(|_| if matches!(foreign, Foreign::Panics) { panic!() }),
                "last" => 2);
        });
        assert_eq!(written["runId"], "r");
        assert_eq!(written["last"], 2);
        assert!(written["message"].is_string());
        if matches!(foreign, Foreign::Fails) {
            assert_eq!(written["display"], "part [unprintable]");
            assert_eq!(written["serde"], "[unserialisable]");
            assert_eq!(written["first"], 1);
        }
    }
}

/// A sink that takes little, fails and panics in turn.
struct Bad(Lines, u32);

impl Write for Bad {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1 += 1;
        match self.1 {
            1 => Err(std::io::ErrorKind::BrokenPipe.into()),
            2 => Ok(0),
            3 => Err(std::io::ErrorKind::Interrupted.into()),
            4 => self.0.write(&bytes[..5]),
            5 => Err(std::io::ErrorKind::WouldBlock.into()),
            6 => panic!("a sink panics"),
            _ => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Other.into())
    }
}

#[test]
fn a_failing_sink_is_ignored_and_tears_one_line_at_most() {
    let lines = Lines::default();
    let log = open(&Options::default(), Clock::system(), Bad(lines.clone(), 0));
    for number in 1..=5 {
        slog::info!(log, "record"; "number" => number);
    }
    let text = lines.text();
    let (torn, whole) = text.split_once('\n').unwrap();
    assert_eq!(torn, "{\"tim");
    assert_eq!(serde_json::from_str::<Value>(whole).unwrap()["number"], 5);
}

#[test]
fn records_are_bounded_in_size_and_depth() {
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!([{ "x": deep }]);
    }
    let escapes = "\u{1b}\u{2028}".repeat(1 << 20);
    let many: Map<String, Value> = (0..5000)
        .map(|n| (format!("Bearer {n}"), json!("x")))
        .collect();
    for (format, most) in [
        (JSON, drain::RECORD_MAX_BYTES),
        (PRETTY, drain::RECORD_MAX_BYTES),
        (Format::Journal, drain::JOURNAL_MAX_BYTES),
    ] {
        let (log, lines) = with_format(format);
        let (deep, escapes, many) = (deep.clone(), escapes.clone(), many.clone());
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        let handle = thread.spawn(move || {
            slog::info!(log, "{}", escapes; "deep" => slog::Serde(deep), "many" => slog::Serde(many),
                "list" => slog::Serde(vec![escapes.clone(); 300]), "after" => 1,
                "numbers" => slog::Serde(vec![u64::MAX; 1 << 20]));
        });
        handle.unwrap().join().unwrap();
        let text = lines.text();
        assert!(text.len() <= most, "{}", text.len());
        if format == JSON {
            lines.record();
        }
    }
}

#[test]
fn each_level_has_its_priority_in_the_journal() {
    let (log, lines) = logger(Options {
        format: Format::Journal,
        level: Level::Debug,
        ..Options::default()
    });
    slog::crit!(log, "critical");
    slog::error!(log, "two\nlines");
    slog::warn!(log, "warning");
    slog::info!(log, "<0>information");
    slog::debug!(log, "debugging");
    let text = lines.text();
    let mut seen = Vec::new();
    for line in text.lines() {
        let (priority, record) = line.split_at(3);
        let record: Value = serde_json::from_str(record).unwrap();
        seen.push((priority, record["severity"].as_str().unwrap().to_owned()));
    }
    let severities = ["ERROR", "ERROR", "WARNING", "INFO", "DEBUG"].map(str::to_owned);
    let priorities = ["<3>", "<3>", "<4>", "<6>", "<7>"];
    assert_eq!(
        seen,
        priorities.into_iter().zip(severities).collect::<Vec<_>>()
    );
}

#[test]
fn pretty_is_a_line_with_the_stack_indented_below() {
    let (log, lines) = with_format(PRETTY);
    let error = std::io::Error::other("first\nINFO forged");
    slog::error!(subsystem(&log, Subsystem::Store), "it\nfailed";
        "runId" => "r-1", "text" => "two words", ErrorValue(&error));
    let text = lines.text();
    let (time, rest) = text.split_once(' ').unwrap();
    assert!(crate::ids::rfc3339::parse(time).is_some());
    assert_eq!(
        rest,
        "ERROR store            it\\nfailed  runId=r-1  text=\"two words\"  error.name=IoError  \
         error.message=\"first\\nINFO forged\"  error.code=Other\n    \
         IoError: first\n    INFO forged\n"
    );
}

#[test]
fn colours_are_for_pretty_alone() {
    let (log, lines) = with_format(Format::Pretty { colours: true });
    slog::warn!(log, "\x1b[31mred");
    let text = lines.text();
    assert!(text.contains("\x1b[33mWARN \x1b[0m"), "{text:?}");
    assert!(text.contains("\\u{1b}[31mred"), "{text:?}");
}

#[test]
fn a_panic_is_logged_with_its_thread_and_place() {
    let (log, lines) = with_format(JSON);
    install_panic_hook(&subsystem(&log, Subsystem::Server));
    let thread = std::thread::Builder::new().name("run-7".to_owned());
    let handle = thread.spawn(|| panic!("the token is svc_bt_{MARK}{MARK}"));
    assert!(handle.unwrap().join().is_err());
    drop(std::panic::take_hook());
    let text = lines.text();
    assert!(!text.contains(MARK));
    let record = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|record| record["thread"] == "run-7")
        .unwrap();
    assert_eq!(record["error"]["name"], "Panic");
    assert_eq!(record["error"]["message"], "the token is svc_bt_***RETX");
    assert!(
        record["place"]
            .as_str()
            .unwrap()
            .starts_with("src/log/tests/mod.rs:")
    );
    assert_eq!(record["level"], "error");
}
