//! The vendor's own client (Python) against the service that the other tests use, so that it cannot
//! drift from what the vendor's service does; and what one client wraps, the other opens.

use super::{AAD, DATA_KEY, open};
use crate::harness::kms::{FakeKms, Fault};
use agent_runtime::secrets::kms::{DEADLINE, Wrapped};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const KEY: &str = "projects/test/locations/global/keyRings/ring/cryptoKeys/key";

/// The vendor's client. It ends with the test.
struct Vendor {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Vendor {
    fn start(fake: &FakeKms) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/kms/client.py");
        let mut child = Command::new(python())
            .arg(script)
            .arg(fake.url().trim_start_matches("http://"))
            .arg(fake.file("service_account.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            orders: child.stdin.take(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    #[track_caller]
    fn asks(&mut self, order: &Value) -> Value {
        let orders = self.orders.as_mut().unwrap();
        writeln!(orders, "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no answer to {order}: {line:?}"))
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        // The end of its input is the end of its loop.
        drop(self.orders.take());
        self.child.wait().unwrap();
    }
}

/// The Python that tests/setup/kms-client made.
fn python() -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/setup");
    let parts = Command::new(setup.join("where")).output().unwrap();
    let parts = PathBuf::from(String::from_utf8(parts.stdout).unwrap().trim());
    let python = parts.join("kms-client/bin/python");
    assert!(
        python.exists(),
        "The vendor's client is not set up: run tests/setup/kms-client"
    );
    python
}

fn encrypt() -> Value {
    json!({
        "deed": "encrypt",
        "name": KEY,
        "plaintext": STANDARD.encode(DATA_KEY),
        "aad": STANDARD.encode(AAD),
    })
}

fn decrypt(bytes: &[u8]) -> Value {
    json!({
        "deed": "decrypt",
        "name": KEY,
        "ciphertext": STANDARD.encode(bytes),
        "aad": STANDARD.encode(AAD),
    })
}

fn with(mut order: Value, field: &str, value: impl Into<Value>) -> Value {
    order[field] = value.into();
    order
}

#[test]
fn the_vendors_client_reads_every_field_of_an_answer() {
    let fake = FakeKms::start();
    let mut vendor = Vendor::start(&fake);
    for source in ["service_account", "metadata", "authorized_user"] {
        let mut said = vendor.asks(&with(encrypt(), "credentials", source));
        let wrapped = said["ciphertext"].take();
        let expected = json!({
            "name": FakeKms::version(1),
            "ciphertext": null,
            "checksumIsRight": true,
            "verifiedPlaintext": true,
            "verifiedAad": true,
            "protectionLevel": "SOFTWARE",
        });
        assert_eq!(said, expected, "{source}");
        let bytes = STANDARD.decode(wrapped.as_str().unwrap()).unwrap();
        let expected = json!({
            "plaintext": STANDARD.encode(DATA_KEY),
            "checksumIsRight": true,
            "usedPrimary": true,
            "protectionLevel": "SOFTWARE",
        });
        assert_eq!(vendor.asks(&decrypt(&bytes)), expected, "{source}");
    }
    // The tokens of the three sources were asked for as the vendor asks for them.
    assert_eq!(fake.counts().tokens, 3);
}

#[test]
fn what_one_client_wraps_the_other_opens() {
    let fake = FakeKms::start();
    let (mut vendor, kms) = (Vendor::start(&fake), open(fake.options()));
    let ours = kms.wrap(&DATA_KEY, AAD).unwrap();
    let opened = vendor.asks(&decrypt(&ours.bytes));
    assert_eq!(opened["plaintext"], STANDARD.encode(DATA_KEY));
    let theirs = vendor.asks(&encrypt());
    let theirs = Wrapped {
        key: theirs["name"].as_str().unwrap().to_owned(),
        bytes: STANDARD
            .decode(theirs["ciphertext"].as_str().unwrap())
            .unwrap(),
    };
    assert_eq!(*kms.unwrap(&theirs, AAD, DEADLINE).unwrap(), DATA_KEY);
    fake.rotate();
    let opened = vendor.asks(&decrypt(&ours.bytes));
    assert_eq!(opened["plaintext"], STANDARD.encode(DATA_KEY));
    assert_eq!(opened["usedPrimary"], false);
    let theirs = vendor.asks(&encrypt());
    assert_eq!(
        kms.wrap(&DATA_KEY, AAD).unwrap().key,
        theirs["name"].as_str().unwrap()
    );
}

#[test]
fn the_vendors_client_knows_every_error() {
    let fake = FakeKms::start();
    let mut vendor = Vendor::start(&fake);
    let wrapped = vendor.asks(&encrypt());
    let bytes = STANDARD
        .decode(wrapped["ciphertext"].as_str().unwrap())
        .unwrap();
    let mut raises = |order: Value, exception: &str, message: &str| {
        let said = vendor.asks(&order);
        assert_eq!(said["exception"], exception, "{said}");
        assert!(
            said["message"].as_str().unwrap().contains(message),
            "{said}"
        );
    };
    let other_aad = with(decrypt(&bytes), "aad", STANDARD.encode("other"));
    raises(other_aad, "InvalidArgument", "Decryption failed");
    raises(decrypt(b"nothing"), "InvalidArgument", "Decryption failed");
    raises(
        with(encrypt(), "spoil", 1),
        "InvalidArgument",
        "plaintext_crc32c did not match",
    );
    let spoilt = with(decrypt(&bytes), "spoil", 1);
    raises(spoilt, "InvalidArgument", "ciphertext_crc32c did not match");
    raises(
        with(encrypt(), "name", format!("{KEY}2")),
        "NotFound",
        "not found",
    );
    for (status, name, exception) in [
        (403, "PERMISSION_DENIED", "PermissionDenied"),
        (429, "RESOURCE_EXHAUSTED", "ResourceExhausted"),
        (503, "UNAVAILABLE", "ServiceUnavailable"),
    ] {
        fake.fault(Fault::Refuse(status, name), 1);
        raises(encrypt(), exception, "s3cret");
    }
    fake.set_state(1, "DISABLED");
    let message = "cryptoKeyVersions/1 is not enabled, current state is: DISABLED.";
    raises(encrypt(), "FailedPrecondition", message);
    raises(decrypt(&bytes), "FailedPrecondition", message);
    fake.set_state(1, "ENABLED");
}

#[test]
fn the_vendors_client_renews_a_token_that_is_taken_no_more() {
    let fake = FakeKms::start();
    let mut vendor = Vendor::start(&fake);
    let order = with(encrypt(), "credentials", "authorized_user");
    assert_eq!(vendor.asks(&order)["verifiedPlaintext"], true);
    fake.revoke_tokens();
    assert_eq!(vendor.asks(&order)["verifiedPlaintext"], true);
    let counts = fake.counts();
    assert_eq!((counts.tokens, counts.encrypt), (2, 3));
}
