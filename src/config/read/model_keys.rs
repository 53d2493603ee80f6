//! The API keys of model providers that `SVC_MODEL_KEYS` lists, each from the one source that has it.

use super::{Reader, Row, value};
use crate::config::parse::Value;
use crate::config::types::ModelKey;
use crate::config::types::Origin;
use crate::secret::Secret;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

impl Reader<'_> {
    /// The bytes of the model keys that the operator lists.
    pub(super) fn model_keys(&mut self, rows: &[Row]) -> Vec<ModelKey> {
        let directory = match value(rows, "SVC_MODEL_KEYS_DIR") {
            Some(Value::Path(path)) => Some(path.clone()),
            _ => None,
        };
        let Some(Value::ModelKeys(keys)) = value(rows, "SVC_MODEL_KEYS") else {
            if directory.is_some() && value(rows, "SVC_MODEL_KEYS").is_none() {
                self.fault(
                    "SVC_MODEL_KEYS_DIR",
                    "is set, but SVC_MODEL_KEYS names no key in it",
                    "Name the keys in SVC_MODEL_KEYS, each with its origin, or remove it",
                );
            }
            return Vec::new();
        };
        keys.iter()
            .filter_map(|(name, origin)| self.model_key(name, origin, directory.as_deref()))
            .collect()
    }

    fn model_key(
        &mut self,
        name: &str,
        origin: &Origin,
        directory: Option<&Path>,
    ) -> Option<ModelKey> {
        let mut files: Vec<PathBuf> = Vec::new();
        files.extend(
            directory
                .map(|dir| dir.join(name))
                .filter(|path| path.exists()),
        );
        files.extend(
            self.credentials
                .find(name)
                .filter(|path| !files.contains(path)),
        );
        let variable = self.vars.raw(name);
        let text = match (files.as_slice(), variable) {
            ([path], None) => self
                .credentials
                .read_secret_text(path)
                .map_err(|problem| format!("lists {name}; {} {problem}", path.display())),
            ([], Some(text)) => text
                .to_str()
                .map(|text| Zeroizing::new(text.to_owned()))
                .ok_or_else(|| format!("lists {name}, but that variable is not UTF-8")),
            ([], None) => Err(format!(
                "lists {name}, but there is no such file in SVC_MODEL_KEYS_DIR, no such systemd \
                 credential and no such variable"
            )),
            _ => Err(format!(
                "lists {name}, which is given more than once (file in SVC_MODEL_KEYS_DIR, systemd \
                 credential, environment variable)"
            )),
        };
        let judged = text.and_then(|text| {
            let fits = (1..=8192).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_graphic());
            let refusal =
                || format!("lists {name}, whose key is not 1 to 8192 visible ASCII characters");
            fits.then(|| Secret::new(text.as_str())).ok_or_else(refusal)
        });
        match judged {
            Ok(key) => Some(ModelKey {
                name: name.to_owned(),
                origin: origin.clone(),
                key,
            }),
            Err(problem) => {
                self.fault(
                    "SVC_MODEL_KEYS",
                    problem,
                    "Give each listed key in one place",
                );
                None
            }
        }
    }
}
