//! Vendor `local`: AES-256-GCM with a key file on this host, for hosts that reach no cloud.
//!
//! A wrapped key is a format byte, a random nonce, and the ciphertext with its tag. It names its
//! key by a digest, so that a missing key and an altered row are distinguished. Random nonces allow
//! about four thousand million wraps under one key (NIST SP 800-38D).
//!
//! Not here: reading the file and checking its mode (`config`).

use super::{Kind, KmsFailure, Wrapped};
use crate::error::{Code, Error, Result};
use crate::secret::{Secret, decoded};
use crate::text::hex;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use zeroize::Zeroizing;

const FORMAT: u8 = 1;
const TAG_LEN: usize = 16;
const WRAPPED_LEN: usize = 1 + NONCE_LEN + 32 + TAG_LEN;
/// The longest key name repeated in a message.
const MAX_NAME_BYTES: usize = 300;

/// A wrapping key. It is wiped when dropped and cannot be printed.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; 32]>);

impl Key {
    /// Takes the key.
    pub fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// Takes the key as settings hold it, in base64.
    ///
    /// # Errors
    /// It is not the base64 of 32 bytes.
    pub fn from_base64(text: &Secret) -> Result<Self> {
        let bytes = decoded(text.expose(), 32);
        let key = bytes.and_then(|bytes| exactly_32(&bytes));
        key.map(Self).ok_or_else(|| {
            Error::new(
                Code::InvalidRequest,
                "The local wrapping key must be 32 bytes.",
            )
        })
    }

    /// The key's id in rows: 16 hexadecimal digits.
    fn id(&self) -> String {
        let digest = Sha256::new()
            .chain_update(b"agent-runtime local key")
            .chain_update(self.0.as_slice())
            .finalize();
        hex(&digest[..8])
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The key that wraps, and the previous one.
#[derive(Clone)]
pub struct Local(Arc<Keys>);

struct Keys {
    current: Named,
    previous: Option<Named>,
}

struct Named {
    id: String,
    key: LessSafeKey,
}

impl Named {
    fn new(key: &Key) -> Result<Self> {
        let unbound = UnboundKey::new(&AES_256_GCM, key.0.as_slice());
        Ok(Self {
            id: key.id(),
            key: LessSafeKey::new(unbound.map_err(|error| Error::internal(error.to_string()))?),
        })
    }
}

impl Local {
    pub(super) fn new(key: &Key, previous: Option<&Key>) -> Result<Self> {
        Ok(Self(Arc::new(Keys {
            current: Named::new(key)?,
            previous: previous.map(Named::new).transpose()?,
        })))
    }

    pub(super) fn wrap(&self, data_key: &[u8; 32], aad: &[u8]) -> Result<Wrapped, KmsFailure> {
        let Named { id, key } = &self.0.current;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| {
            KmsFailure::new(
                Kind::Unreachable,
                "The operating system gives no random bytes, which wrapping a secret's data key \
                 needs.",
            )
        })?;
        let mut sealed = Zeroizing::new(*data_key);
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(aad),
                sealed.as_mut_slice(),
            )
            .map_err(|_| {
                KmsFailure::new(
                    Kind::Invalid,
                    format!("The local key {id} could not wrap a data key."),
                )
            })?;
        let parts: [&[u8]; 4] = [&[FORMAT], &nonce, sealed.as_slice(), tag.as_ref()];
        Ok(Wrapped {
            key: id.clone(),
            bytes: parts.concat(),
        })
    }

    pub(super) fn unwrap(
        &self,
        wrapped: &Wrapped,
        aad: &[u8],
    ) -> Result<Zeroizing<[u8; 32]>, KmsFailure> {
        let keys = [Some(&self.0.current), self.0.previous.as_ref()];
        let mut keys = keys.into_iter().flatten();
        let named = keys.find(|named| named.id == wrapped.key);
        let Some(Named { id, key }) = named else {
            return Err(KmsFailure::new(Kind::NotFound, not_ours(&wrapped.key)));
        };
        open(key, &wrapped.bytes, aad).ok_or_else(|| {
            KmsFailure::new(
                Kind::Altered,
                format!(
                    "The data key does not open under the local key {id}, which wrapped it: its \
                     row was moved, copied or altered, or SVC_SECRETS_AAD_KEY_PATH \
                     (SVC_SECRETS_AAD_KEY) is another key than when the secret was stored."
                ),
            )
        })
    }

    pub(super) fn is_current(&self, key: &str) -> bool {
        self.0.current.id == key
    }
}

