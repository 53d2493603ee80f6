//! The operator's choices about logging (specification section 1.5).
//!
//! The environment is not read here: `config` passes the texts in.

use super::level::Level;
use super::subsystem::Subsystem;
use std::fmt;

/// Further key patterns, at most.
const REDACT_KEYS_MAX: usize = 64;
/// Bytes of a further key pattern, at most.
const REDACT_KEY_MAX_BYTES: usize = 64;

/// The format of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// The same with a priority prefix, `<N>`, which the journal removes (sd-daemon(3)). Lines are
    /// short enough for the journal to keep them whole.
    Journal,
    /// For a person at a terminal.
    Pretty {
        /// With ANSI colours.
        colours: bool,
    },
}

/// The parsed options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The level of every subsystem that `levels` does not name.
    pub level: Level,
    /// Levels of single subsystems, which their children inherit.
    pub levels: Vec<(Subsystem, Level)>,
    /// The format.
    pub format: Format,
    /// Key suffixes to redact in addition to those of the specification.
    pub redact_keys: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: Level::Info,
            levels: Vec::new(),
            format: Format::Json,
            redact_keys: Vec::new(),
        }
    }
}

/// The settings as texts (`None` if unset), and facts about the environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// `SVC_LOG_LEVEL`.
    pub level: Option<&'a str>,
    /// `SVC_LOG_LEVELS`.
    pub levels: Option<&'a str>,
    /// `SVC_LOG_FORMAT`.
    pub format: Option<&'a str>,
    /// The further key patterns, comma-separated.
    pub redact_keys: Option<&'a str>,
    /// `SVC_DEV`.
    pub dev: bool,
    /// Whether the sink is a terminal.
    pub terminal: bool,
    /// Whether the sink is systemd's journal.
    pub journal: bool,
    /// Whether `NO_COLOR` is set.
    pub no_color: bool,
}

/// The setting that a [`Fault`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `SVC_LOG_LEVEL`.
    Level,
    /// `SVC_LOG_LEVELS`.
    Levels,
    /// `SVC_LOG_FORMAT`.
    Format,
    /// The further key patterns.
    RedactKeys,
}

/// A value that keeps the server from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The setting.
    pub setting: Setting,
    /// What is wrong and what is expected, without the setting's name.
    pub message: String,
}

/// A value of `SVC_LOG_LEVELS` without effect. The server starts and warns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The unknown subsystem, as it was written.
    pub subsystem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no code logs under the subsystem {:?}; known are ",
            self.subsystem
        )?;
        for (index, known) in Subsystem::ALL.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", known.name())?;
        }
        Ok(())
    }
}

impl Options {
    /// Parses the settings. Doubtful values are returned beside the options.
    ///
    /// # Errors
    ///
    /// All unknown levels and formats and all malformed lists together.
    pub fn parse(given: Given<'_>) -> Result<(Self, Vec<Problem>), Vec<Fault>> {
        let mut faults = Vec::new();
        let mut fault = |setting, message| faults.push(Fault { setting, message });
        let mut options = Self::default();
        let mut problems = Vec::new();
        if let Some(text) = given.level {
            match Level::parse(text) {
                Some(level) => options.level = level,
                None => fault(Setting::Level, unknown_level(text)),
            }
        }
        for pair in list(given.levels) {
            match pair_of(pair) {
                Err(message) => fault(Setting::Levels, message),
                Ok((name, level)) => match Subsystem::from_name(name) {
                    Some(subsystem) => options.levels.push((subsystem, level)),
                    None => problems.push(Problem {
                        subsystem: name.to_owned(),
                    }),
                },
            }
        }
        match format_of(given) {
            Some(format) => options.format = format,
            None => fault(
                Setting::Format,
                format!(
                    "{} is no log format; expected auto, json or pretty",
                    shown(given.format.unwrap_or_default())
                ),
            ),
        }
        match patterns(given.redact_keys) {
            Ok(patterns) => options.redact_keys = patterns,
            Err(message) => fault(Setting::RedactKeys, message),
        }
        if faults.is_empty() {
            Ok((options, problems))
        } else {
            Err(faults)
        }
    }
}

/// The entries of a comma-separated list. An empty text is an empty list.
fn list(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.filter(|text| !text.trim().is_empty())
        .into_iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
}

fn pair_of(pair: &str) -> Result<(&str, Level), String> {
    let malformed = || {
        format!(
            "{} is malformed; expected subsystem=level pairs separated by commas",
            shown(pair)
        )
    };
    let (name, level) = pair.split_once('=').ok_or_else(malformed)?;
    let (name, level) = (name.trim_end(), level.trim_start());
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if name.split('.').any(str::is_empty) || name.contains(odd) {
        return Err(malformed());
    }
    let level = Level::parse(level).ok_or_else(|| unknown_level(level))?;
    Ok((name, level))
}

