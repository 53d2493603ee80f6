//! Sign-in at identity providers, the protocol alone: a provider that is a good one in each way that counts, and every row of
//! what may be wrong with one. What the server makes of it is in `provider_sign_in`.

mod faults;
mod keys;

use crate::harness::identity_provider::{
    CLIENT_ID, CLIENT_SECRET, IdentityProvider, Instead, Says, Signer,
};
use agent_runtime::ids::Clock;
use agent_runtime::oidc::{Claims, Code, Fault, Flow, Issuer, Oidc};
use agent_runtime::outbound::{self, HostAccess, Outbound, Policy};
use agent_runtime::secret::Secret;
use serde_json::{Value, json};
use std::time::Duration;

const CALLBACK: &str = "https://agents.example.com/sign-in/callback/1";

/// One that signs people in, and the provider at which it does.
struct Fixture {
    provider: IdentityProvider,
    oidc: Oidc,
    clock: Clock,
    secret: Secret,
    scopes: Vec<String>,
    groups_claim: Option<&'static str>,
}

impl Fixture {
    fn start() -> Self {
        Self::with_timeout(Duration::from_secs(30))
    }

    fn with_timeout(timeout: Duration) -> Self {
        let clock = Clock::system();
        let outbound = Outbound::new(outbound::Options::default()).unwrap();
        Self {
            provider: IdentityProvider::start(),
            oidc: Oidc::new(outbound, clock.clone(), timeout),
            clock,
            secret: Secret::new(CLIENT_SECRET),
            scopes: Vec::new(),
            groups_claim: None,
        }
    }

    fn issuer(&self) -> Issuer<'_> {
        let is_public = self.provider.says().is_public;
        Issuer {
            issuer: self.provider.issuer(),
            client_id: CLIENT_ID,
            client_secret: (!is_public).then_some(&self.secret),
            scopes: &self.scopes,
            groups_claim: self.groups_claim,
            policy: Policy::Operator,
        }
    }

    fn begin(&self) -> Result<(String, Flow), Fault> {
        self.oidc.begin(&self.issuer(), CALLBACK, false)
    }

    /// What a person's sign-in comes to.
    fn sign_in(&self) -> Result<Claims, Fault> {
        let (url, flow) = self.begin()?;
        let back = self.provider.opened(&url);
        assert_eq!(back.value("state").as_ref(), Some(&flow.state));
        self.complete(&flow, &back.code(), back.value("iss").as_deref())
    }

    fn complete(&self, flow: &Flow, code: &str, iss: Option<&str>) -> Result<Claims, Fault> {
        let done = self
            .oidc
            .complete(&self.issuer(), CALLBACK, flow, code, iss);
        if let Err(fault) = &done {
            check_fault(
                fault,
                &[
                    code,
                    flow.nonce.expose(),
                    flow.verifier.expose(),
                    CLIENT_SECRET,
                ],
            );
        }
        done
    }

    fn says(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.provider.says());
    }
}

/// A fault is a sentence, says what to do, and repeats no secret.
#[track_caller]
fn check_fault(fault: &Fault, secrets: &[&str]) {
    assert!(fault.sentence().ends_with('.'), "{fault}");
    assert!(fault.remedy().ends_with('.'), "{fault:?}");
    assert!(!fault.code().text().is_empty());
    for secret in secrets {
        let told = format!("{fault:?}");
        assert!(!told.contains(secret), "{told} has a secret");
    }
}

/// What comes of a sign-in at a provider that is changed in this way.
#[track_caller]
fn refused(change: impl FnOnce(&mut Says)) -> Fault {
    let fixture = Fixture::start();
    fixture.says(change);
    fixture.sign_in().expect_err("the sign-in was refused")
}

#[track_caller]
fn is_refused(code: Code, told: &str, change: impl FnOnce(&mut Says)) {
    let fault = refused(change);
    assert_eq!(fault.code(), code, "{fault}");
    assert!(fault.sentence().contains(told), "{fault}");
}

#[test]
fn a_person_signs_in_and_the_provider_says_who_it_is() {
    let fixture = Fixture::start();
    let claims = fixture.sign_in().unwrap();
    let expected = Claims {
        subject: "subject-1".to_owned(),
        email: Some("ada@plant.example".to_owned()),
        email_vouched: true,
        name: Some("Ada".to_owned()),
        groups: None,
        groups_left_out: false,
    };
    assert_eq!(claims, expected);
    let (authorization, form) = fixture.provider.token_call();
    // Form-encoded before it is base64 (OAuth 2.0, section 2.3.1).
    let expected = "Basic YWdlbnQtcnVudGltZTpwJTI1c3clMjZyZCslQzMlQTk=";
    assert_eq!(authorization.as_deref(), Some(expected));
    assert_eq!(form["grant_type"], "authorization_code");
    assert_eq!(form["redirect_uri"], CALLBACK);
    assert!(!form.contains_key("client_id") && !form.contains_key("client_secret"));
    assert_eq!(form["code_verifier"].len(), 43);
    // Another sign-in asks for nothing that is known.
    fixture.sign_in().unwrap();
    assert_eq!(
        fixture.provider.asked("/.well-known/openid-configuration"),
        1
    );
    assert_eq!(fixture.provider.asked("/keys"), 1);
    assert_eq!(fixture.provider.asked("/token"), 2);
    let (requests, took) = fixture.oidc.asked();
    assert_eq!(requests, 4);
    assert!(took > Duration::ZERO);
}

