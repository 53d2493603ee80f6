//! What may be wrong with a provider, or with who pretends to be one: each is refused, with a code of its own.

use super::{CALLBACK, Fixture, check_fault, is_refused, refused};
use crate::harness::identity_provider::{IdentityProvider, Instead, Signer};
use agent_runtime::config::Origin;
use agent_runtime::ids::Clock;
use agent_runtime::oidc::{Code, Issuer, Oidc};
use agent_runtime::outbound::{self, HostAccess, Outbound, Policy};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const DOCUMENT: &str = "/.well-known/openid-configuration";

/// A document is known for an hour, and what was wrong with it for a second.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3601);

fn instead(path: &'static str, status: u16, body: &str) -> impl FnOnce(&mut super::Says) {
    let answer = Instead::Answer(status, None, body.to_owned());
    move |says| drop(says.instead.insert(path, answer))
}

fn document(name: &'static str, value: Value) -> impl FnOnce(&mut super::Says) {
    move |says| drop(says.document.insert(name.to_owned(), value))
}

fn claim(name: &'static str, value: Value) -> impl FnOnce(&mut super::Says) {
    move |says| drop(says.claims.insert(name.to_owned(), value))
}

fn header(name: &'static str, value: Value) -> impl FnOnce(&mut super::Says) {
    move |says| drop(says.header.insert(name.to_owned(), value))
}

#[test]
fn an_issuer_is_the_one_that_its_document_names_byte_for_byte() {
    for other in ["https://id.plant.example", "http://127.0.0.1", ""] {
        is_refused(
            Code::IssuerDiffers,
            "is configured",
            document("issuer", json!(other)),
        );
    }
    // With a slash at the end it is another one, and the document of both has one address.
    let fixture = Fixture::start();
    let with_slash = format!("{}/", fixture.provider.issuer());
    let issuer = Issuer {
        issuer: &with_slash,
        ..fixture.issuer()
    };
    let fault = fixture.oidc.begin(&issuer, CALLBACK, false).unwrap_err();
    assert_eq!(fault.code(), Code::IssuerDiffers, "{fault}");
    fixture.clock.advance(FORGOTTEN_AFTER);
    fixture.says(document("issuer", json!(with_slash)));
    fixture.oidc.begin(&issuer, CALLBACK, false).unwrap();
}

#[test]
fn a_document_that_is_none_is_refused() {
    for body in ["", "<html>", "[]", r#"{"issuer": 7}"#, r#"{"issuer": "a"}"#] {
        is_refused(
            Code::AnswerMalformed,
            "is not JSON of the form",
            instead(DOCUMENT, 200, body),
        );
    }
    is_refused(
        Code::AnswerMalformed,
        "HTTP 404",
        instead(DOCUMENT, 404, "{}"),
    );
    is_refused(Code::Unavailable, "HTTP 503", instead(DOCUMENT, 503, "{}"));
    is_refused(
        Code::AnswerMalformed,
        "is not JSON",
        document("token_endpoint", Value::Null),
    );
    is_refused(Code::AnswerMalformed, "cannot be read", |says| {
        says.instead.insert(DOCUMENT, Instead::Huge);
    });
    let elsewhere = Some("http://127.0.0.1:9/".to_owned());
    is_refused(Code::Redirected, "redirect", |says| {
        says.instead
            .insert(DOCUMENT, Instead::Answer(301, elsewhere, String::new()));
    });
}

#[test]
fn every_endpoint_is_judged_as_the_issuer_was() {
    for name in [
        "authorization_endpoint",
        "token_endpoint",
        "jwks_uri",
        "userinfo_endpoint",
    ] {
        for url in [
            "https://id.plant.example/a",
            "ftp://127.0.0.1/a",
            "javascript:alert(1)",
            "/a",
            "http://a:b@127.0.0.1/",
        ] {
            is_refused(Code::EndpointRefused, name, document(name, json!(url)));
        }
    }
    // Those of a tenant's provider by what tenants may reach: the issuer's origin is opened, that of its keys is not.
    let fixture = Fixture::start();
    let outbound = Outbound::new(outbound::Options {
        host_access_origins: Origin::parse(fixture.provider.issuer())
            .into_iter()
            .collect(),
        ..Default::default()
    });
    let clock = fixture.clock.clone();
    let oidc = Oidc::new(outbound.unwrap(), clock, Duration::from_secs(30));
    let issuer = Issuer {
        policy: Policy::Tenant(HostAccess::Deployed),
        ..fixture.issuer()
    };
    oidc.begin(&issuer, CALLBACK, false).unwrap();
    for url in [
        "http://169.254.169.254/keys",
        "http://127.0.0.1:9/keys",
        "http://[::1]:9/keys",
    ] {
        fixture.clock.advance(FORGOTTEN_AFTER);
        fixture.says(document("jwks_uri", json!(url)));
        let fault = oidc.begin(&issuer, CALLBACK, false).unwrap_err();
        assert_eq!(fault.code(), Code::EndpointRefused, "{fault}");
    }
    assert_eq!(fixture.provider.asked(DOCUMENT), 4);
}

