//! Secrets in files: keys that setup makes once, and the license key that it installs.
//!
//! Guarantees: an existing key is never replaced. A new key is readable only by its reader from the
//! start, and appears in no output.

use super::Paths;
use super::ledger::{Ledger, State};
use super::tenant::Tenant;
use crate::authn::bearer;
use crate::cli::deployment;
use crate::cli::private_file::{self, IfExists};
use crate::cli::{Failure, Outcome};
use crate::config::license::{self, Term};
use crate::config::{EnvFile, TrustedKeys};
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use zeroize::Zeroizing;

/// The license key's setting.
const LICENSE: &str = "SVC_LICENSE_KEY";
/// The note on a new key of secrets if setup could not ask the database.
const NOT_ASKED: &str = "mode 0600; setup could not ask the database of SVC_DATABASE_URL; secrets \
                         that it already holds need the key that sealed them";
/// The longest license key that is read, in bytes.
const LICENSE_MAX_BYTES: u64 = 64 * 1024;

/// A key that setup makes if it is missing.
pub(super) struct Key {
    /// The setting, which is also the file's name.
    pub(super) setting: &'static str,
    /// Another setting that gives the same key.
    variant: &'static str,
    /// Whether the key is only for `SVC_SECRETS_BACKEND=postgres` with the local key-management
    /// service.
    pub(super) of_secrets: bool,
    make: fn() -> Outcome<Zeroizing<Vec<u8>>>,
}

/// Every key that setup makes.
pub(super) static KEYS: &[Key] = &[
    Key {
        setting: "SVC_SEED_TOKEN",
        variant: "SVC_SEED_TOKEN_FILE",
        of_secrets: false,
        make: token,
    },
    Key {
        setting: "SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH",
        variant: "SVC_PUBLIC_TOKEN_SIGNING_KEY",
        of_secrets: false,
        make: signing_key,
    },
    Key {
        setting: "SVC_SECRETS_AAD_KEY_PATH",
        variant: "SVC_SECRETS_AAD_KEY",
        of_secrets: true,
        make: random_key,
    },
    Key {
        setting: "SVC_SECRETS_LOCAL_KEY_PATH",
        variant: "SVC_SECRETS_LOCAL_KEY_PATH",
        of_secrets: true,
        make: random_key,
    },
];

fn token() -> Outcome<Zeroizing<Vec<u8>>> {
    let token = bearer::mint()?;
    Ok(Zeroizing::new(format!("{}\n", token.expose()).into_bytes()))
}

fn signing_key() -> Outcome<Zeroizing<Vec<u8>>> {
    let mut seed = Zeroizing::new([0; 32]);
    random(seed.as_mut_slice())?;
    let pem = SigningKey::from_bytes(&seed).to_pkcs8_pem(LineEnding::LF);
    let pem = pem.map_err(|error| Failure::new(error.to_string()))?;
    Ok(Zeroizing::new(pem.as_bytes().to_vec()))
}

fn random_key() -> Outcome<Zeroizing<Vec<u8>>> {
    let mut key = Zeroizing::new(vec![0; 32]);
    random(&mut key)?;
    Ok(key)
}

fn random(bytes: &mut [u8]) -> Outcome {
    getrandom::fill(bytes).map_err(|_| Failure::new("The system gives no random bytes."))
}

/// Whether the operator gave a secret setting: in the env file in any form, or as a credential.
pub(super) fn is_given(paths: &Paths, settings: &EnvFile, name: &str) -> bool {
    let forms = [name.to_owned(), format!("{name}_FILE")];
    let mut forms = forms.iter();
    forms.any(|form| has(settings, form)) || paths.credentials.join(name).exists()
}

/// Whether the env file gives a setting.
pub(super) fn has(settings: &EnvFile, name: &str) -> bool {
    let value = settings.value(name);
    value.is_some_and(|value| !value.expose().is_empty())
}

impl Key {
    /// Whether the key exists in any form.
    fn is_given(&self, paths: &Paths, settings: &EnvFile) -> bool {
        let mut forms = [self.setting, self.variant].into_iter();
        forms.any(|form| has(settings, form) || paths.credentials.join(form).exists())
    }
}

/// The missing files of the keys of secrets.
pub(super) fn missing_of_secrets(paths: &Paths, settings: &EnvFile) -> Vec<PathBuf> {
    let of_secrets = KEYS.iter().filter(|key| key.of_secrets);
    let missing = of_secrets.filter(|key| !key.is_given(paths, settings));
    missing
        .map(|key| paths.credentials.join(key.setting))
        .collect()
}

