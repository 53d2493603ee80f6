//! Tests of the license key. Their keys are made when they run.

use super::*;
use crate::ids::Clock;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use proptest::prelude::*;

/// A fresh key pair: the private key as PEM, the public key's bytes.
pub(in crate::config) fn key_pair() -> (String, [u8; 32]) {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).unwrap();
    let key = SigningKey::from_bytes(&seed);
    let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap().to_string();
    (pem, key.verifying_key().to_bytes())
}

/// Claims that begin now and end after so many days.
pub(in crate::config) fn claims(days: i64) -> Claims {
    let now = Clock::system().now();
    Claims {
        v: 1,
        id: "lic-1".to_owned(),
        licensee: "Example Works".to_owned(),
        issued_at: now - Duration::days(400),
        expires_at: now + Duration::days(days),
        grace_days: 0,
        features: Vec::new(),
    }
}

fn now() -> OffsetDateTime {
    Clock::system().now()
}

fn signed_json(json: &str, key: &SigningKey) -> String {
    let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
    let signature = key.sign(signed.as_bytes()).to_bytes();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_signed_key_holds_under_its_public_key_alone() {
    let (pem, public) = key_pair();
    let (_, other) = key_pair();
    let text = sign(&claims(100), &pem).unwrap();
    assert!(text.starts_with(PREFIX));
    let held = verify(&text, &TrustedKeys::of(&[other, public]), now()).unwrap();
    assert_eq!(held.licensee, "Example Works");
    let fault = verify(&text, &TrustedKeys::of(&[other]), now()).unwrap_err();
    assert_eq!(fault, Fault::BadSignature);
}

/// The set that a build trusts is what its file says, and a key that a test makes is not in it.
#[test]
fn a_build_trusts_the_keys_of_its_file_and_no_test_key() {
    let text = std::fs::read_to_string(COMPILED_IN_FROM).unwrap();
    let of_file: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_lowercase)
        .collect();
    let hex = |key: &[u8; 32]| key.map(|byte| format!("{byte:02x}")).concat();
    let compiled_in = TrustedKeys::compiled_in();
    assert_eq!(compiled_in.0.iter().map(hex).collect::<Vec<_>>(), of_file);
    for key in &compiled_in.0 {
        assert!(!VerifyingKey::from_bytes(key).unwrap().is_weak());
    }
    let (pem, _) = key_pair();
    let text = sign(&claims(100), &pem).unwrap();
    assert_eq!(verify(&text, &compiled_in, now()), Err(Fault::BadSignature));
}

/// If this fails, code of the service has found a way to trust keys that the build was not given.
#[test]
fn no_code_of_the_service_adds_a_trusted_key() {
    fn sources(dir: &std::path::Path, into: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, into);
            } else if path.extension().is_some_and(|end| end == "rs") {
                into.push(path);
            }
        }
    }
    let mut files = Vec::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    sources(std::path::Path::new(root), &mut files);
    for path in files {
        let name = path.to_string_lossy();
        if name.contains("tests") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let served = text.split("#[cfg(test)]").next().unwrap();
        assert!(!served.contains("TrustedKeys::of("), "{name}");
        let calls = served.matches("load_trusting(").count();
        let allowed = if name.ends_with("src/config/mod.rs") {
            2
        } else {
            0
        };
        assert_eq!(calls, allowed, "{name}");
    }
    let own = include_str!("mod.rs");
    let served = own.split("#[cfg(test)]").next().unwrap();
    assert!(!served.contains("cfg(") && !served.contains("cfg!("));
    assert!(!served.contains("option_env!") && !served.contains("std::env"));
}

#[test]
fn a_license_is_valid_exactly_as_long_as_its_own_text_says() {
    let (pem, public) = key_pair();
    let trusted = TrustedKeys::of(&[public]);
    for grace_days in [0, 13] {
        let claims = Claims {
            grace_days,
            ..claims(100)
        };
        let (end, grace) = (claims.expires_at, Duration::days(grace_days.into()));
        let mut terms = vec![
            (claims.issued_at - Duration::days(2), Term::NotYet, false),
            (claims.issued_at - Duration::hours(23), Term::Valid, false),
            (end - Duration::days(31), Term::Valid, false),
            (end - Duration::days(30), Term::EndsSoon, true),
            (end - Duration::SECOND, Term::EndsSoon, true),
            (end + grace, Term::Expired, true),
        ];
        if grace_days > 0 {
            terms.push((end, Term::Grace, true));
            terms.push((end + grace - Duration::SECOND, Term::Grace, true));
        }
        let text = sign(&claims, &pem).unwrap();
        for (at, term, warns) in terms {
            assert_eq!(claims.term(at), term);
            assert_eq!(claims.warning(at).is_some(), warns);
            let fault = match term {
                Term::NotYet => Some(Fault::NotYet),
                Term::Expired => Some(Fault::Expired),
                Term::Valid | Term::EndsSoon | Term::Grace => None,
            };
            assert_eq!(verify(&text, &trusted, at).err(), fault);
        }
    }
}