#[test]
fn a_token_that_is_not_signed_or_not_as_it_should_be_is_refused() {
    for algorithm in [
        "none", "None", "HS256", "RS384", "ES384", "RS512", "RS1", "", "Ed25519",
    ] {
        is_refused(
            Code::AlgorithmRefused,
            "RS256, PS256, ES256 and EdDSA",
            header("alg", json!(algorithm)),
        );
    }
    let fault = refused(header("alg", json!("Ed25519")));
    assert!(fault.sentence().contains("under the name EdDSA"), "{fault}");
    is_refused(Code::AlgorithmRefused, "", header("alg", json!(7)));
    is_refused(Code::AlgorithmRefused, "", header("alg", Value::Null));
    // No signature, and a good one under `none`.
    is_refused(Code::SignatureWrong, "", |says| {
        says.signature = Some(String::new())
    });
    is_refused(Code::AlgorithmRefused, "none", |says| {
        says.header.insert("alg".to_owned(), json!("none"));
        says.signature = Some(String::new());
    });
    // HMAC with the public key, under its own name and under the key's.
    for algorithm in ["HS256", "RS256"] {
        let fault = refused(|says| {
            says.signer = Signer::rsa("key-1", false);
            says.keys = vec![says.signer.listed()];
            says.is_forged = true;
            says.header.insert("alg".to_owned(), json!(algorithm));
        });
        let expected = match algorithm {
            "HS256" => Code::AlgorithmRefused,
            _ => Code::SignatureWrong,
        };
        assert_eq!(fault.code(), expected, "{fault}");
    }
    // A key of another family, and of another use.
    is_refused(Code::KeyUnknown, "", header("alg", json!("RS256")));
    is_refused(Code::KeyUnknown, "", |says| {
        says.keys[0]["use"] = json!("enc")
    });
    is_refused(Code::KeyUnknown, "", |says| {
        says.keys[0]["alg"] = json!("ES384")
    });
    is_refused(Code::KeyUnknown, "", |says| {
        says.keys[0]["key_ops"] = json!(["sign"])
    });
    // What has to be understood and is not.
    is_refused(
        Code::AnswerMalformed,
        "crit",
        header("crit", json!(["b64"])),
    );
    is_refused(Code::AnswerMalformed, "kid", header("kid", json!(7)));
    for token in ["", "a.b", "a.b.c", "a.b.c.d", "..", "e30.e30."] {
        let body = json!({"id_token": token}).to_string();
        let fault = refused(instead("/token", 200, &body));
        let codes = [Code::AnswerMalformed, Code::AlgorithmRefused];
        assert!(codes.contains(&fault.code()), "{token}: {fault}");
    }
    // A good signature over what are no claims.
    let fault = refused(|says| says.payload = Some("[]".to_owned()));
    assert_eq!(fault.code(), Code::AnswerMalformed, "{fault}");
    // Nobody else's signature.
    is_refused(Code::SignatureWrong, "does not fit", |says| {
        says.signer = Signer::ec("key-1")
    });
}

