//! Values that each setting refuses.

use super::*;

/// A setting, and texts that it must not take.
const WRONG: &[(&str, &[&str])] = &[
    (
        "SVC_HTTP_PORT",
        &["", " ", "x", "-1", "65536", "+80", "0x50", "80 "],
    ),
    (
        "SVC_BIND_ADDRESS",
        &["localhost", "127.0.0.1:80", "[::1]", "*"],
    ),
    ("SVC_DOCS", &["yes", "TRUE", "2", "on", "true "]),
    ("SVC_TENANT_ID", &["x", "0123456789ab7cde8f0123456789abcd"]),
    (
        "SVC_SEED_USER_ID",
        &["{01234567-89ab-7cde-8f01-23456789abcd}"],
    ),
    (
        "SVC_SEED_TOKEN",
        &["short", "with a space in it!!", "tabs\tare\tno\tgood\t"],
    ),
    (
        "SVC_SEED_USER_EMAIL",
        &[
            "ada",
            "@plant.example",
            "ada@",
            "a@b@c",
            "ada @plant.example",
        ],
    ),
    ("SVC_HOST_ACCESS", &["open", "Local", "local,deployed"]),
    (
        "SVC_PUBLIC_URL",
        &[
            "agents.example.com",
            "http://agents.example.com",
            "https://agents.example.com/console",
            "*",
        ],
    ),
    (
        "SVC_IDENTITY_PROVIDERS_PATH",
        &["providers.json", "/no/such/file"],
    ),
    ("SVC_TOKEN_SIGN_IN", &["true", "admin", "Off"]),
    ("SVC_SESSION_IDLE_MINUTES", &["0", "43201", "4h"]),
    ("SVC_SESSION_HOURS", &["0", "721", "1d"]),
    ("SVC_SIGN_IN_TIMEOUT_MS", &["499", "60001", "5s"]),
    ("SVC_LOG_LEVEL", &["warning", "INFO", "5"]),
    ("SVC_LOG_FORMAT", &["text", "JSON"]),
    (
        "SVC_LOG_LEVELS",
        &[
            "http",
            "http=",
            "=warn",
            "http=loud",
            "a=info,,b=info",
            "a..b=info",
            "a=info,a=warn",
            "a=info,",
        ],
    ),
    ("SVC_LOG_REDACT_KEYS", &["a b", "a,", "--", "a,a", "ü"]),
    (
        "SVC_ALLOWED_ORIGINS",
        &[
            "*",
            "https://*.a.com",
            "https://a.com/",
            "https://a.com/x",
            "a.com",
            "null",
            "https://a.com,https://a.com",
            "https://A.com",
            "https://a.com:443",
        ],
    ),
    ("SVC_STATE_DIR", &["state", "./state", "~/state"]),
    (
        "SVC_DATABASE_URL",
        &[
            "host=db",
            "mysql://db/x",
            "postgres://db:port/x",
            "postgres://db/x?sslmode=full",
            "postgres://db/x?sslrootcert=ca.pem",
            "postgres://db/x?colour=red",
            "postgres://db/ x",
        ],
    ),
    (
        "SVC_FORWARD_PROXY_ORIGINS",
        &[
            "https://*.a.com",
            "https://a.com/v1",
            "a.com",
            "https://a.com:443",
        ],
    ),
    ("SVC_FORWARD_PROXY_CREDENTIALS", &["u:", "user: password"]),
    (
        "SVC_OTLP_ENDPOINT",
        &[
            "127.0.0.1:4318",
            "grpc://127.0.0.1:4317",
            "http://user:password@collector:4318",
            "http://collector:4318?token=x",
            "http://collector:4318/#x",
            "http://collector:4318/v1/traces",
            "http://collector:4318/v1/traces/",
        ],
    ),
    (
        "SVC_OTLP_HEADERS",
        &[
            "authorization",
            "=x",
            "a=",
            "a b=c",
            "a=b,a=c",
            "a=b,A=c",
            "a=b,",
            "host=x",
            "Content-Type=text/plain",
            "transfer-encoding=chunked",
            "a=b%0d%0ac: d",
            "a=%ff",
            "a=ü",
        ],
    ),
    (
        "SVC_DEV_HOST_ALIAS",
        &["http://host", "host:80", "host/path", "a b", "::1]"],
    ),
    (
        "SVC_OUTBOUND_CA_PATH",
        &["ca.pem", "/nowhere/ca.pem", "/etc", "/etc/hostname"],
    ),
    (
        "SVC_MODEL_KEYS",
        &[
            "A",
            "A=",
            "A=example.com",
            "A=https://a.com/v1",
            "SVC_X=https://a.com",
            "A B=https://a.com",
            "..=https://a.com",
            "A=https://a.com,A=https://b.com",
        ],
    ),
    ("SVC_MODEL_KEYS_DIR", &["keys"]),
    ("SVC_LICENSE_KEY", &["svc_bt_x", "key"]),
    (
        "SVC_PUBLIC_TOKEN_SIGNING_KEY",
        &["x", "AAAA", "-----BEGIN PRIVATE KEY-----"],
    ),
    ("SVC_SECRETS_BACKEND", &["secret-manager", "vault"]),
    (
        "SVC_ENVIRONMENT",
        &["", "a b", "a/b", "-prod", ".env", "pröd"],
    ),
    ("SVC_COMPLIANCE_CLASSIFIER", &["on", "Shipped"]),
    (
        "SVC_AUDIT_SIGNING_KEY_PATH",
        &["key.pem", "/nowhere/key.pem", "/etc/hostname"],
    ),
    ("SVC_AUDIT_QUEUE_LENGTH", &["0", "499", "x"]),
    ("SVC_MAX_BODY_BYTES", &["1", "1k", "18446744073709551616"]),
    ("SVC_RUN_THREADS", &["0", "2049"]),
    ("SVC_RUN_LEASE_MS", &["499", "1.5"]),
];

#[test]
fn every_wrong_value_is_named() {
    for (name, values) in WRONG {
        assert!(table::find(name).is_some(), "{name}");
        for value in *values {
            let faults = faulty(&development(&[(name, value)]), &[name]);
            assert!(!faults[0].problem.is_empty() && !faults[0].remedy.is_empty());
            let short = value.len() < 6 || *name == "SVC_SECRETS_BACKEND";
            assert!(
                short || !faults[0].to_string().contains(value),
                "{}",
                faults[0]
            );
        }
    }
}
