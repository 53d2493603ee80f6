//! What a file may hold, and every fault of one.

use super::*;
use serde_json::json;

const TENANT: &str = "01980000-0000-7000-8000-000000000001";

fn provider() -> Value {
    json!({
        "tenantId": TENANT,
        "name": "Plant accounts",
        "issuer": "https://id.plant.example/realms/plant",
        "clientId": "agent-runtime",
        "clientSecretFile": "/etc/agent-runtime/credentials/oidc-plant",
        "emailDomains": ["Plant.example"],
        "groupsClaim": "groups",
        "groups": [{"group": "ops", "team": "ops", "role": "member"}],
    })
}

fn parsed(providers: &Value) -> Parsed {
    let file = json!({"version": 1, "providers": providers});
    parse(&serde_json::to_vec(&file).unwrap())
}

#[test]
fn a_provider_is_read_with_what_is_left_out() {
    let parsed = parsed(&json!([provider()]));
    assert_eq!(parsed.faults, Vec::<String>::new());
    let (provider, secret) = &parsed.providers[0];
    let path = PathBuf::from("/etc/agent-runtime/credentials/oidc-plant");
    assert_eq!(secret, &Some(SecretIn::File(path)));
    assert_eq!(provider.domains, ["plant.example"]);
    assert_eq!(provider.email_trust, EmailTrust::Claim);
    assert!(!provider.creates_people && provider.scopes.is_empty());
    let again = OperatorProvider::id_of(provider.tenant_id, &provider.issuer, "agent-runtime");
    assert_eq!(provider.id, again);
    let other = OperatorProvider::id_of(provider.tenant_id, &provider.issuer, "other");
    assert_ne!(provider.id, other);
}

#[test]
fn every_fault_is_told_at_once_and_repeats_nothing() {
    let wrong = json!({
        "tenantId": "s3cret",
        "name": "",
        "issuer": "http://s3cret.example",
        "clientId": 7,
        "clientSecretFile": "s3cret",
        "scopes": ["a b", "x", "x"],
        "emailDomains": ["s3cret.", "a.example", "A.example"],
        "emailTrust": "always",
        "createsPeople": "yes",
        "groups": [{"group": "ops", "team": "ops", "role": "owner", "s3cret": 1}],
        "s3cret": true,
    });
    let faults = parsed(&json!([wrong, "no object"])).faults;
    let has = |start: &str| faults.iter().any(|fault| fault.starts_with(start));
    for path in [
        "$.providers[0]:",
        "$.providers[0].tenantId:",
        "$.providers[0].name:",
        "$.providers[0].issuer:",
        "$.providers[0].clientId:",
        "$.providers[0].clientSecretFile:",
        "$.providers[0].scopes[0]:",
        "$.providers[0].scopes[2]:",
        "$.providers[0].emailDomains[0]:",
        "$.providers[0].emailDomains[2]:",
        "$.providers[0].emailTrust:",
        "$.providers[0].createsPeople:",
        "$.providers[0].groups[0]:",
        "$.providers[0].groups[0].role:",
        "$.providers[0].groups:",
        "$.providers[1]:",
    ] {
        assert!(has(path), "{path} of {faults:#?}");
    }
    assert!(
        !faults.iter().any(|fault| fault.contains("s3cret")),
        "{faults:#?}"
    );
    for file in ["", "[]", "{}", "{\"version\": 2, \"providers\": []}"] {
        assert!(!parse(file.as_bytes()).faults.is_empty(), "{file}");
    }
}

#[test]
fn providers_of_a_tenant_share_no_name_no_client_and_no_domain() {
    let mut other = provider();
    other["name"] = json!("Lab");
    other["clientId"] = json!("lab");
    other["emailDomains"] = json!(["lab.example"]);
    assert!(
        parsed(&json!([provider(), other.clone()]))
            .faults
            .is_empty()
    );
    for (field, value) in [
        ("name", json!("Plant accounts")),
        ("clientId", json!("agent-runtime")),
        ("emailDomains", json!(["PLANT.example"])),
    ] {
        let mut clashing = other.clone();
        clashing[field] = value;
        let faults = parsed(&json!([provider(), clashing.clone()])).faults;
        assert_eq!(faults.len(), 1, "{field}: {faults:#?}");
        // In another tenant it is another provider.
        clashing["tenantId"] = json!("01980000-0000-7000-8000-000000000002");
        assert!(parsed(&json!([provider(), clashing])).faults.is_empty());
    }
    let many: Vec<Value> = (0..=PROVIDERS_MOST)
        .map(|number| {
            let mut one = provider();
            one["name"] = json!(format!("n{number}"));
            one["clientId"] = json!(format!("c{number}"));
            one["emailDomains"] = json!([]);
            one
        })
        .collect();
    assert_eq!(parsed(&json!(many)).faults.len(), 1);
}

#[test]
fn an_issuer_is_a_bare_url_that_others_cannot_read_along() {
    for good in [
        "https://id.plant.example",
        "https://id.plant.example/realms/plant",
        "https://id.plant.example:8443/",
        "http://127.0.0.1:9000",
        "http://[::1]:9000",
        "http://localhost/oidc",
    ] {
        assert!(is_issuer(good), "{good}");
    }
    for bad in [
        "",
        "id.plant.example",
        "ftp://id.plant.example",
        "http://id.plant.example",
        "https://id.plant.example/?realm=plant",
        "https://id.plant.example/#plant",
        "https://user@id.plant.example",
        "https://:secret@id.plant.example",
    ] {
        assert!(!is_issuer(bad), "{bad}");
    }
}

#[test]
fn a_domain_is_in_ascii_and_has_no_dot_at_its_end() {
    for good in [
        "plant.example",
        "xn--mller-kva.example",
        "plant",
        "1.example",
    ] {
        assert!(is_domain(good), "{good}");
    }
    let long = format!("{}.example", "a".repeat(64));
    for bad in [
        "",
        ".",
        "plant.example.",
        "müller.example",
        "-a.example",
        "a..b",
        "a b",
        &long,
    ] {
        assert!(!is_domain(bad), "{bad}");
    }
}
