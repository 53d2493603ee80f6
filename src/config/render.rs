//! The documents that are generated from the settings table: the settings part of `--help`, the
//! sample environment file, the manual page, `docs/settings.md`, and the origins of the settings in
//! `docs/open-details.md`.
//!
//! All but the first are in the repository. A test fails if they differ from the table, and rewrites
//! them if `UPDATE_GENERATED=1` is set.

use super::table::{Absent, Kind, Section, Setting, State, TABLE, Word};

/// The width of filled text.
const WIDTH: usize = 88;

const PREAMBLE: &str = "Settings are environment variables. The server reads them once, at start, \
    and refuses to start if any is wrong; agent-runtime check-config shows what it would read. \
    Every name that begins with SVC_ is this service's: an unknown one is refused.";

const SECRETS: &str = "A secret setting NAME can also be given as NAME_FILE, the absolute path of \
    a file that holds it and that its owner alone can read (mode 0600 or stricter), or as a \
    systemd credential called NAME. A setting that names a key's file can be a credential of its own \
    name too. Give it in one of these ways. One newline at the end of a secret's file is left out.";

/// The settings part of `--help`: one line or two a setting.
pub fn help() -> String {
    let mut out = vec!["Settings (environment variables; more in agent-runtime(1)):".to_owned()];
    for section in TABLE {
        let built: Vec<_> = built(section).collect();
        if built.is_empty() {
            continue;
        }
        out.push(String::new());
        out.push(format!("{}:", section.title));
        for setting in built {
            out.push(format!("  {}", setting.name));
            let first = setting
                .meaning
                .split_inclusive(". ")
                .next()
                .unwrap_or_default();
            let values = match setting.kind {
                Kind::Choice(words) => {
                    let words: Vec<_> = words.iter().map(|word| word.text).collect();
                    format!(" [values: {}]", words.join(", "))
                }
                _ => String::new(),
            };
            let text = format!(
                "{}{values} [default: {}]",
                first.trim(),
                setting.absent.text()
            );
            out.extend(
                fill(&text, WIDTH - 6)
                    .iter()
                    .map(|line| format!("      {line}")),
            );
        }
    }
    out.push(String::new());
    out.extend(fill(SECRETS, WIDTH));
    joined(&out)
}

/// The sample environment file: every built setting, commented out.
pub fn environment_file() -> String {
    let mut out = Vec::new();
    comment(
        &mut out,
        "The settings of agent-runtime, as systemd's EnvironmentFile= reads them.",
    );
    comment(
        &mut out,
        "Made from the settings table; what is commented out is the default.",
    );
    out.push("#".to_owned());
    comment(&mut out, PREAMBLE);
    out.push("#".to_owned());
    comment(&mut out, SECRETS);
    for section in TABLE {
        let built: Vec<_> = built(section).collect();
        if built.is_empty() {
            continue;
        }
        out.push(String::new());
        out.push(format!("# ---- {} ----", section.title));
        for setting in built {
            out.push(String::new());
            comment(&mut out, setting.meaning);
            comment(&mut out, &format!("It must be {}.", setting.kind.shape()));
            let notes = notes(setting);
            if !notes.is_empty() {
                comment(&mut out, &notes.join(" "));
            }
            match setting.absent {
                Absent::Value(text) => out.push(format!("#{}={text}", setting.name)),
                Absent::Described(text) | Absent::Derived(text, _) => {
                    comment(&mut out, &format!("Default: {text}."));
                    let name = if setting.secret {
                        setting.file_name()
                    } else {
                        setting.name.to_owned()
                    };
                    out.push(format!("#{name}="));
                }
            }
        }
    }
    joined(&out)
}

/// The manual page agent-runtime(1), in roff.
pub fn manual_page() -> String {
    let mut out: Vec<String> = [
        ".\\\" Made from the settings table.",
        ".TH AGENT\\-RUNTIME 1 \"\" \"agent\\-runtime\" \"User Commands\"",
        ".ad l",
        ".SH NAME",
        "agent\\-runtime \\- run agents and flows durably",
        ".SH SYNOPSIS",
        ".B agent\\-runtime",
        ".I COMMAND",
        ".RI [ OPTIONS ]",
        ".SH DESCRIPTION",
        "A server that runs agents and flows, keeps every step in PostgreSQL, and streams their \
         progress over HTTP.",
        ".B agent\\-runtime \\-\\-help",
        "lists the commands, and",
        ".BI \"agent\\-runtime \" COMMAND \" \\-\\-help\"",
        "what each takes.",
        ".SH ENVIRONMENT",
    ]
    .map(str::to_owned)
    .to_vec();
    out.push(roff(PREAMBLE));
    out.push(".PP".to_owned());
    out.push(roff(SECRETS));
    for section in TABLE {
        out.push(format!(".SS {}", roff(section.title)));
        for setting in section.settings {
            out.push(".TP".to_owned());
            out.push(format!(".B {}", roff(setting.name)));
            out.push(roff(setting.meaning));
            out.push(roff(&format!("It must be {}.", setting.kind.shape())));
            out.push(roff(&format!("Default: {}.", setting.absent.text())));
            out.extend(notes(setting).iter().map(|note| roff(note)));
        }
    }
    out.extend(
        [
            ".SS Others",
            ".TP",
            ".B NO_COLOR",
            "Set and not empty: no colours.",
            ".TP",
            ".B CREDENTIALS_DIRECTORY, STATE_DIRECTORY, NOTIFY_SOCKET, WATCHDOG_USEC",
            "As systemd sets them.",
            ".SH EXIT STATUS",
            ".TP",
            ".B 0",
            "The command did what it was asked to.",
            ".TP",
            ".B 1",
            "It failed; for a server: a setting is wrong, or it could not start.",
            ".TP",
            ".B 2",
            "The command line is wrong.",
        ]
        .map(|text| {
            if text.starts_with('.') {
                text.to_owned()
            } else {
                roff(text)
            }
        }),
    );
    joined(&out)
}

