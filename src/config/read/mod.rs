//! Reads every setting of the table from the environment, and finds every fault.

mod identity_providers;
mod model_keys;
mod reader;
mod secrets;
mod together;
mod unknown;

use super::Vars;
use super::files::Credentials;
use super::license::{self, TrustedKeys};
use super::parse::{self, Value};
use super::table::{self, Absent, Kind, Setting, State};
use crate::ids::Clock;
use reader::{Found, Reader};
pub(super) use reader::{Origination, Reading, Row, value};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Advice on running a command with the settings of the installed service.
const INSTALLED: &str = ". The installed service has its settings in \
    /etc/agent-runtime/agent-runtime.env; to run a command with them, as root: systemd-run --pipe --wait \
    --collect -p User=agent-runtime -p EnvironmentFile=/etc/agent-runtime/agent-runtime.env -p \
    LoadCredential=credentials:/etc/agent-runtime/credentials agent-runtime COMMAND";

/// Reads all settings.
pub(super) fn read(vars: &Vars, clock: &Clock, trusted: &TrustedKeys) -> Reading {
    let mut reader = Reader {
        vars,
        credentials: Credentials(vars.credentials_directory()),
        development: development(vars),
        faults: Vec::new(),
    };
    reader.unknown_names();
    let rows: Vec<Row> = table::settings().map(|s| reader.row(s)).collect();
    reader.variants(&rows);
    reader.body_limits(&rows);
    reader.traces(&rows);
    reader.forward_proxy(&rows);
    reader.public_url(&rows);
    reader.console(&rows);
    reader.secrets(&rows);
    let kms_credentials = secrets::kms_credentials(vars, &rows);
    let model_keys = reader.model_keys(&rows);
    let identity_providers = reader.identity_providers(&rows);
    let mut warnings = Vec::new();
    let license = reader.license(&rows, clock, trusted, &mut warnings);
    Reading {
        development: reader.development,
        rows,
        model_keys,
        identity_providers,
        kms_credentials,
        license,
        no_color: vars.no_color(),
        faults: reader.faults,
        warnings,
    }
}

/// Development mode is read first, because it decides what may be given.
fn development(vars: &Vars) -> Option<bool> {
    match vars.raw("SVC_DEV") {
        None => Some(false),
        Some(text) => parse::boolean(text.to_str()?),
    }
}