#[test]
fn a_grace_is_part_of_the_signed_text() {
    let key = SigningKey::from_bytes(&[7; 32]);
    let trusted = TrustedKeys::of(&[key.verifying_key().to_bytes()]);
    let with = |more: &str| {
        let json = format!(
            r#"{{"v":1,"id":"a","licensee":"b","issuedAt":"2026-01-01T00:00:00Z","expiresAt":"2026-02-01T00:00:00Z"{more}}}"#
        );
        let at = rfc3339::parse("2026-02-08T00:00:00Z").unwrap();
        verify(&signed_json(&json, &key), &trusted, at).map(|claims| claims.grace_days)
    };
    assert_eq!(with(r#","graceDays":10"#), Ok(10));
    for none in ["", r#","graceDays":0"#, r#","graceDays":7"#] {
        assert_eq!(with(none), Err(Fault::Expired), "{none}");
    }
    for wrong in ["-1", "1.5", "367", "99999", "null", "\"10\""] {
        assert_eq!(
            with(&format!(r#","graceDays":{wrong}"#)),
            Err(Fault::Malformed),
            "{wrong}"
        );
    }
}

#[test]
fn inspect_shows_what_does_not_hold() {
    let (pem, public) = key_pair();
    let text = sign(&claims(-20), &pem).unwrap();
    let shown = inspect(&text, &TrustedKeys::of(&[public]), now()).unwrap();
    assert!(shown.signature_valid);
    assert_eq!(shown.term, Term::Expired);
    let shown = inspect(&text, &TrustedKeys::default(), now()).unwrap();
    assert!(!shown.signature_valid);
    let json = serde_json::to_value(&shown).unwrap();
    assert_eq!(json["term"], "expired");
    assert_eq!(json["claims"]["licensee"], "Example Works");
}

#[test]
fn claims_that_are_not_understood_are_refused() {
    let (_, _) = key_pair();
    let key = SigningKey::from_bytes(&[7; 32]);
    let trusted = TrustedKeys::of(&[key.verifying_key().to_bytes()]);
    let base = r#""id":"a","licensee":"b","issuedAt":"2026-01-01T00:00:00Z""#;
    for (json, fault) in [
        ("[]".to_owned(), Fault::Malformed),
        ("not json".to_owned(), Fault::Malformed),
        (r#"{"v":2}"#.to_owned(), Fault::UnknownVersion),
        (format!(r#"{{"v":1,{base}}}"#), Fault::Malformed),
        (
            format!(r#"{{"v":1,{base},"expiresAt":"2025-01-01T00:00:00Z"}}"#),
            Fault::Malformed,
        ),
        (
            format!(r#"{{"v":1,{base},"id":"c","expiresAt":"2099-01-01T00:00:00Z"}}"#),
            Fault::Malformed,
        ),
    ] {
        assert_eq!(
            verify(&signed_json(&json, &key), &trusted, now()),
            Err(fault),
            "{json}"
        );
    }
    let known = format!(r#"{{"v":1,"later":[1],{base},"expiresAt":"2099-01-01T00:00:00Z"}}"#);
    assert!(verify(&signed_json(&known, &key), &trusted, now()).is_ok());
}

/// openssl writes PKCS#8 without the public key (version 1 of RFC 5958), other tools with it.
#[test]
fn both_forms_of_a_private_key_sign() {
    use base64::engine::general_purpose::STANDARD;
    let mut der = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".to_vec();
    der.extend([7; 32]);
    let label = "PRIVATE KEY";
    let body = STANDARD.encode(der);
    let short = format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
    let key = SigningKey::from_bytes(&[7; 32]);
    let long = key.to_pkcs8_pem(LineEnding::LF).unwrap();
    assert!(long.len() > short.len());
    let claims = claims(100);
    assert_eq!(sign(&claims, &short), sign(&claims, &long));
    assert!(sign(&claims, &short).is_ok());
}

#[test]
fn sign_refuses_what_no_server_would_take() {
    let (pem, _) = key_pair();
    assert_eq!(sign(&claims(1), "no key"), Err(Fault::BadSigningKey));
    for change in [
        |c: &mut Claims| c.v = 2,
        |c: &mut Claims| c.id.clear(),
        |c: &mut Claims| c.licensee = "x".repeat(201),
        |c: &mut Claims| c.expires_at = c.issued_at,
        |c: &mut Claims| c.grace_days = 367,
        |c: &mut Claims| c.features = vec!["x".to_owned(); 101],
    ] {
        let mut claims = claims(1);
        change(&mut claims);
        assert_eq!(sign(&claims, &pem), Err(Fault::BadClaims));
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}", tail in "[A-Za-z0-9_.-]{0,200}") {
        let trusted = TrustedKeys::compiled_in();
        for text in [text, format!("{PREFIX}{tail}")] {
            prop_assert!(verify(&text, &trusted, now()).is_err());
            prop_assert!(inspect(&text, &trusted, now()).is_err());
        }
    }

    #[test]
    fn a_changed_key_does_not_hold(at in 0usize..1000, to in "[A-Za-z0-9_.-]") {
        let key = SigningKey::from_bytes(&[7; 32]);
        let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
        let trusted = TrustedKeys::of(&[key.verifying_key().to_bytes()]);
        let text = sign(&claims(100), &pem).unwrap();
        let at = at % text.len();
        let changed = format!("{}{to}{}", &text[..at], &text[at + 1..]);
        prop_assert_eq!(verify(&changed, &trusted, now()).is_ok(), changed == text);
    }
}
