//! Access tokens: where they come from, how often they are asked for, and how that fails.

use super::{AAD, DATA_KEY, failure, open};
use crate::harness::eventually;
use crate::harness::kms::FakeKms;
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::secrets::kms::{Kind, Kms, Options};
use std::sync::Barrier;
use std::time::Duration;

const SOURCES: [Option<&str>; 3] = [
    Some("service_account.json"),
    Some("authorized_user.json"),
    None,
];

#[test]
fn every_source_of_credentials_gives_a_token_that_is_used_again() {
    for source in SOURCES {
        let fake = FakeKms::start();
        let kms = open(fake.options_with(source));
        for _ in 0..3 {
            kms.wrap(&DATA_KEY, AAD).unwrap();
        }
        let counts = fake.counts();
        assert_eq!((counts.tokens, counts.encrypt), (1, 3), "{source:?}");
    }
}

#[test]
fn thirty_two_threads_ask_for_one_token() {
    let fake = FakeKms::start();
    let kms = open(fake.options());
    let barrier = Barrier::new(33);
    fake.hold_tokens(true);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    kms.wrap(&DATA_KEY, AAD).unwrap()
                })
            })
            .collect();
        barrier.wait();
        eventually("a request for a token", || {
            (fake.counts().tokens > 0).then_some(())
        });
        fake.hold_tokens(false);
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let counts = fake.counts();
    assert_eq!((counts.tokens, counts.encrypt), (1, 32));
}

#[test]
fn a_token_is_renewed_before_it_ends() {
    let fake = FakeKms::start();
    fake.set_token_life_s(2);
    let kms = open(fake.options());
    // Nothing is refused meanwhile: half the life is left when the next one is asked for.
    eventually("a second token", || {
        kms.wrap(&DATA_KEY, AAD).unwrap();
        (fake.counts().tokens > 1).then_some(())
    });
}

#[test]
fn a_token_that_the_service_takes_no_more_is_renewed_once() {
    let fake = FakeKms::start();
    let kms = open(fake.options());
    kms.wrap(&DATA_KEY, AAD).unwrap();
    fake.revoke_tokens();
    kms.wrap(&DATA_KEY, AAD).unwrap();
    let counts = fake.counts();
    assert_eq!((counts.tokens, counts.encrypt), (2, 3));
}

#[test]
fn a_service_that_takes_no_token_at_all_is_told_with_their_source() {
    let (fake, other) = (FakeKms::start(), FakeKms::start());
    for (source, told) in [
        (
            Some("service_account.json"),
            "SVC_SECRETS_KMS_CREDENTIALS_PATH (/",
        ),
        (None, "the metadata server http://127.0.0.1"),
    ] {
        let (Options::CloudA(mut options), Options::CloudA(elsewhere)) =
            (fake.options_with(source), other.options_with(source))
        else {
            unreachable!()
        };
        // The other's tokens.
        options.credentials = elsewhere.credentials;
        let asked = fake.counts().encrypt;
        let failure = failure(&open(Options::CloudA(options)));
        assert_eq!(failure.kind, Kind::Credentials, "{failure}");
        assert!(
            failure
                .message
                .contains("does not take the access token (401)"),
            "{failure}"
        );
        assert!(failure.message.contains(told), "{failure}");
        assert_eq!(fake.counts().encrypt, asked + 2);
    }
}

#[test]
fn a_token_endpoint_that_refuses_is_told_with_the_setting() {
    for source in ["service_account.json", "authorized_user.json"] {
        let fake = FakeKms::start();
        let kms = open(fake.options_with(Some(source)));
        for (status, error, kind, sentence) in [
            (
                400,
                "invalid_grant",
                Kind::Credentials,
                "400 invalid_grant: its key was deleted",
            ),
            (
                401,
                "invalid_client",
                Kind::Credentials,
                "401 invalid_client: make new ones",
            ),
            (503, "", Kind::Unreachable, "is out of order now (503)"),
        ] {
            fake.refuse_tokens(status, error);
            let failure = failure(&kms);
            assert_eq!(failure.kind, kind, "{failure}");
            for part in [sentence, "http://127.0.0.1", "/token"] {
                assert!(failure.message.contains(part), "{failure} lacks {part}");
            }
            if kind == Kind::Credentials {
                assert!(failure.message.contains("SVC_SECRETS_KMS_CREDENTIALS_PATH"));
            }
            assert!(!failure.message.contains("s3cret"), "{failure}");
        }
        fake.mend();
        kms.wrap(&DATA_KEY, AAD).unwrap();
    }
}

