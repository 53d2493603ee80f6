//! Checks the settings of secrets together: what the chosen backend needs, and what it does not
//! read. An unused setting is refused, because whoever gave it relies on it.

use super::{Origination, Reader, Row, Value, value};
use crate::config::Vars;
use std::path::PathBuf;

const BACKEND: &str = "SVC_SECRETS_BACKEND";
const KMS: &str = "SVC_SECRETS_BACKEND_KMS";
const USUAL_CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// A setting and its condition: the backend, and the vendor if that matters.
const READ_WITH: [(&str, &str, Option<&str>); 14] = [
    ("SVC_SECRETS_DOTENV_DIR", "dotenv", None),
    ("SVC_SECRETS_DOTENV_FILES", "dotenv", None),
    (KMS, "postgres", None),
    ("SVC_SECRETS_KMS_PROJECT_ID", "postgres", Some("cloud-a")),
    ("SVC_SECRETS_KMS_LOCATION", "postgres", Some("cloud-a")),
    ("SVC_SECRETS_KMS_KEYRING_ID", "postgres", Some("cloud-a")),
    ("SVC_SECRETS_KMS_KEY_ID", "postgres", Some("cloud-a")),
    (
        "SVC_SECRETS_KMS_CREDENTIALS_PATH",
        "postgres",
        Some("cloud-a"),
    ),
    ("SVC_SECRETS_KMS_BASE_URL", "postgres", Some("cloud-a")),
    ("SVC_SECRETS_KMS_METADATA_URL", "postgres", Some("cloud-a")),
    ("SVC_SECRETS_LOCAL_KEY_PATH", "postgres", Some("local")),
    (
        "SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH",
        "postgres",
        Some("local"),
    ),
    ("SVC_SECRETS_AAD_KEY_PATH", "postgres", None),
    ("SVC_SECRETS_AAD_KEY", "postgres", None),
];

/// What must be given, and with what.
const REQUIRED: [(&str, &str, Option<&str>, &str); 7] = [
    (
        "SVC_SECRETS_DOTENV_DIR",
        "dotenv",
        None,
        "Name the directory of the env files",
    ),
    (KMS, "postgres", None, "Set it to cloud-a or local"),
    (
        "SVC_SECRETS_KMS_PROJECT_ID",
        "postgres",
        Some("cloud-a"),
        "Name the project of the wrapping key",
    ),
    (
        "SVC_SECRETS_KMS_LOCATION",
        "postgres",
        Some("cloud-a"),
        "Name the location of the wrapping key",
    ),
    (
        "SVC_SECRETS_KMS_KEYRING_ID",
        "postgres",
        Some("cloud-a"),
        "Name the key ring of the wrapping key",
    ),
    (
        "SVC_SECRETS_KMS_KEY_ID",
        "postgres",
        Some("cloud-a"),
        "Name the wrapping key",
    ),
    (
        "SVC_SECRETS_LOCAL_KEY_PATH",
        "postgres",
        Some("local"),
        MAKE_A_KEY,
    ),
];

pub(super) const MAKE_A_KEY: &str =
    "Make a key with: (umask 077; head -c 32 /dev/urandom > FILE), and name it here";

impl Reader<'_> {
    /// Checks the settings of secrets as a whole.
    pub(super) fn secrets(&mut self, rows: &[Row]) {
        let Some(backend) = word(rows, BACKEND) else {
            return;
        };
        if backend == "dotenv" && self.development != Some(true) {
            return;
        }
        let vendor = word(rows, KMS);
        // A wrong or missing vendor has a fault of its own.
        let of_vendor = |wanted: Option<&str>| wanted.is_none() || vendor == wanted;
        let misses_vendor = backend == "postgres" && vendor.is_none();
        for (name, with, wanted) in READ_WITH {
            let read = backend == with && (of_vendor(wanted) || misses_vendor);
            if given(rows, name) && !is_default(rows, name) && !read {
                let setting = match wanted.filter(|_| backend == with) {
                    Some(wanted) => format!("{KMS}={wanted}"),
                    None => format!("{BACKEND}={with}"),
                };
                self.fault(
                    name,
                    format!("is read with {setting} alone"),
                    "Remove it, or set that",
                );
            }
        }
        for (name, with, wanted, remedy) in REQUIRED {
            if backend == with && of_vendor(wanted) && !given(rows, name) {
                let setting = match wanted {
                    Some(wanted) => format!("{KMS}={wanted}"),
                    None => format!("{BACKEND}={with}"),
                };
                self.fault(name, format!("is required with {setting}"), remedy);
            }
        }
        let aad = ["SVC_SECRETS_AAD_KEY_PATH", "SVC_SECRETS_AAD_KEY"];
        if backend == "postgres" && !aad.iter().any(|name| given(rows, name)) {
            self.fault(
                aad[0],
                format!("is required with {BACKEND}=postgres, or {} instead", aad[1]),
                MAKE_A_KEY,
            );
        }
        self.distinct_keys(rows);
    }

    /// One key for two purposes protects neither.
    fn distinct_keys(&mut self, rows: &[Row]) {
        let names = [
            "SVC_SECRETS_LOCAL_KEY_PATH",
            "SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH",
            "SVC_SECRETS_AAD_KEY_PATH",
            "SVC_SECRETS_AAD_KEY",
        ];
        for (index, name) in names.iter().enumerate() {
            // The last two are forms of one key.
            let earlier = names.iter().take(index.min(2));
            for other in earlier {
                if let (Some(Value::Secret(one)), Some(Value::Secret(two))) =
                    (value(rows, name), value(rows, other))
                    && one == two
                {
                    self.fault(
                        name,
                        format!("is the same key as {other}"),
                        "Make a key for each",
                    );
                }
            }
        }
    }
}

/// The credentials file of `cloud-a`, and what named it: the setting, or the variable of the
/// vendor's own tools.
pub(super) fn kms_credentials(vars: &Vars, rows: &[Row]) -> Option<(PathBuf, &'static str)> {
    let setting = "SVC_SECRETS_KMS_CREDENTIALS_PATH";
    match value(rows, setting) {
        Some(Value::Path(path)) => Some((path.clone(), setting)),
        _ => vars
            .raw(USUAL_CREDENTIALS)
            .filter(|path| !path.is_empty())
            .map(|path| (PathBuf::from(path), USUAL_CREDENTIALS)),
    }
}

/// Whether it was given, valid or not.
fn given(rows: &[Row], name: &str) -> bool {
    rows.iter().any(|row| {
        row.setting.name == name && !matches!(row.from, Origination::Default | Origination::Unset)
    })
}

/// Whether it repeats the default.
fn is_default(rows: &[Row], name: &str) -> bool {
    let row = rows.iter().find(|row| row.setting.name == name);
    row.is_some_and(|row| row.shown.as_deref() == Some(row.setting.absent.text()))
}

fn word(rows: &[Row], name: &str) -> Option<&'static str> {
    match value(rows, name) {
        Some(Value::Word(word)) => Some(word),
        _ => None,
    }
}