fn format_of(given: Given<'_>) -> Option<Format> {
    let pretty = Format::Pretty {
        colours: given.terminal && !given.no_color,
    };
    match given.format.unwrap_or("auto") {
        "json" => Some(Format::Json),
        "pretty" => Some(pretty),
        "auto" if given.dev || given.terminal => Some(pretty),
        "auto" if given.journal => Some(Format::Journal),
        "auto" => Some(Format::Json),
        _ => None,
    }
}

fn patterns(text: Option<&str>) -> Result<Vec<String>, String> {
    let patterns: Vec<_> = list(text).map(str::to_owned).collect();
    if patterns.len() > REDACT_KEYS_MAX {
        return Err(format!("at most {REDACT_KEYS_MAX} key patterns are taken"));
    }
    let odd = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_';
    for pattern in &patterns {
        let empty = pattern.trim_matches(['-', '_']).is_empty();
        if empty || pattern.len() > REDACT_KEY_MAX_BYTES || pattern.contains(odd) {
            return Err(format!(
                "{} is no key pattern; expected the end of a key: letters, digits, - and _, \
                 at most {REDACT_KEY_MAX_BYTES}",
                shown(pattern)
            ));
        }
    }
    Ok(patterns)
}

fn unknown_level(text: &str) -> String {
    format!(
        "{} is no log level; expected error, warn, info, debug or trace",
        shown(text)
    )
}

/// The start of a value, quoted and escaped.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(64).collect();
    format!("{start:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(given: Given<'_>) -> Vec<Setting> {
        let faults = Options::parse(given).unwrap_err();
        faults.into_iter().map(|fault| fault.setting).collect()
    }

    #[test]
    fn nothing_given_is_the_default() {
        let (options, problems) = Options::parse(Given::default()).unwrap();
        assert_eq!(options, Options::default());
        assert!(problems.is_empty());
    }

    #[test]
    fn levels_are_known_names_in_pairs() {
        let given = |levels| Given {
            levels: Some(levels),
            ..Given::default()
        };
        let (options, problems) = Options::parse(given("http=debug, runtime.steps=trace")).unwrap();
        assert_eq!(
            options.levels,
            [
                (Subsystem::Http, Level::Debug),
                (Subsystem::RuntimeSteps, Level::Trace)
            ]
        );
        assert!(problems.is_empty());
        assert!(Options::parse(given(" ")).unwrap().0.levels.is_empty());

        let (options, problems) = Options::parse(given("http.dor=debug,Http=warn")).unwrap();
        assert!(options.levels.is_empty());
        assert_eq!(problems.len(), 2);
        assert!(problems[0].to_string().contains("\"http.dor\""));

        for malformed in [
            "http",
            "=debug",
            "http=",
            "http=loud",
            "http=INFO",
            "http=debug,",
            ",",
            "http..door=info",
            ".http=info",
            "ht tp=info",
            "http=debug=info",
            "http:debug",
        ] {
            let found = faults(given(malformed));
            assert!(!found.is_empty(), "{malformed}");
            assert!(found.iter().all(|setting| *setting == Setting::Levels));
        }
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let given = Given {
            level: Some("verbose"),
            levels: Some("x"),
            format: Some("xml"),
            redact_keys: Some("--"),
            ..Given::default()
        };
        assert_eq!(
            faults(given),
            [
                Setting::Level,
                Setting::Levels,
                Setting::Format,
                Setting::RedactKeys
            ]
        );
    }

    #[test]
    fn the_format_follows_terminal_development_mode_and_no_color() {
        let format = |format, dev, terminal, no_color| {
            let given = Given {
                format,
                dev,
                terminal,
                no_color,
                ..Given::default()
            };
            Options::parse(given).unwrap().0.format
        };
        let pretty = |colours| Format::Pretty { colours };
        assert_eq!(format(None, false, false, false), Format::Json);
        assert_eq!(format(Some("auto"), false, true, false), pretty(true));
        assert_eq!(format(Some("auto"), false, true, true), pretty(false));
        assert_eq!(format(Some("auto"), true, false, false), pretty(false));
        assert_eq!(format(Some("json"), true, true, false), Format::Json);
        assert_eq!(format(Some("pretty"), false, false, false), pretty(false));
    }

    #[test]
    fn the_journal_gets_priorities_unless_another_format_is_chosen() {
        let format = |format, dev| {
            let given = Given {
                format,
                dev,
                journal: true,
                ..Given::default()
            };
            Options::parse(given).unwrap().0.format
        };
        let pretty = Format::Pretty { colours: false };
        assert_eq!(format(None, false), Format::Journal);
        assert_eq!(format(Some("auto"), false), Format::Journal);
        assert_eq!(format(Some("json"), false), Format::Json);
        assert_eq!(format(None, true), pretty);
        assert_eq!(format(Some("pretty"), false), pretty);
    }
}