fn open(key: &LessSafeKey, bytes: &[u8], aad: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let (&format, rest) = bytes.split_first()?;
    if format != FORMAT || bytes.len() != WRAPPED_LEN {
        return None;
    }
    let (nonce, sealed) = rest.split_at(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut buffer = Zeroizing::new(sealed.to_vec());
    let plain = key.open_in_place(nonce, Aad::from(aad), &mut buffer).ok()?;
    exactly_32(plain)
}

/// A copy that is wiped, if the bytes have the length of a key.
pub(super) fn exactly_32(bytes: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let mut key = Zeroizing::new([0; 32]);
    if bytes.len() != key.len() {
        return None;
    }
    key.copy_from_slice(bytes);
    Some(key)
}

fn not_ours(key: &str) -> String {
    let name: String = key.escape_default().take(MAX_NAME_BYTES).collect();
    format!(
        "The data key is wrapped under key {name}, which is neither SVC_SECRETS_LOCAL_KEY_PATH nor \
         SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH: give that key back in the latter and run \
         `agent-runtime secrets rewrap`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    const DATA_KEY: [u8; 32] = [7; 32];
    const AAD: &[u8] = b"bound to this";

    fn key(byte: u8) -> Key {
        Key::new(Zeroizing::new([byte; 32]))
    }

    fn local(byte: u8) -> Local {
        Local::new(&key(byte), None).unwrap()
    }

    #[test]
    fn what_is_wrapped_opens_again_and_never_looks_the_same() {
        let local = local(1);
        let [first, second] = [(), ()].map(|()| local.wrap(&DATA_KEY, AAD).unwrap());
        assert_eq!(*local.unwrap(&first, AAD).unwrap(), DATA_KEY);
        assert_eq!(*local.unwrap(&second, AAD).unwrap(), DATA_KEY);
        assert_ne!(first.bytes, second.bytes);
        assert_eq!(first.bytes.len(), WRAPPED_LEN);
        assert!(!first.bytes.windows(4).any(|w| w == &DATA_KEY[..4]));
    }

    #[test]
    fn a_keys_name_is_its_digest_and_stays_the_same() {
        let wrapped = local(1).wrap(&DATA_KEY, AAD).unwrap();
        // printf 'agent-runtime local key'; 32 bytes of 0x01 | sha256sum | head -c 16
        assert_eq!(wrapped.key, "1e2f55d35ba3f247");
        assert!(local(1).is_current(&wrapped.key));
        assert!(!local(2).is_current(&wrapped.key));
    }

    #[test]
    fn every_altered_byte_and_other_associated_data_are_told() {
        let local = local(1);
        let wrapped = local.wrap(&DATA_KEY, AAD).unwrap();
        for at in 0..wrapped.bytes.len() {
            let mut altered = wrapped.clone();
            altered.bytes[at] ^= 1;
            let failure = local.unwrap(&altered, AAD).unwrap_err();
            assert_eq!(failure.kind, Kind::Altered, "byte {at}");
        }
        for length in [0, 1, 13, 60] {
            let mut cut = wrapped.clone();
            cut.bytes.truncate(length);
            assert_eq!(local.unwrap(&cut, AAD).unwrap_err().kind, Kind::Altered);
        }
        let failure = local.unwrap(&wrapped, b"bound to that").unwrap_err();
        assert_eq!(failure.kind, Kind::Altered);
        assert!(failure.message.contains("moved, copied or altered"));
        assert!(failure.message.contains("SVC_SECRETS_AAD_KEY_PATH"));
    }

    #[test]
    fn the_previous_key_opens_and_wraps_no_more() {
        let old = local(1).wrap(&DATA_KEY, AAD).unwrap();
        let rotated = Local::new(&key(2), Some(&key(1))).unwrap();
        assert_eq!(*rotated.unwrap(&old, AAD).unwrap(), DATA_KEY);
        assert!(!rotated.is_current(&old.key));
        let new = rotated.wrap(&DATA_KEY, AAD).unwrap();
        assert!(rotated.is_current(&new.key));
        assert_eq!(local(1).unwrap(&new, AAD).unwrap_err().kind, Kind::NotFound);
    }

    #[test]
    fn a_key_that_is_gone_is_named_with_the_settings_to_look_at() {
        let mut old = local(1).wrap(&DATA_KEY, AAD).unwrap();
        let failure = local(2).unwrap(&old, AAD).unwrap_err();
        assert_eq!(failure.kind, Kind::NotFound);
        assert!(failure.message.contains(&old.key));
        assert!(failure.message.contains(
            "which is neither SVC_SECRETS_LOCAL_KEY_PATH nor SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH"
        ));
        old.key = "x\n".repeat(10_000);
        let failure = local(2).unwrap(&old, AAD).unwrap_err();
        assert!(failure.message.len() < 700 && !failure.message.contains('\n'));
    }

    #[test]
    fn a_key_is_read_from_base64_of_32_bytes_and_shows_nothing() {
        let text = Secret::new(STANDARD.encode([1; 32]));
        let read = Key::from_base64(&text).unwrap();
        assert_eq!(read.id(), key(1).id());
        assert_eq!(format!("{read:?}"), "[redacted]");
        for bad in ["", "AQEB", "not base64"] {
            assert!(Key::from_base64(&Secret::new(bad)).is_err());
        }
    }
}