#[test]
fn a_metadata_server_that_is_none_or_refuses_is_told() {
    let fake = FakeKms::start();
    let kms = open(fake.options_with(None));
    let tell = || {
        let failure = failure(&kms);
        assert!(
            failure
                .message
                .contains("SVC_SECRETS_KMS_CREDENTIALS_PATH is not set")
        );
        (failure.kind, failure.message)
    };
    fake.forget_flavor();
    let (kind, message) = tell();
    assert_eq!(kind, Kind::Credentials);
    assert!(message.contains("does not answer like one"), "{message}");
    fake.mend();
    fake.refuse_tokens(404, "");
    let (kind, message) = tell();
    assert_eq!(kind, Kind::Credentials);
    assert!(
        message.contains("knows no service account (404)"),
        "{message}"
    );
    fake.refuse_tokens(503, "");
    assert_eq!(tell().0, Kind::Unreachable);
    fake.mend();
    kms.wrap(&DATA_KEY, AAD).unwrap();
    drop(fake);
    let elsewhere = FakeKms::start().options_with(None);
    let failure = failure(&open(elsewhere));
    assert_eq!(failure.kind, Kind::Credentials, "{failure}");
    assert!(
        failure.message.contains("gives none: No connection"),
        "{failure}"
    );
}

#[test]
fn the_time_for_credentials_is_part_of_the_calls_time() {
    let fake = FakeKms::start();
    let kms = open(fake.options());
    fake.hold_tokens(true);
    let began = std::time::Instant::now();
    let failure = failure(&kms);
    assert_eq!(failure.kind, Kind::Timeout, "{failure}");
    assert!(
        failure
            .message
            .contains("/token of Google Cloud gives no access token"),
        "{failure}"
    );
    assert!(
        began.elapsed() >= Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(fake.counts().encrypt, 0);
    fake.hold_tokens(false);
    kms.wrap(&DATA_KEY, AAD).unwrap();
}

#[test]
fn credentials_that_are_no_use_are_told_at_the_start() {
    let fake = FakeKms::start();
    let start = || {
        let outbound = Outbound::new(outbound::Options::default()).unwrap();
        Kms::new(fake.options(), &outbound, &Clock::system())
    };
    assert!(start().is_ok());
    let good = std::fs::read_to_string(fake.file("service_account.json")).unwrap();
    for (content, sentence) in [
        ("{}", "the file is not JSON with a type"),
        (
            r#"{"type":"external_account"}"#,
            "has the type external_account, which is not supported",
        ),
        (
            &good.replace("BEGIN PRIVATE", "BEGIN OTHER"),
            "private_key that is not PKCS#8 PEM",
        ),
        (&good.replace("http://", "file://"), "has a bad token_uri"),
    ] {
        std::fs::write(fake.file("service_account.json"), content).unwrap();
        let error = start().err().unwrap().to_string();
        assert!(error.contains(sentence), "{error}");
        assert!(
            error.contains("SVC_SECRETS_KMS_CREDENTIALS_PATH"),
            "{error}"
        );
    }
}

#[test]
fn a_file_of_credentials_is_read_again_for_each_token() {
    let fake = FakeKms::start();
    let kms = open(fake.options());
    kms.wrap(&DATA_KEY, AAD).unwrap();
    let file = fake.file("service_account.json");
    let good = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    kms.wrap(&DATA_KEY, AAD).unwrap();
    fake.revoke_tokens();
    let failure = failure(&kms);
    assert_eq!(failure.kind, Kind::Credentials);
    assert!(
        failure.message.contains("cannot be read: No such file"),
        "{failure}"
    );
    std::fs::write(&file, good).unwrap();
    kms.wrap(&DATA_KEY, AAD).unwrap();
}