/// Makes the missing keys, and corrects owner and mode of the others.
pub(super) fn make(
    ledger: &mut Ledger,
    paths: &Paths,
    settings: &EnvFile,
    with_secrets: bool,
    tenant: &Tenant,
) -> Outcome {
    for key in KEYS.iter().filter(|key| with_secrets || !key.of_secrets) {
        let path = paths.credentials.join(key.setting);
        if path.exists() {
            put_right(ledger, &path)?;
        } else if key.is_given(paths, settings) {
            let note = "it is given in another form";
            ledger.enter(State::Kept, key.setting, Some(note));
        } else {
            if !ledger.dry_run {
                let bytes = (key.make)()?;
                let access = deployment::credential_access();
                private_file::write_for(access, &path, &bytes, IfExists::Keep)?;
            }
            let note = match key.of_secrets && matches!(tenant, Tenant::Unknown) {
                true => NOT_ASKED,
                false => "mode 0600",
            };
            ledger.enter(State::Made, path.display().to_string(), Some(note));
        }
    }
    // Further files that the operator put there.
    for path in deployment::credentials(&paths.credentials).unwrap_or_default() {
        let name = path.file_name().unwrap_or_default();
        if !KEYS.iter().any(|key| name == key.setting) && name != LICENSE {
            put_right(ledger, &path)?;
        }
    }
    Ok(())
}

/// Corrects owner and mode of a credential.
fn put_right(ledger: &mut Ledger, path: &Path) -> Outcome {
    if !ledger.dry_run {
        private_file::remove_left(path);
    }
    let access = deployment::credential_access();
    let what = path.display().to_string();
    match private_file::faults(access, path)? {
        None => ledger.enter(State::Kept, what, None),
        Some(fault) => {
            if !ledger.dry_run {
                private_file::put_right(access, path)?;
            }
            ledger.enter(State::Changed, what, Some(&format!("it {fault}")));
        }
    }
    Ok(())
}

/// Reads a license key, checks it, and checks that none is given in another form.
///
/// # Errors
/// It is not valid, or the env file gives one already.
pub(super) fn read_license(
    from: &Path,
    paths: &Paths,
    settings: &EnvFile,
    now: OffsetDateTime,
) -> Outcome<Zeroizing<String>> {
    if has(settings, LICENSE) || has(settings, "SVC_LICENSE_KEY_FILE") {
        return Err(Failure::new(format!(
            "{} gives {LICENSE} already: remove it there, and run this again.",
            paths.env_file.display()
        )));
    }
    let mut text = Zeroizing::new(String::new());
    fs::File::open(from)
        .and_then(|file| file.take(LICENSE_MAX_BYTES).read_to_string(&mut text))
        .map_err(|error| Failure::new(format!("{} cannot be read: {error}.", from.display())))?;
    let key = Zeroizing::new(text.trim().to_owned());
    match validate(&key, now) {
        Ok(()) => Ok(key),
        Err(why) => Err(Failure::new(format!("{} {why}.", from.display()))),
    }
}

/// Installs a license key.
///
/// # Errors
/// It cannot be written.
pub(super) fn license(ledger: &mut Ledger, paths: &Paths, key: Option<&str>) -> Outcome {
    let path = paths.credentials.join(LICENSE);
    let stands = fs::read(&path).map(Zeroizing::new).ok();
    let (key, state) = match (key, &stands) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return put_right(ledger, &path),
        (Some(key), Some(stands)) if stands.trim_ascii() == key.as_bytes() => {
            return put_right(ledger, &path);
        }
        (Some(key), Some(_)) => (key, State::Changed),
        (Some(key), None) => (key, State::Made),
    };
    if !ledger.dry_run {
        let text = Zeroizing::new(format!("{key}\n"));
        let access = deployment::credential_access();
        private_file::write_for(access, &path, text.as_bytes(), IfExists::Replace)?;
    }
    ledger.enter(state, path.display().to_string(), Some("mode 0600"));
    Ok(())
}

fn validate(key: &str, now: OffsetDateTime) -> Result<(), String> {
    let found = license::inspect(key, &TrustedKeys::compiled_in(), now);
    let found = found.map_err(|fault| fault.to_string())?;
    match found.term {
        _ if !found.signature_valid => Err(license::Fault::BadSignature.to_string()),
        Term::NotYet => Err(license::Fault::NotYet.to_string()),
        Term::Expired => Err(license::Fault::Expired.to_string()),
        Term::Valid | Term::EndsSoon | Term::Grace => Ok(()),
    }
}
