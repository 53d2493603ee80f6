//! Settings of signing in: the address that people open, how long sessions last, the operator's identity providers.

use super::*;
use crate::authn::session;

#[test]
fn a_public_url_is_an_origin_of_which_browsers_keep_cookies() {
    for (text, origin) in [
        ("https://agents.example.com", "https://agents.example.com"),
        ("https://agents.example.com/", "https://agents.example.com"),
        (
            "https://agents.example.com:8443",
            "https://agents.example.com:8443",
        ),
        ("http://localhost:4000", "http://localhost:4000"),
        ("http://[::1]:4000", "http://[::1]:4000"),
    ] {
        let settings = load(&development(&[("SVC_PUBLIC_URL", text)]), &clock()).unwrap();
        assert_eq!(settings.sign_in.public_url.unwrap().text(), origin);
    }
    for (text, problem) in [
        ("http://agents.example.com", "plain http"),
        ("http://10.0.0.5:4000", "plain http"),
        ("https://agents.example.com/console", "a path"),
        ("https://agents.example.com?a", "query"),
        ("agents.example.com", "URL"),
    ] {
        let faults = faulty(
            &development(&[("SVC_PUBLIC_URL", text)]),
            &["SVC_PUBLIC_URL"],
        );
        assert!(faults[0].problem.contains(problem), "{}", faults[0]);
    }
}

#[test]
fn sessions_last_a_day_and_four_hours_unused_unless_settings_say_otherwise() {
    let of = |pairs: &[(&str, &str)]| {
        let settings = load(&development(pairs), &clock()).unwrap();
        session::Options::from_settings(&settings, &Secret::new("token"))
    };
    let sign_in = of(&[]);
    assert_eq!(sign_in.idle, Duration::from_secs(4 * 3600));
    assert_eq!(sign_in.life, Duration::from_secs(24 * 3600));
    assert_eq!(sign_in.token_sign_in, TokenSignIn::On);
    assert_eq!(sign_in.provider_timeout, Duration::from_secs(5));
    assert!(sign_in.console_token.is_none() && sign_in.public_url.is_none());
    let sign_in = of(&[
        ("SVC_SESSION_IDLE_MINUTES", "30"),
        ("SVC_SESSION_HOURS", "12"),
        ("SVC_TOKEN_SIGN_IN", "admins"),
        ("SVC_DEV_CONSOLE_LOGIN", "1"),
        ("SVC_SIGN_IN_TIMEOUT_MS", "2500"),
    ]);
    assert_eq!(sign_in.provider_timeout, Duration::from_millis(2500));
    assert_eq!(sign_in.idle, Duration::from_secs(1800));
    assert_eq!(sign_in.life, Duration::from_secs(12 * 3600));
    assert_eq!(sign_in.token_sign_in, TokenSignIn::Admins);
    assert!(sign_in.console_token.is_some());
}

fn provider_of(tenant: &str, name: &str, secret: &serde_json::Value) -> serde_json::Value {
    let mut provider = serde_json::json!({
        "tenantId": tenant, "name": name, "issuer": format!("https://{name}.example"), "clientId": "agent-runtime",
    });
    for (field, value) in secret.as_object().unwrap() {
        provider[field] = value.clone();
    }
    provider
}

const TENANT: &str = "01980000-0000-7000-8000-000000000001";

/// A file of these providers, beside a directory of credentials.
fn with_providers(dir: &Path, providers: &[serde_json::Value]) -> Vars {
    let text = serde_json::json!({"version": 1, "providers": providers}).to_string();
    let path = file(dir, "providers.json", &text, 0o640);
    let credentials = dir.to_str().unwrap();
    development(&[
        ("SVC_IDENTITY_PROVIDERS_PATH", &path),
        ("CREDENTIALS_DIRECTORY", credentials),
    ])
}

#[test]
fn the_operators_providers_are_read_with_their_secrets() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "oidc-lab", "credential-secret", 0o444);
    let secret = file(dir.path(), "plant", "file-secret\n", 0o600);
    let by_file = serde_json::json!({ "clientSecretFile": secret });
    let by_name = serde_json::json!({"clientSecretCredential": "oidc-lab"});
    let vars = with_providers(
        dir.path(),
        &[
            provider_of(TENANT, "plant", &by_file),
            provider_of(TENANT, "lab", &by_name),
            provider_of(TENANT, "public", &serde_json::json!({})),
        ],
    );
    let settings = load(&vars, &clock()).unwrap();
    let providers = settings.sign_in.identity_providers.unwrap().0;
    let secrets: Vec<Option<&str>> = providers
        .iter()
        .map(|provider| provider.client_secret.as_ref().map(Secret::expose))
        .collect();
    assert_eq!(
        secrets,
        [Some("file-secret"), Some("credential-secret"), None]
    );
    let shown = format!("{providers:?}{:?}", check(&vars, &clock()));
    assert!(!shown.contains("credential-secret") && !shown.contains("file-secret"));
    let none = load(&development(&[]), &clock()).unwrap();
    assert!(none.sign_in.identity_providers.is_none());
}

#[test]
fn every_fault_of_the_operators_file_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let vars = with_providers(
        dir.path(),
        &[
            provider_of(
                TENANT,
                "a",
                &serde_json::json!({"clientSecretFile": "/no/such/file"}),
            ),
            provider_of(
                TENANT,
                "b",
                &serde_json::json!({"clientSecretCredential": "absent"}),
            ),
            provider_of("x", "c", &serde_json::json!({"emailTrust": "always"})),
        ],
    );
    let faults = faulty(&vars, &["SVC_IDENTITY_PROVIDERS_PATH"; 4]);
    for part in ["tenantId", "emailTrust", "not there", "credential"] {
        let is_found = faults.iter().any(|fault| fault.problem.contains(part));
        assert!(is_found, "{part}: {faults:?}");
    }
    let path = file(dir.path(), "open.json", "{}", 0o666);
    let open = development(&[("SVC_IDENTITY_PROVIDERS_PATH", &path)]);
    let faults = faulty(&open, &["SVC_IDENTITY_PROVIDERS_PATH"]);
    assert!(faults[0].problem.contains("0666"), "{}", faults[0]);
}

/// The `url` of an approval's event begins with it, and is absent without it (specification, section 2.8).
#[test]
fn receivers_are_given_pages_of_a_console_that_is_mounted_at_a_known_address() {
    let console = |pairs: &[(&str, &str)]| {
        let settings = load(&development(pairs), &clock()).unwrap();
        settings.public_console()
    };
    let address = ("SVC_PUBLIC_URL", "https://agents.example.com");
    let [mounted, not] = ["true", "false"].map(|value| ("SVC_CONSOLE", value));
    let both = console(&[address, mounted]);
    assert_eq!(both.as_deref(), Some("https://agents.example.com/console/"));
    assert_eq!(console(&[address, not]), None, "there are no pages");
    assert_eq!(console(&[mounted]), None, "nobody knows where they are");
}
