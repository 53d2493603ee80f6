//! Every way in which the service fails: which kind it is and what it says; and nothing is lost.

use super::{AAD, DATA_KEY, failure, open};
use crate::harness::kms::{FakeKms, Fault};
use agent_runtime::error::Code;
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::secrets::kms::{DEADLINE, Kind, Kms, KmsFailure, Options, Wrapped};
use std::time::{Duration, Instant};

const ALWAYS: usize = usize::MAX;
const KEY: &str = "projects/test/locations/global/keyRings/ring/cryptoKeys/key";

/// The service and what was wrapped while all was well.
struct Before {
    fake: FakeKms,
    kms: Kms,
    wrapped: Wrapped,
}

impl Before {
    fn new() -> Self {
        let fake = FakeKms::start();
        let kms = open(fake.options());
        let wrapped = kms.wrap(&DATA_KEY, AAD).unwrap();
        Self { fake, kms, wrapped }
    }

    fn unwrap(&self) -> KmsFailure {
        self.kms.unwrap(&self.wrapped, AAD, DEADLINE).unwrap_err()
    }

    /// Asserts how a wrap and an unwrap fail, and that both work once the fault is mended.
    #[track_caller]
    fn fails(&self, kind: Kind, sentence: &str) {
        for failure in [failure(&self.kms), self.unwrap()] {
            assert_says(&failure, kind, &[sentence, "127.0.0.1", KEY]);
        }
        self.works();
    }

    #[track_caller]
    fn works(&self) {
        self.fake.mend();
        let opened = self.kms.unwrap(&self.wrapped, AAD, DEADLINE).unwrap();
        assert_eq!(*opened, DATA_KEY);
        self.kms.wrap(&DATA_KEY, AAD).unwrap();
    }
}

#[track_caller]
fn assert_says(failure: &KmsFailure, kind: Kind, parts: &[&str]) {
    assert_eq!(failure.kind, kind, "{failure}");
    for part in parts {
        assert!(failure.message.contains(part), "{failure} lacks {part}");
    }
    assert!(!failure.message.contains("s3cret"), "{failure}");
}

#[test]
fn a_refusal_is_told_by_its_kind_and_what_to_do() {
    let before = Before::new();
    for (status, name, kind, sentence) in [
        (
            403,
            "PERMISSION_DENIED",
            Kind::Refused,
            "(403 PERMISSION_DENIED): give its account the role \
             roles/cloudkms.cryptoKeyEncrypterDecrypter on the key",
        ),
        (
            404,
            "NOT_FOUND",
            Kind::NotFound,
            "there is no such key (404 NOT_FOUND)",
        ),
        (
            404,
            "",
            Kind::Invalid,
            "it answered 404: check SVC_SECRETS_KMS_BASE_URL",
        ),
        (
            302,
            "",
            Kind::Invalid,
            "it answered 302: check SVC_SECRETS_KMS_BASE_URL",
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            Kind::Unreachable,
            "its quota is used up",
        ),
        (
            500,
            "INTERNAL",
            Kind::Unreachable,
            "out of order now (500 INTERNAL)",
        ),
        (
            503,
            "UNAVAILABLE",
            Kind::Unreachable,
            "out of order now (503 UNAVAILABLE)",
        ),
        (
            504,
            "DEADLINE_EXCEEDED",
            Kind::Timeout,
            "it took too long (504 DEADLINE_EXCEEDED)",
        ),
        (
            400,
            "FAILED_PRECONDITION",
            Kind::KeyDisabled,
            "look at the key's versions",
        ),
    ] {
        before.fake.fault(Fault::Refuse(status, name), ALWAYS);
        before.fails(kind, sentence);
    }
}

#[test]
fn a_checksum_that_is_wrong_once_costs_one_more_try() {
    let before = Before::new();
    for fault in [Fault::ReceivedOther, Fault::AnsweredOther] {
        before.fake.fault(fault, 1);
        let wrapped = before.kms.wrap(&DATA_KEY, AAD).unwrap();
        before.fake.fault(fault, 1);
        assert_eq!(
            *before.kms.unwrap(&wrapped, AAD, DEADLINE).unwrap(),
            DATA_KEY
        );
    }
    let counts = before.fake.counts();
    assert_eq!((counts.encrypt, counts.decrypt), (1 + 4, 4));
}

#[test]
fn a_checksum_that_stays_wrong_is_told_with_what_it_was_made_of() {
    let before = Before::new();
    before.fake.fault(Fault::ReceivedOther, ALWAYS);
    before.fails(Kind::Checksum, "the service did not receive what was sent");
    before.fake.fault(Fault::AnsweredOther, ALWAYS);
    before.fails(Kind::Checksum, "that it answered is not what it sent");
    before.fake.fault(Fault::Unverified, ALWAYS);
    let unchecked = failure(&before.kms);
    let sentence = "the service did not check the data key that it was sent";
    assert_says(&unchecked, Kind::Checksum, &[sentence]);
    before.works();
}

#[test]
fn an_answer_of_another_protocol_is_told() {
    let before = Before::new();
    before.fake.fault(Fault::Nonsense, ALWAYS);
    before.fails(Kind::Invalid, "something that is not of its protocol");
}

