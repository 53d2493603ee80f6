//! Builds the settings from a reading without faults: those that several parts or commands read. The others are read by their parts
//! (`values`).

use super::identity_providers::IdentityProviders;
use super::read::Reading;
use super::settings::{
    ForwardProxy, Http, Kms, Log, Outbound, PublicTokenKey, Secrets, Settings, SignIn, Tenant,
};
use super::types::{HostAccess, LogFormat, LogLevel, Origin};
use super::values::{Values, defect};
use std::net::SocketAddr;
use std::path::PathBuf;
use url::Url;

/// Builds the settings from a reading without faults.
pub(super) fn assemble(reading: Reading) -> Settings {
    let take = Values::new(reading.rows);
    let development = take.boolean("SVC_DEV");
    Settings {
        development,
        state_directory: take.path("SVC_STATE_DIR"),
        http: http(&take),
        database_url: take
            .secret("SVC_DATABASE_URL")
            .unwrap_or_else(|| defect("SVC_DATABASE_URL")),
        tenant: tenant(&take),
        public_token_key: match take
            .signing_key("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH")
            .or_else(|| take.signing_key("SVC_PUBLIC_TOKEN_SIGNING_KEY"))
        {
            Some(key) => PublicTokenKey::Given(key),
            None if development => PublicTokenKey::MakeAtStart,
            None => PublicTokenKey::Off,
        },
        log: log(&take, reading.no_color),
        // SVC_MODEL_KEYS and SVC_MODEL_KEYS_DIR: the reading has combined them.
        model_keys: reading.model_keys,
        outbound: Outbound {
            host_access: match take.word("SVC_HOST_ACCESS") {
                "local" => HostAccess::Local,
                _ => HostAccess::Deployed,
            },
            host_access_origins: take.origins("SVC_HOST_ACCESS_ORIGINS"),
            forward_proxy: forward_proxy(&take),
            dev_host_alias: take.text("SVC_DEV_HOST_ALIAS"),
            extra_certificates: take.certificates("SVC_OUTBOUND_CA_PATH"),
        },
        authorization_url: take.text("SVC_AUTHZ_API_URL"),
        authorization_database: take.secret("SVC_AUTHZ_DATABASE_URL"),
        audit_signing_key: take.signing_key("SVC_AUDIT_SIGNING_KEY_PATH"),
        sign_in: sign_in(&take, reading.identity_providers),
        secrets: secrets(&take, reading.kms_credentials),
        environment: take.text("SVC_ENVIRONMENT"),
        // SVC_LICENSE_KEY: the reading has checked it.
        license: reading.license,
        warnings: reading.warnings,
        values: take,
    }
}

fn tenant(take: &Values) -> Tenant {
    Tenant {
        id: take.uuid("SVC_TENANT_ID"),
        seed_user_id: take.uuid("SVC_SEED_USER_ID"),
        seed_user_email: take.text("SVC_SEED_USER_EMAIL"),
        seed_token: take.secret("SVC_SEED_TOKEN"),
    }
}

fn sign_in(take: &Values, identity_providers: Option<IdentityProviders>) -> SignIn {
    let public_url = take.text("SVC_PUBLIC_URL");
    SignIn {
        public_url: public_url.and_then(|text| Origin::of(&Url::parse(&text).ok()?)),
        provider_timeout: take.duration("SVC_SIGN_IN_TIMEOUT_MS"),
        // SVC_IDENTITY_PROVIDERS_PATH: the reading has read the file.
        identity_providers,
    }
}

fn http(take: &Values) -> Http {
    let port = take.number("SVC_HTTP_PORT");
    Http {
        address: SocketAddr::new(take.address("SVC_BIND_ADDRESS"), port),
        docs: take.boolean("SVC_DOCS"),
        console: take.boolean("SVC_CONSOLE"),
        allowed_origins: take.origins("SVC_ALLOWED_ORIGINS"),
        shutdown_timeout: take.duration("SVC_SHUTDOWN_TIMEOUT_MS"),
    }
}

fn log(take: &Values, no_color: bool) -> Log {
    Log {
        level: LogLevel::parse(take.word("SVC_LOG_LEVEL"))
            .unwrap_or_else(|| defect("SVC_LOG_LEVEL")),
        levels: take.text("SVC_LOG_LEVELS").unwrap_or_default(),
        format: LogFormat::parse(take.word("SVC_LOG_FORMAT"))
            .unwrap_or_else(|| defect("SVC_LOG_FORMAT")),
        redact_keys: take.texts("SVC_LOG_REDACT_KEYS"),
        no_color,
    }
}

fn forward_proxy(take: &Values) -> Option<ForwardProxy> {
    let url = Url::parse(&take.text("SVC_FORWARD_PROXY")?).ok()?;
    Some(ForwardProxy {
        origin: Origin::of(&url)?,
        origins: take.origins("SVC_FORWARD_PROXY_ORIGINS"),
        credentials: take.secret("SVC_FORWARD_PROXY_CREDENTIALS"),
    })
}

/// The reading has checked which settings are given.
fn secrets(take: &Values, credentials: Option<(PathBuf, &'static str)>) -> Secrets {
    let must = |name| take.secret(name).unwrap_or_else(|| defect(name));
    let text = |name| take.text(name).unwrap_or_else(|| defect(name));
    match take.word("SVC_SECRETS_BACKEND") {
        "postgres" => Secrets::Postgres {
            kms: match take.word("SVC_SECRETS_BACKEND_KMS") {
                "local" => Kms::Local {
                    key: must("SVC_SECRETS_LOCAL_KEY_PATH"),
                    previous: take.secret("SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH"),
                },
                _ => Kms::CloudA {
                    key: [
                        must("SVC_SECRETS_KMS_PROJECT_ID"),
                        must("SVC_SECRETS_KMS_LOCATION"),
                        must("SVC_SECRETS_KMS_KEYRING_ID"),
                        must("SVC_SECRETS_KMS_KEY_ID"),
                    ],
                    // SVC_SECRETS_KMS_CREDENTIALS_PATH, or the vendor's usual variable.
                    credentials,
                    base_url: text("SVC_SECRETS_KMS_BASE_URL"),
                    metadata_url: text("SVC_SECRETS_KMS_METADATA_URL"),
                },
            },
            aad_key: take
                .secret("SVC_SECRETS_AAD_KEY_PATH")
                .unwrap_or_else(|| must("SVC_SECRETS_AAD_KEY")),
        },
        "dotenv" => Secrets::Dotenv {
            directory: take.path("SVC_SECRETS_DOTENV_DIR"),
            files: take.texts("SVC_SECRETS_DOTENV_FILES"),
            environment: text("SVC_ENVIRONMENT"),
        },
        _ => Secrets::Off,
    }
}