impl Reader<'_> {
    /// Reads one setting: finds, admits and parses it.
    fn row(&mut self, setting: &'static Setting) -> Row {
        let before = self.faults.len();
        let found = self.find(setting);
        let given = found.is_some() || self.faults.len() > before;
        if given && setting.development_only && self.development == Some(false) {
            self.development_only(setting, "is for development only");
        }
        if given && let State::NotBuilt(feature) = setting.state {
            self.fault(
                setting.name,
                format!("belongs to a feature that this version does not have yet: {feature}"),
                "Remove it",
            );
        }
        if let Some(found) = found {
            let value = self.parsed(setting, &found);
            return Row {
                setting,
                shown: value.is_some().then(|| shown(setting, &found.text)),
                from: found.from,
                value,
            };
        }
        if given {
            return Row {
                setting,
                from: Origination::Environment,
                shown: None,
                value: None,
            };
        }
        self.absent(setting)
    }

    fn development_only(&mut self, setting: &Setting, problem: &str) {
        self.fault(
            setting.name,
            problem,
            "Remove it, or set SVC_DEV=true if this is a development machine",
        );
    }

    /// The text of a setting, from its only source.
    fn find(&mut self, setting: &Setting) -> Option<Found> {
        let environment = self.vars.raw(setting.name);
        let file_name = setting.file_name();
        let file = self.vars.raw(&file_name).filter(|_| setting.secret);
        let file = file.map(PathBuf::from);
        // A variable that names the credential's own file is not a second source.
        let named = if setting.secret {
            file.as_deref()
        } else {
            environment.map(Path::new)
        };
        let credential = self
            .credentials
            .find(setting.name)
            .filter(|path| setting.takes_credential() && named != Some(path));
        let mut places = Vec::new();
        if environment.is_some() {
            places.push(setting.name.to_owned());
        }
        if file.is_some() {
            places.push(file_name.clone());
        }
        if credential.is_some() {
            places.push(format!("the systemd credential {}", setting.name));
        }
        if places.len() > 1 {
            let problem = format!("is given more than once: as {}", places.join(", as "));
            self.fault(setting.name, problem, "Keep one of them");
            return None;
        }
        if let Some(text) = environment {
            let text = text.to_str().map(str::to_owned);
            return self.text(setting.name, text, Origination::Environment);
        }
        if let Some(path) = file {
            return self.file(&file_name, &path, Origination::File(path.clone()));
        }
        let path = credential?;
        if setting.secret {
            return self.file(setting.name, &path, Origination::Credential(path.clone()));
        }
        let text = path.to_str().map(str::to_owned);
        self.text(setting.name, text, Origination::Credential(path))
    }

    fn text(&mut self, name: &str, text: Option<String>, from: Origination) -> Option<Found> {
        let remedy = "Give a value or remove it";
        match text.map(Zeroizing::new) {
            None => self.fault(name, "is not UTF-8", remedy),
            Some(text) if text.trim().is_empty() => self.fault(name, "is empty", remedy),
            Some(text) => return Some(Found { from, text }),
        }
        None
    }

    fn file(&mut self, name: &str, path: &Path, from: Origination) -> Option<Found> {
        match self.credentials.read_secret_text(path) {
            Ok(text) if text.trim().is_empty() => {
                self.fault(name, "names a file that is empty", "Put the secret into it");
            }
            Ok(text) => return Some(Found { from, text }),
            Err(problem) => self.fault(
                name,
                problem,
                "Give the absolute path of a file that its owner alone can read",
            ),
        }
        None
    }

    /// The parsed value of a given text, if it is valid.
    fn parsed(&mut self, setting: &'static Setting, found: &Found) -> Option<Value> {
        if setting.state != State::Built {
            return None;
        }
        if self.development != Some(true)
            && parse::is_development_key(setting.kind, &found.text, &self.credentials)
        {
            self.fault(
                setting.name,
                "names a key that agent-runtime dev made, which is for development only",
                secrets::MAKE_A_KEY,
            );
            return None;
        }
        let value = match parse::parse(setting.kind, &found.text, &self.credentials) {
            Ok(value) => value,
            Err(problem) => {
                self.fault(setting.name, problem, "Correct it or remove it");
                return None;
            }
        };
        let (Kind::Choice(words), Value::Word(text)) = (setting.kind, &value) else {
            return Some(value);
        };
        let word = words.iter().find(|word| word.text == *text)?;
        if word.development_only && self.development == Some(false) {
            let problem = format!("has the value {text}, which is for development only");
            self.development_only(setting, &problem);
        }
        let problem = match word.state {
            State::Built => return Some(value),
            State::Reserved => {
                format!("has the value {text}, which is reserved and not supported")
            }
            State::NotBuilt(feature) => format!(
                "has the value {text}, which belongs to a feature that this version does not have \
                 yet: {feature}"
            ),
        };
        self.fault(setting.name, problem, "Take another value or remove it");
        None
    }

    /// A setting that was not given.
    fn absent(&mut self, setting: &'static Setting) -> Row {
        let development = self.development;
        let text = match setting.absent {
            _ if setting.state != State::Built => None,
            Absent::Value(text) => Some(text.to_owned()),
            Absent::Derived(_, derive) => derive(self.vars, development == Some(true)),
            Absent::Described(_) => None,
        };
        if text.is_none() && setting.required && development == Some(false) {
            self.fault(
                setting.name,
                "is required outside development mode",
                format!(
                    "Set it, or {} to a file that holds it, or give a systemd credential of its \
                     name; on a development machine set SVC_DEV=true instead{}",
                    setting.file_name(),
                    match setting.name {
                        "SVC_DATABASE_URL" => INSTALLED,
                        _ => "",
                    }
                ),
            );
        }
        let value = text
            .as_ref()
            .and_then(|text| parse::parse(setting.kind, text, &self.credentials).ok());
        Row {
            setting,
            from: if value.is_some() {
                Origination::Default
            } else {
                Origination::Unset
            },
            shown: text.map(|text| shown(setting, &text)),
            value,
        }
    }

    /// The license: required outside development, where a faulty one is a fault; inside, it is a
    /// warning.
    fn license(
        &mut self,
        rows: &[Row],
        clock: &Clock,
        trusted: &TrustedKeys,
        warnings: &mut Vec<String>,
    ) -> Option<license::Claims> {
        let Some(Value::Secret(key)) = value(rows, "SVC_LICENSE_KEY") else {
            return None;
        };
        match license::verify(key.expose(), trusted, clock.now()) {
            Ok(claims) => {
                warnings.extend(claims.warning(clock.now()));
                Some(claims)
            }
            Err(fault) => {
                match self.development {
                    Some(true) => warnings.push(format!("SVC_LICENSE_KEY {fault}.")),
                    _ => self.fault(
                        "SVC_LICENSE_KEY",
                        fault.to_string(),
                        "Put in the key that came with the license, or ask for a new one",
                    ),
                }
                None
            }
        }
    }
}

/// What may be printed of a setting's text.
fn shown(setting: &Setting, text: &str) -> String {
    if setting.secret {
        "[redacted]".to_owned()
    } else {
        text.to_owned()
    }
}
