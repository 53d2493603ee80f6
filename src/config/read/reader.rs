//! What was read of the settings, and what reads them.

use crate::config::files::Credentials;
use crate::config::identity_providers::IdentityProviders;
use crate::config::license;
use crate::config::parse::{self, Value};
use crate::config::table::{Absent, Setting, State};
use crate::config::types::ModelKey;
use crate::config::{Fault, Vars};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The source of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) enum Origination {
    Environment,
    File(PathBuf),
    Credential(PathBuf),
    Default,
    Unset,
}

/// One setting as it was read. `shown` is what `check-config` may print.
#[derive(Debug)]
pub(in crate::config) struct Row {
    pub(in crate::config) setting: &'static Setting,
    pub(in crate::config) from: Origination,
    pub(in crate::config) shown: Option<String>,
    pub(in crate::config) value: Option<Value>,
}

/// The whole reading.
#[derive(Debug)]
pub(in crate::config) struct Reading {
    /// Whether this is development mode; none if `SVC_DEV` itself is wrong.
    pub(in crate::config) development: Option<bool>,
    pub(in crate::config) rows: Vec<Row>,
    pub(in crate::config) model_keys: Vec<ModelKey>,
    /// The operator's identity providers, if there is a file of them.
    pub(in crate::config) identity_providers: Option<IdentityProviders>,
    /// A file of credentials for the key-management service, and the variable that names it.
    pub(in crate::config) kms_credentials: Option<(PathBuf, &'static str)>,
    pub(in crate::config) license: Option<license::Claims>,
    pub(in crate::config) no_color: bool,
    pub(in crate::config) faults: Vec<Fault>,
    pub(in crate::config) warnings: Vec<String>,
}

/// The text that was found for a setting.
pub(in crate::config) struct Found {
    pub(in crate::config) from: Origination,
    pub(in crate::config) text: Zeroizing<String>,
}

impl Reading {
    /// Treats the settings of these faults as not given. The settings of secrets only make sense
    /// together: a fault in one drops them all.
    pub(in crate::config) fn forgive(&mut self, vars: &Vars, faults: &[Fault]) {
        let development = self.development == Some(true);
        let no_secrets = faults.iter().any(|f| f.setting.starts_with("SVC_SECRETS_"));
        for row in &mut self.rows {
            let setting = row.setting;
            let is_of_secrets = setting.name.starts_with("SVC_SECRETS_");
            if row.value.is_some() && !(no_secrets && is_of_secrets) {
                continue;
            }
            row.value = match setting.absent {
                _ if setting.state != State::Built => None,
                Absent::Value(text) => Some(text.to_owned()),
                Absent::Derived(_, derive) => derive(vars, development),
                Absent::Described(_) => None,
            }
            .and_then(|text| parse::parse(setting.kind, &text, &Credentials(None)).ok());
        }
    }
}

/// The value of the setting of this name.
pub(in crate::config) fn value<'a>(rows: &'a [Row], name: &str) -> Option<&'a Value> {
    rows.iter()
        .find(|row| row.setting.name == name)
        .and_then(|row| row.value.as_ref())
}

pub(in crate::config) struct Reader<'a> {
    pub(in crate::config) vars: &'a Vars,
    pub(in crate::config) credentials: Credentials,
    pub(in crate::config) development: Option<bool>,
    pub(in crate::config) faults: Vec<Fault>,
}

impl Reader<'_> {
    pub(super) fn fault(
        &mut self,
        setting: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.faults.push(Fault {
            setting: setting.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
        });
    }
}
