//! The settings of secrets.

use super::setting::{Item, KeyForm, Kind, Setting, Source, Word};

const SPEC: Source = Source::Named;
const MEANT: Source = Source::Meant;

const WITH_DOTENV: &str = "server, with SVC_SECRETS_BACKEND=dotenv";
const WITH_POSTGRES: &str = "server and secrets rewrap, with SVC_SECRETS_BACKEND=postgres, which requires it or its other form";
const WITH_CLOUD_A: &str = "server and secrets rewrap, with SVC_SECRETS_BACKEND_KMS=cloud-a";
const REQUIRED_WITH_CLOUD_A: &str =
    "server and secrets rewrap, with SVC_SECRETS_BACKEND_KMS=cloud-a, which requires it";
const WITH_LOCAL: &str = "server and secrets rewrap, with SVC_SECRETS_BACKEND_KMS=local";
const REQUIRED_WITH_LOCAL: &str =
    "server and secrets rewrap, with SVC_SECRETS_BACKEND_KMS=local, which requires it";

/// A part of the wrapping key's resource name.
const fn part(name: &'static str, meaning: &'static str) -> Setting {
    Setting::new(name, Kind::Word { min: 1, max: 200 }, MEANT, meaning)
        .read_by(REQUIRED_WITH_CLOUD_A)
}

pub(super) static SECRETS: &[Setting] = &[
    Setting::new(
        "SVC_SECRETS_BACKEND",
        Kind::Choice(&[
            Word::built("none"),
            Word::built("postgres"),
            Word::built("dotenv").development_only(),
            Word::reserved("secret-manager"),
        ]),
        SPEC,
        "Where secret bytes live. none: the routes of secrets are not mounted. postgres: encrypted \
         in the database under keys that SVC_SECRETS_BACKEND_KMS wraps. dotenv: env files in a \
         directory, in development only. secret-manager is reserved.",
    )
    .read_by("server and secrets rewrap")
    .default_value("none"),
    Setting::new(
        "SVC_SECRETS_DOTENV_DIR",
        Kind::AbsolutePath,
        SPEC,
        "The directory whose env files hold secrets; secrets written through the API land there.",
    )
    .read_by("server, with SVC_SECRETS_BACKEND=dotenv, which requires it")
    .development_only(),
    Setting::new(
        "SVC_SECRETS_DOTENV_FILES",
        Kind::List(Item::RelativePath),
        MEANT,
        "The env files, relative to SVC_SECRETS_DOTENV_DIR, lowest precedence first.",
    )
    .read_by(WITH_DOTENV)
    .default_value(".env,.env.local")
    .development_only(),
    Setting::new(
        "SVC_SECRETS_BACKEND_KMS",
        Kind::Choice(&[
            Word::built("cloud-a"),
            Word::reserved("cloud-b"),
            Word::reserved("cloud-c"),
            Word::built("local"),
        ]),
        SPEC,
        "What wraps data keys. cloud-a: the key-management service of Google Cloud. local, an \
         addition of this implementation: a key file of this host, for hosts that reach no cloud. \
         cloud-b and cloud-c are reserved.",
    )
    .read_by("server and secrets rewrap, with SVC_SECRETS_BACKEND=postgres, which requires it"),
    part(
        "SVC_SECRETS_KMS_PROJECT_ID",
        "The project of the wrapping key.",
    ),
    part(
        "SVC_SECRETS_KMS_LOCATION",
        "The location of the wrapping key.",
    ),
    part(
        "SVC_SECRETS_KMS_KEYRING_ID",
        "The key ring of the wrapping key.",
    ),
    part(
        "SVC_SECRETS_KMS_KEY_ID",
        "The wrapping key, a symmetric encryption key.",
    ),
    Setting::new(
        "SVC_SECRETS_KMS_CREDENTIALS_PATH",
        Kind::AbsolutePath,
        Source::Ours,
        "The file of credentials that may use the wrapping key, as the cloud hands them out in JSON. Unset: the file that GOOGLE_APPLICATION_CREDENTIALS names, and without one \
         the metadata server of the machine.",
    )
    .read_by(WITH_CLOUD_A),
    Setting::new(
        "SVC_SECRETS_KMS_BASE_URL",
        Kind::HttpUrl,
        Source::Ours,
        "Where the key-management service is, for a private endpoint.",
    )
    .read_by(WITH_CLOUD_A)
    .default_value("https://cloudkms.googleapis.com"),
    Setting::new(
        "SVC_SECRETS_KMS_METADATA_URL",
        Kind::HttpUrl,
        Source::Ours,
        "Where the metadata server of the machine is.",
    )
    .read_by(WITH_CLOUD_A)
    .default_value("http://metadata.google.internal"),
    Setting::new(
        "SVC_SECRETS_LOCAL_KEY_PATH",
        Kind::KeyFile(KeyForm::Bytes32),
        Source::Ours,
        "The key that wraps data keys, the same on every replica. Without it no secret can be read.",
    )
    .read_by(REQUIRED_WITH_LOCAL),
    Setting::new(
        "SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH",
        Kind::KeyFile(KeyForm::Bytes32),
        Source::Ours,
        "The key before it. It opens what it wrapped and wraps nothing more; secrets rewrap makes it \
         dispensable.",
    )
    .read_by(WITH_LOCAL),
    Setting::new(
        "SVC_SECRETS_AAD_KEY_PATH",
        Kind::KeyFile(KeyForm::Bytes32),
        SPEC,
        "The key that protects the associated data of every secret row, the same on every replica.",
    )
    .read_by(WITH_POSTGRES),
    Setting::new(
        "SVC_SECRETS_AAD_KEY",
        Kind::KeyText(KeyForm::Bytes32),
        SPEC,
        "The same key as a text, for platforms that hand secrets over as environment variables.",
    )
    .read_by(WITH_POSTGRES)
    .secret()
    .variant_of("SVC_SECRETS_AAD_KEY_PATH"),
    Setting::new(
        "SVC_ENVIRONMENT",
        Kind::EnvironmentName,
        MEANT,
        "The environment that this server serves: the one of the backend dotenv, and the one under which \
         the secrets are found that a tool names, and the variables that flows read. While it is not set, calls of such \
         a tool fail, and flows read no variable.",
    )
    .default_derived("local in development", |_, development| {
        development.then(|| "local".to_owned())
    }),
];