#[test]
fn the_request_has_all_that_binds_the_answer_to_it() {
    let mut fixture = Fixture::start();
    fixture.scopes = ["groups", "email"].map(str::to_owned).into();
    let (first, flow) = fixture.begin().unwrap();
    let url = url::Url::parse(&first).unwrap();
    let value = |name: &str| {
        let mut pairs = url.query_pairs();
        pairs
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.into_owned())
    };
    assert_eq!(
        value("scope").as_deref(),
        Some("openid email profile groups")
    );
    assert_eq!(value("state"), Some(flow.state.clone()));
    assert_eq!(value("nonce").as_deref(), Some(flow.nonce.expose()));
    assert_eq!(value("redirect_uri").as_deref(), Some(CALLBACK));
    assert_eq!(value("prompt"), None);
    assert!(
        !first.contains(flow.verifier.expose()),
        "the verifier stays here"
    );
    let (again, other) = fixture
        .oidc
        .begin(&fixture.issuer(), CALLBACK, true)
        .unwrap();
    assert!(again.ends_with("&prompt=select_account"), "{again}");
    assert!(
        flow.state != other.state && flow.nonce != other.nonce && flow.verifier != other.verifier
    );
}

#[test]
fn every_algorithm_that_is_taken_verifies_and_a_changed_byte_does_not() {
    for signer in [
        || Signer::ec("k"),
        || Signer::ed("k"),
        || Signer::rsa("k", false),
        || Signer::rsa("k", true),
    ] {
        let fixture = Fixture::start();
        fixture.says(|says| {
            says.signer = signer();
            says.keys = vec![says.signer.listed()];
        });
        let algorithm = signer().algorithm();
        fixture
            .sign_in()
            .unwrap_or_else(|fault| panic!("{algorithm}: {fault}"));
        let other = "A".repeat(match algorithm {
            "RS256" | "PS256" => 342,
            _ => 86,
        });
        fixture.says(|says| says.signature = Some(other));
        let fault = fixture.sign_in().unwrap_err();
        assert_eq!(fault.code(), Code::SignatureWrong, "{algorithm}: {fault}");
    }
}

#[test]
fn a_client_shows_its_secret_as_the_provider_wants_it() {
    let methods = "token_endpoint_auth_methods_supported";
    for (offered, in_body) in [
        (json!(["client_secret_post"]), true),
        (json!(["client_secret_post", "client_secret_basic"]), false),
        (json!(["private_key_jwt"]), false),
        (json!([]), false),
    ] {
        let fixture = Fixture::start();
        fixture.says(|says| drop(says.document.insert(methods.to_owned(), offered.clone())));
        fixture.sign_in().unwrap();
        let (authorization, form) = fixture.provider.token_call();
        assert_eq!(authorization.is_none(), in_body, "{offered}");
        assert_eq!(form.contains_key("client_secret"), in_body, "{offered}");
    }
    let public = Fixture::start();
    public.says(|says| says.is_public = true);
    public.sign_in().unwrap();
    let (authorization, form) = public.provider.token_call();
    assert_eq!(
        (authorization, form["client_id"].as_str()),
        (None, CLIENT_ID)
    );
    assert!(!form.contains_key("client_secret"));
}

#[test]
fn userinfo_has_what_the_token_lacks() {
    let mut fixture = Fixture::start();
    fixture.groups_claim = Some("groups");
    fixture.says(|says| {
        says.claims.insert("email".to_owned(), Value::Null);
        says.userinfo = Some(json!({
            "sub": "subject-1", "email": "ada@plant.example", "email_verified": "true", "groups": ["ops"],
        }));
    });
    let claims = fixture.sign_in().unwrap();
    assert_eq!(claims.email.as_deref(), Some("ada@plant.example"));
    assert!(claims.email_vouched);
    assert_eq!(claims.groups, Some(vec!["ops".to_owned()]));
    // Where nothing lacks, nobody is asked.
    fixture.says(|says| {
        drop(says.claims.remove("email"));
        drop(says.claims.insert("groups".to_owned(), json!(["dev"])));
    });
    let asked = fixture.provider.asked("/userinfo");
    assert_eq!(
        fixture.sign_in().unwrap().groups,
        Some(vec!["dev".to_owned()])
    );
    assert_eq!(fixture.provider.asked("/userinfo"), asked);
    // Left out for their number: userinfo has no more of them.
    fixture.says(|says| {
        drop(says.claims.insert("groups".to_owned(), Value::Null));
        drop(
            says.claims
                .insert("_claim_names".to_owned(), json!({"groups": "src1"})),
        );
    });
    let claims = fixture.sign_in().unwrap();
    assert!(claims.groups_left_out && claims.groups.is_none());
    assert_eq!(fixture.provider.asked("/userinfo"), asked);
    // Of somebody else it is a fault.
    fixture.says(|says| {
        drop(says.claims.remove("_claim_names"));
        says.userinfo = Some(json!({"sub": "subject-2", "groups": ["root"]}));
    });
    assert_eq!(fixture.sign_in().unwrap_err().code(), Code::ClaimWrong);
}

