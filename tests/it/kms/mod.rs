//! Key-management services: `cloud-a` against a service that encrypts, fails in every way, rotates
//! and disables its key; and that service against the vendor's own client.

mod credentials;
mod failures;
mod vendor;

use crate::harness::kms::FakeKms;
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::secrets::kms::{DEADLINE, Kms, KmsFailure, Options};

const DATA_KEY: [u8; 32] = [7; 32];
const AAD: &[u8] = b"bound to this";

fn open(options: Options) -> Kms {
    let outbound = Outbound::new(outbound::Options::default()).unwrap();
    Kms::new(options, &outbound, &Clock::system()).unwrap()
}

/// Wraps the data key and gives why that failed.
#[track_caller]
fn failure(kms: &Kms) -> KmsFailure {
    kms.wrap(&DATA_KEY, AAD).unwrap_err()
}

#[test]
fn what_is_wrapped_opens_again_with_its_associated_data_alone() {
    let fake = FakeKms::start();
    let kms = open(fake.options());
    let wrapped = kms.wrap(&DATA_KEY, AAD).unwrap();
    assert_eq!(wrapped.key, FakeKms::version(1));
    assert_eq!(*kms.unwrap(&wrapped, AAD, DEADLINE).unwrap(), DATA_KEY);
    let counts = fake.counts();
    assert_eq!((counts.encrypt, counts.decrypt, counts.tokens), (1, 1, 1));
}

#[test]
fn a_rotated_key_wraps_under_its_new_version_and_opens_what_the_old_one_wrapped() {
    let fake = FakeKms::start();
    let kms = open(fake.options());
    let old = kms.wrap(&DATA_KEY, AAD).unwrap();
    assert!(kms.is_current(&old.key).unwrap());
    fake.rotate();
    let new = kms.wrap(&DATA_KEY, AAD).unwrap();
    assert_eq!(new.key, FakeKms::version(2));
    assert!(!kms.is_current(&old.key).unwrap());
    assert!(kms.is_current(&new.key).unwrap());
    assert_eq!(*kms.unwrap(&old, AAD, DEADLINE).unwrap(), DATA_KEY);
    assert_eq!(*kms.unwrap(&new, AAD, DEADLINE).unwrap(), DATA_KEY);
}

#[test]
fn which_version_wraps_is_asked_once_for_many_rows() {
    let fake = FakeKms::start();
    let kms = open(fake.options());
    for _ in 0..50 {
        assert!(kms.is_current(&FakeKms::version(1)).unwrap());
        assert!(!kms.is_current(&FakeKms::version(2)).unwrap());
    }
    // The name is believed for ten seconds, and a slow machine may take longer than that.
    assert!(fake.counts().encrypt < 10, "{:?}", fake.counts());
}