#[test]
fn a_service_that_does_not_answer_is_left_after_five_seconds() {
    let before = Before::new();
    before.fake.fault(Fault::Hang, 1);
    let began = Instant::now();
    let late = failure(&before.kms);
    assert_says(
        &late,
        Kind::Timeout,
        &["within 5 seconds", "127.0.0.1", KEY],
    );
    assert!(
        began.elapsed() >= Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    before.works();
}

#[test]
fn a_connection_that_breaks_is_tried_once_more() {
    let before = Before::new();
    before.fake.fault(Fault::Cut, 1);
    before.kms.wrap(&DATA_KEY, AAD).unwrap();
    before.fake.fault(Fault::Cut, ALWAYS);
    before.fails(Kind::Unreachable, "it is not reached: ");
}

#[test]
fn a_service_that_is_gone_is_told() {
    let Before { fake, kms, wrapped } = Before::new();
    drop(fake);
    for failure in [
        failure(&kms),
        kms.unwrap(&wrapped, AAD, DEADLINE).unwrap_err(),
    ] {
        assert_says(
            &failure,
            Kind::Unreachable,
            &["it is not reached", "127.0.0.1", KEY],
        );
    }
}

#[test]
fn a_disabled_version_is_named_and_what_it_wrapped_opens_once_it_is_enabled() {
    let before = Before::new();
    for (state, advice) in [
        ("DISABLED", "enable that version again"),
        (
            "DESTROY_SCHEDULED",
            "restore that version before it is destroyed",
        ),
        ("DESTROYED", "what it wrapped is lost"),
    ] {
        before.fake.set_state(1, state);
        for failure in [failure(&before.kms), before.unwrap()] {
            let sentence = format!("its version 1 is {state} (400 FAILED_PRECONDITION): ");
            assert_says(&failure, Kind::KeyDisabled, &[&sentence, advice, KEY]);
        }
    }
    // With another version, new data keys are wrapped again, and the old ones still are not opened.
    before.fake.rotate();
    let new = before.kms.wrap(&DATA_KEY, AAD).unwrap();
    assert_eq!(*before.kms.unwrap(&new, AAD, DEADLINE).unwrap(), DATA_KEY);
    assert_says(
        &before.unwrap(),
        Kind::KeyDisabled,
        &["its version 1 is DESTROYED"],
    );
    before.fake.set_state(1, "ENABLED");
    before.works();
}

#[test]
fn altered_bytes_and_other_associated_data_are_told() {
    let before = Before::new();
    let other_aad = before
        .kms
        .unwrap(&before.wrapped, b"bound to that", DEADLINE);
    let mut altered = before.wrapped.clone();
    *altered.bytes.last_mut().unwrap() ^= 1;
    let altered = before.kms.unwrap(&altered, AAD, DEADLINE);
    let empty = Wrapped {
        key: FakeKms::version(1),
        bytes: Vec::new(),
    };
    let empty = before.kms.unwrap(&empty, AAD, DEADLINE);
    for failure in [other_aad, altered, empty].map(Result::unwrap_err) {
        let sentence = "its row was moved, copied or altered, or SVC_SECRETS_AAD_KEY_PATH";
        assert_says(&failure, Kind::Altered, &[sentence, KEY]);
    }
    before.works();
}

#[test]
fn what_another_key_wrapped_is_not_asked_of_this_one() {
    let before = Before::new();
    let asked = before.fake.counts();
    for key in [
        "1e2f55d35ba3f247",
        "projects/other/locations/l/keyRings/r/cryptoKeys/k",
    ] {
        let other = Wrapped {
            key: key.to_owned(),
            bytes: before.wrapped.bytes.clone(),
        };
        let failure = before.kms.unwrap(&other, AAD, DEADLINE).unwrap_err();
        let sentence = format!("wrapped under {key}, which is no version of this key");
        assert_says(
            &failure,
            Kind::NotFound,
            &[&sentence, KEY, "SVC_SECRETS_KMS_KEY_ID"],
        );
    }
    assert_eq!(before.fake.counts(), asked);
}

#[test]
fn another_key_of_the_settings_is_told_to_be_none() {
    let fake = FakeKms::start();
    let Options::CloudA(mut options) = fake.options() else {
        unreachable!()
    };
    options.key.key = "other".to_owned();
    let failure = failure(&open(Options::CloudA(options)));
    assert_says(
        &failure,
        Kind::NotFound,
        &["cryptoKeys/other: there is no such key"],
    );
}

#[test]
fn a_base_url_that_is_none_is_told_at_the_start() {
    let fake = FakeKms::start();
    for url in [
        "kms",
        "http://kms.example/?key=1",
        "http://user@kms.example",
        "ftp://kms.example",
    ] {
        let Options::CloudA(mut options) = fake.options() else {
            unreachable!()
        };
        options.base_url = url.to_owned();
        let outbound = Outbound::new(outbound::Options::default()).unwrap();
        let made = Kms::new(Options::CloudA(options), &outbound, &Clock::system());
        assert_eq!(made.err().unwrap().code(), Code::InvalidRequest, "{url}");
    }
}