#[test]
fn what_a_check_reads_counts_for_the_next_sign_in() {
    let fixture = Fixture::start();
    fixture.sign_in().unwrap();
    let moved = format!("{}/moved?kept=1", fixture.provider.issuer());
    fixture.says(|says| {
        let endpoint = "authorization_endpoint".to_owned();
        drop(says.document.insert(endpoint, json!(moved)));
    });
    let is_moved = || fixture.begin().unwrap().0.starts_with(&moved);
    assert!(!is_moved(), "the document serves for an hour");
    fixture.oidc.check(&fixture.issuer(), Some(CALLBACK));
    assert!(is_moved());
}

#[test]
fn the_check_says_of_each_step_what_it_found() {
    let fixture = Fixture::start();
    let steps = |fixture: &Fixture| fixture.oidc.check(&fixture.issuer(), Some(CALLBACK));
    let good = steps(&fixture);
    let names: Vec<&str> = good.iter().map(|step| step.name).collect();
    let all = [
        "discovery",
        "issuer",
        "endpoints",
        "keys",
        "algorithms",
        "pkce",
        "clock",
        "callback",
    ];
    assert_eq!(names, all);
    assert!(
        good.iter()
            .all(|step| step.is_ok == Some(true) && step.remedy.is_none()),
        "{good:?}"
    );
    assert!(good[7].value.contains(CALLBACK));
    let without = fixture.oidc.check(&fixture.issuer(), None);
    assert_eq!(without[7].is_ok, Some(false));
    assert!(without[7].remedy.unwrap().contains("SVC_PUBLIC_URL"));
    fixture.clock.advance(Duration::from_secs(90));
    fixture.says(|says| {
        says.keys = Vec::new();
        let changes = json!({
            "id_token_signing_alg_values_supported": ["HS256", "none"],
            "code_challenge_methods_supported": ["plain"],
        });
        says.document.extend(changes.as_object().unwrap().clone());
    });
    let bad = steps(&fixture);
    let of = |name: &str| bad.iter().find(|step| step.name == name).unwrap();
    for name in ["keys", "algorithms", "pkce", "clock"] {
        assert_eq!(of(name).is_ok, Some(false), "{:?}", of(name));
        assert!(of(name).remedy.is_some());
    }
    assert!(of("clock").value.contains("behind"), "{:?}", of("clock"));
    fixture.says(|says| {
        drop(
            says.document
                .insert("issuer".to_owned(), json!("https://other.example")),
        )
    });
    let other = steps(&fixture);
    let of = |name: &str| other.iter().find(|step| step.name == name).unwrap().is_ok;
    assert_eq!((of("issuer"), of("keys")), (Some(false), None));
    fixture.says(|says| {
        let gone = Instead::Answer(404, None, "{}".to_owned());
        says.instead
            .insert("/.well-known/openid-configuration", gone);
    });
    let gone = steps(&fixture);
    assert_eq!((gone[0].name, gone[0].is_ok), ("discovery", Some(false)));
    assert!(gone[0].value.contains("HTTP 404"), "{:?}", gone[0]);
    assert_eq!(gone.len(), all.len());
}

#[test]
fn a_tenants_provider_is_reached_only_where_tenants_may_reach() {
    let fixture = Fixture::start();
    let policy = Policy::Tenant(HostAccess::Deployed);
    let issuer = Issuer {
        policy,
        ..fixture.issuer()
    };
    let fault = fixture.oidc.begin(&issuer, CALLBACK, false).unwrap_err();
    assert_eq!(fault.code(), Code::AddressRefused, "{fault}");
    // What is known of a provider by the operator's policy does not serve a tenant's.
    fixture.sign_in().unwrap();
    let fault = fixture.oidc.begin(&issuer, CALLBACK, false).unwrap_err();
    assert_eq!(fault.code(), Code::AddressRefused, "{fault}");
    assert_eq!(
        fixture.provider.asked("/.well-known/openid-configuration"),
        1
    );
}