#[test]
fn claims_that_bind_a_token_have_to_be_there_and_of_their_type() {
    for name in ["iss", "sub", "aud", "exp", "iat", "nonce"] {
        is_refused(Code::ClaimWrong, name, claim(name, Value::Null));
        let types = [json!(true), json!({}), json!([7])];
        for value in types {
            is_refused(Code::ClaimWrong, name, claim(name, value));
        }
    }
    for (name, value) in [
        ("exp", json!("9999999999")),
        ("iat", json!("1700000000")),
        ("nbf", json!("1700000000")),
        ("exp", json!(1e300)),
        ("sub", json!("")),
        ("sub", json!("a".repeat(256))),
        ("nonce", json!("")),
        ("nonce", json!("another")),
        ("iss", json!("https://other.example")),
        ("aud", json!("another")),
        ("aud", json!(["another"])),
        ("aud", json!([])),
        ("aud", json!(vec!["agent-runtime"; 51])),
        ("azp", json!("another")),
        ("azp", json!(7)),
        ("email", json!(["ada@plant.example"])),
    ] {
        is_refused(Code::ClaimWrong, name, claim(name, value));
    }
    // Several audiences: the token is for whoever asked for it.
    let several = || claim("aud", json!(["another", "agent-runtime"]));
    is_refused(Code::ClaimWrong, "azp", several());
    let fixture = Fixture::start();
    fixture.says(several());
    fixture.says(claim("azp", json!("agent-runtime")));
    fixture.sign_in().unwrap();
    fixture.says(claim("aud", json!(["agent-runtime"])));
    fixture.sign_in().unwrap();
}

#[test]
fn a_token_is_of_now_by_the_injected_clock() {
    let now = Clock::system().now().unix_timestamp();
    is_refused(
        Code::TimeWrong,
        "in the future",
        claim("iat", json!(now + 90)),
    );
    is_refused(
        Code::TimeWrong,
        "in the future",
        claim("nbf", json!(now + 90)),
    );
    is_refused(Code::TimeWrong, "ago", claim("iat", json!(now - 700)));
    is_refused(Code::TimeWrong, "ended", claim("exp", json!(now - 90)));
    let fixture = Fixture::start();
    for (name, value) in [
        ("iat", now + 30),
        ("iat", now - 500),
        ("exp", now - 30),
        ("nbf", now + 30),
    ] {
        fixture.says(claim(name, json!(value)));
        fixture
            .sign_in()
            .unwrap_or_else(|fault| panic!("{name} {value}: {fault}"));
        fixture.says(|says| drop(says.claims.remove(name)));
    }
    // This host's clock is 90 s behind, then ahead.
    fixture.clock.set_back(Duration::from_secs(90));
    let fault = fixture.sign_in().unwrap_err();
    assert_eq!(fault.code(), Code::TimeWrong, "{fault}");
    assert!(fault.remedy().contains("clocks"), "{}", fault.remedy());
    fixture.clock.advance(Duration::from_secs(180));
    fixture.sign_in().unwrap();
}

#[test]
fn a_code_is_used_once_and_by_whoever_began() {
    let fixture = Fixture::start();
    let (url, flow) = fixture.begin().unwrap();
    let code = fixture.provider.opened(&url).code();
    fixture.complete(&flow, &code, None).unwrap();
    let fault = fixture.complete(&flow, &code, None).unwrap_err();
    assert_eq!(fault.code(), Code::CodeRefused, "{fault}");
    assert!(fault.sentence().contains("invalid_grant"), "{fault}");
    // Somebody else's code: the verifier is another, and so would the nonce be.
    let (url, own) = fixture.begin().unwrap();
    let (others, _) = fixture.begin().unwrap();
    drop(fixture.provider.opened(&url));
    let code = fixture.provider.opened(&others).code();
    let fault = fixture.complete(&own, &code, None).unwrap_err();
    assert_eq!(fault.code(), Code::CodeRefused, "{fault}");
    let fault = fixture.complete(&own, "made-up", None).unwrap_err();
    assert_eq!(fault.code(), Code::CodeRefused);
}

