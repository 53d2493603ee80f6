//! The keys that a backup needs and does not hold, and whether the present keys are the same ones.
//!
//! A fingerprint is 8 bytes of a SHA-256. It reveals nothing of a key of 32 random bytes.

use super::super::World;
use super::manifest::{Key, Manifest};
use crate::config::{self, Kms, PublicTokenKey, Secrets, Settings};
use crate::text::hex;
use sha2::{Digest, Sha256};

/// Settings that give keys, and whether secrets need the key.
const SETTINGS: [(&str, bool); 8] = [
    ("SVC_SECRETS_AAD_KEY_PATH", true),
    ("SVC_SECRETS_AAD_KEY", true),
    ("SVC_SECRETS_LOCAL_KEY_PATH", true),
    ("SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH", true),
    ("SVC_SECRETS_KMS_KEY_ID", true),
    ("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH", false),
    ("SVC_PUBLIC_TOKEN_SIGNING_KEY", false),
    ("SVC_AUDIT_SIGNING_KEY_PATH", false),
];

/// A key of the backup compared with the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) enum KeyMatch {
    Same,
    Other,
    /// No setting gives the key, or it cannot be read.
    Missing,
    /// The key could not be read when the backup was made.
    Unknown,
}

/// The keys of these settings.
pub(super) fn of(world: &World, settings: &Settings) -> Vec<Key> {
    let report = config::check(&world.vars, &world.clock);
    let given = |name: &str| {
        let row = report.settings.iter().find(|row| row.name == name);
        row.filter(|row| !["default", "not set"].contains(&row.source.as_str()))
    };
    let key = |(setting, for_secrets): &(&str, bool)| {
        given(setting)?;
        let path = world
            .vars
            .text(setting)
            .filter(|_| setting.ends_with("_PATH"));
        Some(Key {
            setting: (*setting).to_owned(),
            path: path.map(str::to_owned),
            fingerprint: bytes(settings, setting).map(|bytes| fingerprint(&bytes)),
            for_secrets: *for_secrets,
        })
    };
    SETTINGS.iter().filter_map(key).collect()
}

/// Compares each key of the backup with those of these settings.
pub(in crate::cli) fn compare(
    world: &World,
    settings: &Settings,
    manifest: &Manifest,
) -> Vec<(Key, KeyMatch)> {
    let here = of(world, settings);
    let key_match = |key: &Key| {
        // A file and a text may hold the same key.
        let purpose = purpose(&key.setting);
        let mut same_purpose = here
            .iter()
            .filter(|own| self::purpose(&own.setting) == purpose);
        let own = same_purpose.find_map(|own| own.fingerprint.as_ref());
        match (&key.fingerprint, own) {
            (None, _) => KeyMatch::Unknown,
            (Some(_), None) => KeyMatch::Missing,
            (Some(theirs), Some(own)) if theirs == own => KeyMatch::Same,
            (Some(theirs), Some(_)) if is_previous(&here, theirs) => KeyMatch::Same,
            _ => KeyMatch::Other,
        }
    };
    let each = manifest.keys.iter();
    each.map(|key| (key.clone(), key_match(key))).collect()
}

fn purpose(setting: &str) -> &str {
    setting.strip_suffix("_PATH").unwrap_or(setting)
}

/// A local key that was rotated since is now the previous one.
fn is_previous(here: &[Key], fingerprint: &str) -> bool {
    here.iter()
        .filter(|own| own.setting.starts_with("SVC_SECRETS_LOCAL_"))
        .any(|own| own.fingerprint.as_deref() == Some(fingerprint))
}

/// The bytes that identify the key.
fn bytes(settings: &Settings, setting: &str) -> Option<Vec<u8>> {
    if setting.starts_with("SVC_PUBLIC_TOKEN_") {
        let PublicTokenKey::Given(key) = &settings.public_token_key else {
            return None;
        };
        return Some(key.verifying_key().to_bytes().to_vec());
    }
    if setting == "SVC_AUDIT_SIGNING_KEY_PATH" {
        let key = settings.audit_signing_key.as_ref()?;
        return Some(key.verifying_key().to_bytes().to_vec());
    }
    let Secrets::Postgres { kms, aad_key } = &settings.secrets else {
        return None;
    };
    let text = match (setting, kms) {
        ("SVC_SECRETS_AAD_KEY_PATH" | "SVC_SECRETS_AAD_KEY", _) => aad_key.expose().to_owned(),
        ("SVC_SECRETS_LOCAL_KEY_PATH", Kms::Local { key, .. }) => key.expose().to_owned(),
        ("SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH", Kms::Local { previous, .. }) => {
            previous.as_ref()?.expose().to_owned()
        }
        ("SVC_SECRETS_KMS_KEY_ID", Kms::CloudA { key, .. }) => {
            key.each_ref().map(|part| part.expose()).join("/")
        }
        _ => return None,
    };
    Some(text.into_bytes())
}

fn fingerprint(key: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"agent-runtime key fingerprint\0");
    hash.update(key);
    hex(&hash.finalize()[..8])
}
