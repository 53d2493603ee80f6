//! The identity providers of the operator's file, with the secret of each from where the file says it is.

use super::{Reader, Row, value};
use crate::config::identity_providers::{self, IdentityProviders, SecretIn};
use crate::config::parse::Value;
use crate::secret::Secret;
use std::path::Path;

const NAME: &str = "SVC_IDENTITY_PROVIDERS_PATH";

impl Reader<'_> {
    /// None: there is no file, or the setting itself is wrong.
    pub(super) fn identity_providers(&mut self, rows: &[Row]) -> Option<IdentityProviders> {
        let Some(Value::Path(path)) = value(rows, NAME) else {
            return None;
        };
        let bytes = match crate::config::files::read_trusted(path) {
            Ok(bytes) => bytes,
            Err(problem) => {
                let remedy =
                    "Give the absolute path of a file that root owns, or of mode 0640 or stricter";
                self.fault(NAME, problem, remedy);
                return None;
            }
        };
        let parsed = identity_providers::parse(&bytes);
        for fault in parsed.faults {
            let problem = format!("names a file with a fault at {fault}");
            self.fault(NAME, problem, "Correct the file: docs/sign-in.md");
        }
        let mut providers = Vec::new();
        for (mut provider, secret) in parsed.providers {
            let secret = match &secret {
                None => Ok(None),
                Some(SecretIn::File(path)) => self.client_secret(path).map(Some),
                Some(SecretIn::Credential(name)) => match self.credentials.find(name) {
                    Some(path) => self.client_secret(&path).map(Some),
                    None => Err("names a systemd credential that is not there".to_owned()),
                },
            };
            match secret {
                Ok(secret) => {
                    provider.client_secret = secret;
                    providers.push(provider);
                }
                Err(problem) => {
                    let issuer = &provider.issuer;
                    let problem = format!("names a file whose provider {issuer} {problem}");
                    let remedy =
                        "Put the client's secret there, in a file that its owner alone can read";
                    self.fault(NAME, problem, remedy);
                }
            }
        }
        Some(IdentityProviders(providers))
    }

    fn client_secret(&self, path: &Path) -> Result<Secret, String> {
        let text = self.credentials.read_secret_text(path)?;
        match text.trim().is_empty() {
            true => Err("names a file that is empty".to_owned()),
            false => Ok(Secret::new(text.as_str())),
        }
    }
}