#[test]
fn the_token_endpoint_answers_itself() {
    // A redirect would take code, verifier and secret with it.
    let stolen = IdentityProvider::start();
    let elsewhere = format!("{}/token", stolen.issuer());
    for status in [301, 302, 303, 307, 308] {
        let to = Some(elsewhere.clone());
        is_refused(Code::Redirected, "redirect", |says| {
            says.instead
                .insert("/token", Instead::Answer(status, to, String::new()));
        });
    }
    assert_eq!(stolen.asked("/token"), 0);
    is_refused(Code::ClientRefused, "invalid_client", |says| {
        let body = r#"{"error": "invalid_client", "error_description": "p%sw&rd é"}"#;
        says.instead
            .insert("/token", Instead::Answer(401, None, body.to_owned()));
    });
    is_refused(Code::Unavailable, "HTTP 502", instead("/token", 502, ""));
    is_refused(
        Code::AnswerMalformed,
        "HTTP 404",
        instead("/token", 404, ""),
    );
    for body in ["", "[]", r#"{"id_token": 7}"#, r#"{"access_token": "a"}"#] {
        is_refused(Code::AnswerMalformed, "", instead("/token", 200, body));
    }
    is_refused(Code::AnswerMalformed, "", |says| {
        drop(says.instead.insert("/token", Instead::Huge))
    });
}

#[test]
fn an_answer_of_another_provider_is_noticed_before_the_code_goes_anywhere() {
    is_refused(Code::IssDiffers, "https://evil.example", |says| {
        says.iss = Some("https://evil.example".to_owned());
    });
    let promise = "authorization_response_iss_parameter_supported";
    is_refused(Code::IssDiffers, "promises", document(promise, json!(true)));
    let fixture = Fixture::start();
    fixture.says(|says| says.iss = Some("https://evil.example".to_owned()));
    fixture.sign_in().unwrap_err();
    assert_eq!(fixture.provider.asked("/token"), 0);
    let own = fixture.provider.issuer().to_owned();
    fixture.says(|says| says.iss = Some(own));
    fixture.says(document(promise, json!(true)));
    fixture.sign_in().unwrap();
}

#[test]
fn all_requests_together_have_one_deadline() {
    for path in [DOCUMENT, "/token", "/keys", "/userinfo"] {
        let fixture = Fixture::with_timeout(Duration::from_millis(1500));
        fixture.says(|says| {
            says.userinfo = Some(json!({"sub": "subject-1"}));
            says.claims.insert("email".to_owned(), Value::Null);
            says.instead.insert(path, Instead::Hang);
        });
        // The provider is silent until the test ends: without a deadline no sign-in would.
        let fault = fixture.sign_in().unwrap_err();
        assert_eq!(fault.code(), Code::Unavailable, "{path}: {fault}");
    }
    // Completing takes three requests, of which each for itself is in time.
    let fixture = Fixture::with_timeout(Duration::from_millis(1500));
    fixture.says(|says| {
        says.userinfo = Some(json!({"sub": "subject-1"}));
        says.claims.insert("email".to_owned(), Value::Null);
        says.delay = Duration::from_millis(700);
    });
    let fault = fixture.sign_in().unwrap_err();
    assert_eq!(fault.code(), Code::Unavailable, "{fault}");
}

#[test]
fn a_provider_that_is_away_is_said_to_be() {
    let fixture = Fixture::start();
    let issuer = {
        let gone = IdentityProvider::start();
        gone.issuer().to_owned()
    };
    let issuer = Issuer {
        issuer: &issuer,
        ..fixture.issuer()
    };
    let fault = fixture.oidc.begin(&issuer, CALLBACK, false).unwrap_err();
    assert_eq!(fault.code(), Code::Unavailable, "{fault}");
    check_fault(&fault, &[]);
    assert!(fault.remedy().contains("SVC_OUTBOUND_CA_PATH"));
}

#[test]
fn a_document_that_cannot_be_read_is_not_asked_for_again_within_a_second() {
    let fixture = Fixture::start();
    let broken = Instead::Answer(503, None, String::new());
    fixture.says(|says| drop(says.instead.insert(DOCUMENT, broken)));
    let second = Duration::from_secs(1);
    // On a busy machine two tries may be a second apart: then they say nothing.
    loop {
        let (began, asked) = (Instant::now(), fixture.provider.asked(DOCUMENT));
        let [first, again] = [(); 2].map(|()| fixture.begin().unwrap_err());
        assert_eq!(first, again);
        assert_eq!(again.code(), Code::Unavailable, "{again}");
        let more = fixture.provider.asked(DOCUMENT) - asked;
        if began.elapsed() < second {
            assert_eq!(more, 1);
            break;
        }
        fixture.clock.advance(second);
    }
    // Whoever mended it waits no longer.
    fixture.says(|says| says.instead.clear());
    fixture.clock.advance(second);
    fixture.sign_in().unwrap();
}