/// `docs/settings.md`: the whole table.
pub fn markdown() -> String {
    let mut out = vec![
        "# Settings".to_owned(),
        String::new(),
        PREAMBLE.replace("SVC_", "`SVC_`"),
        String::new(),
        SECRETS.to_owned(),
    ];
    for section in TABLE {
        out.push(String::new());
        out.push(format!("## {}", section.title));
        out.push(String::new());
        out.push("| setting | what it does | must be | default |".to_owned());
        out.push("|---|---|---|---|".to_owned());
        for setting in section.settings {
            let mut meaning = vec![setting.meaning.to_owned()];
            meaning.extend(notes(setting));
            out.push(format!(
                "| `{}` | {} | {} | {} |",
                setting.name,
                cell(&meaning.join(" ")),
                cell(&setting.kind.shape()),
                cell(setting.absent.text()),
            ));
        }
    }
    joined(&out)
}

/// Which names and meanings of settings are this project's, for `docs/open-details.md`.
#[cfg(test)]
fn origins() -> String {
    use super::table::setting::Source;
    use super::table::settings;

    let of = |wanted: fn(Source) -> bool| {
        let names = settings().filter(|setting| wanted(setting.source));
        let names: Vec<_> = names.map(|setting| format!("`{}`", setting.name)).collect();
        names.join(", ")
    };
    format!(
        "| of ours | settings |\n|---|---|\n| the name; the specification has the meaning | {} |\n\
         | name and meaning | {} |\n",
        of(|source| matches!(source, Source::Meant)),
        of(|source| matches!(source, Source::Ours)),
    )
}

fn built(section: &'static Section) -> impl Iterator<Item = &'static Setting> {
    let built = |setting: &&Setting| setting.state == State::Built;
    section.settings.iter().filter(built)
}

/// Further facts about a setting, in sentences.
fn notes(setting: &Setting) -> Vec<String> {
    let mut notes = Vec::new();
    if let State::NotBuilt(feature) = setting.state {
        notes.push(format!(
            "Not in this version, which refuses it: it belongs to {feature}."
        ));
    }
    if setting.required {
        notes.push("Required outside development.".to_owned());
    }
    if setting.development_only {
        notes.push("For development only.".to_owned());
    }
    if setting.secret {
        notes.push("A secret.".to_owned());
    }
    if let Some(other) = setting.variant_of {
        notes.push(format!("Set this or {other}, not both."));
    }
    if let Kind::Choice(words) = setting.kind {
        notes.extend(words.iter().filter_map(word_note));
    }
    if setting.reader != "server" {
        notes.push(format!("Read by: {}.", setting.reader));
    }
    notes
}

fn word_note(word: &Word) -> Option<String> {
    match word.state {
        State::NotBuilt(feature) => Some(format!(
            "The value {} is not in this version: it belongs to {feature}.",
            word.text
        )),
        State::Built | State::Reserved => None,
    }
}

fn comment(out: &mut Vec<String>, text: &str) {
    out.extend(fill(text, WIDTH - 2).iter().map(|line| format!("# {line}")));
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("**", "\\*\\*")
}

/// A line of text for roff: never a control line, and with hyphens that can be copied.
pub fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}

/// Fills words into lines of at most `width`; a longer word gets its own line.
fn fill(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Vars, generated, table};
    use super::*;

    #[test]
    fn the_documents_equal_the_table() {
        for (path, text) in [
            ("packaging/agent-runtime.env.sample", environment_file()),
            ("packaging/agent-runtime.1", manual_page()),
            ("docs/settings.md", markdown()),
        ] {
            generated::file(path, &text, "config::render");
        }
        generated::part(
            "docs/open-details.md",
            "settings",
            &origins(),
            "config::render",
        );
    }

    #[test]
    fn every_setting_is_documented() {
        let (help, sample) = (help(), environment_file());
        let (manual, markdown) = (manual_page(), markdown());
        for setting in table::settings() {
            assert!(manual.contains(&format!(".B {}\n", setting.name)));
            assert!(markdown.contains(&format!("| `{}` |", setting.name)));
            let built = setting.state == State::Built;
            assert_eq!(help.contains(&format!("  {}\n", setting.name)), built);
            let sampled = sample.contains(&format!("#{}=", setting.name))
                || sample.contains(&format!("#{}=", setting.file_name()));
            assert_eq!(sampled, built, "{}", setting.name);
        }
        for text in [help, sample] {
            assert!(text.lines().all(|line| line.len() <= WIDTH + 40));
        }
    }

    /// What the sample offers as defaults are the defaults: with every such line made real, the
    /// server reads the same.
    #[test]
    fn the_sample_s_values_are_taken() {
        let pairs: Vec<(String, String)> = environment_file()
            .lines()
            .filter_map(|line| line.strip_prefix("#SVC_")?.split_once('='))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (format!("SVC_{name}"), value.to_owned()))
            .filter(|(name, _)| !table::find(name).is_some_and(|s| s.development_only))
            .collect();
        assert!(pairs.len() > 30);
        let vars = Vars::from_pairs(pairs);
        let clock = crate::ids::Clock::system();
        let report = super::super::check(&vars, &clock);
        let names: Vec<_> = report.faults.iter().map(|f| f.setting.as_str()).collect();
        assert_eq!(names, ["SVC_LICENSE_KEY", "SVC_DATABASE_URL"]);
    }

    #[test]
    fn roff_text_starts_no_request() {
        assert_eq!(roff(".env"), "\\&.env");
        assert_eq!(roff("a-b\\"), "a\\-b\\e");
    }
}
