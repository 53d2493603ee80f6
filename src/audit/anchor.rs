//! Anchors. A purge removes the start of a chain and leaves an anchor in its place. The rest of the
//! chain can still be verified.
//!
//! Where the server has a key, it signs the anchor with Ed25519: then only the holder of the key can
//! purge. Without a signature, whoever may write the tables can pass a removal off as a purge.

use crate::ids::Clock;
use crate::store::audit::Outcome;
use crate::store::audit::pages::micros;
use crate::store::audit::purge::{Anchor, End, Seal};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

const PREFIX: &[u8] = b"agent-runtime audit anchor 1\n";

/// The anchor that replaces `before` and the batches that this purge removes.
pub(super) fn make(
    key: Option<&SigningKey>,
    outcome: Outcome,
    before: Option<&Anchor>,
    end: &End,
    clock: &Clock,
) -> Anchor {
    let mut anchor = Anchor {
        slot: end.slot,
        outcome,
        through_position: end.through_position,
        digest: end.digest,
        rows_purged: before.map_or(0, |anchor| anchor.rows_purged) + end.rows,
        purged_at: clock.now(),
        seal: None,
    };
    anchor.seal = key.map(|key| Seal {
        public_key: key.verifying_key().to_bytes(),
        signature: key.sign(&message(&anchor)).to_bytes(),
    });
    anchor
}

/// Whether one of `trusted` signed the anchor. If the list is empty, the key that the anchor names
/// counts.
pub(super) fn is_signed(anchor: &Anchor, trusted: &[VerifyingKey]) -> bool {
    let Some(seal) = &anchor.seal else {
        return false;
    };
    let Ok(key) = VerifyingKey::from_bytes(&seal.public_key) else {
        return false;
    };
    let signature = Signature::from_bytes(&seal.signature);
    (trusted.is_empty() || trusted.contains(&key))
        && key.verify_strict(&message(anchor), &signature).is_ok()
}

fn message(anchor: &Anchor) -> Vec<u8> {
    let mut bytes = PREFIX.to_vec();
    bytes.extend_from_slice(&anchor.slot.to_be_bytes());
    bytes.extend_from_slice(anchor.outcome.text().as_bytes());
    bytes.push(b'\n');
    bytes.extend_from_slice(&anchor.through_position.to_be_bytes());
    bytes.extend_from_slice(&anchor.digest);
    bytes.extend_from_slice(&anchor.rows_purged.to_be_bytes());
    bytes.extend_from_slice(&micros(anchor.purged_at).to_be_bytes());
    bytes
}
