//! Settings of features that later versions bring, and the settings that belong beside them. When a
//! feature is built, its settings lose their `not_built` line; meaning and parser stay.

use super::setting::{Item, KeyForm, Kind, Setting, Source, Word};

const SPEC: Source = Source::Named;
const MEANT: Source = Source::Meant;

const PACKS_FEATURE: &str = "packs";
const IMAGES: &str = "packs from an image registry";

const WITH_AUTHZ: &str = "server, with SVC_AUTHZ_API_URL";
const WITH_PACK_SERVICE: &str = "server, with SVC_PACK_SERVICE_URL";

pub(super) static AUTHORIZATION: &[Setting] = &[
    Setting::new(
        "SVC_AUTHZ_API_URL",
        Kind::HttpUrl,
        SPEC,
        "The authorization server. Set: each tenant's store is made and every request is checked. \
         Unset: whoever holds a token may do anything inside its tenant.",
    ),
    Setting::new(
        "SVC_AUTHZ_TIMEOUT_MS",
        Kind::Integer {
            min: 100,
            max: 60_000,
            unit: "milliseconds",
        },
        Source::Ours,
        "How long one call of the authorization server may take, the wait for a connection to it \
         included. Then what needed it is answered 500.",
    )
    .read_by(WITH_AUTHZ)
    .default_value("3000"),
    Setting::new(
        "SVC_AUTHZ_CONNECTIONS",
        Kind::Integer {
            min: 2,
            max: 500,
            unit: "",
        },
        Source::Ours,
        "How many connections to the authorization server this process holds at most.",
    )
    .read_by(WITH_AUTHZ)
    .default_value("16"),
    Setting::new(
        "SVC_AUTHZ_DATABASE_URL",
        Kind::DatabaseUrl,
        Source::Ours,
        "The database of the authorization server, to back it up with the runtime's own and to \
         restore it. Unset: it is not in the backup, and a restore fills the authorization server \
         from the runtime's database.",
    )
    .secret()
    .read_by("backup, restore and doctor"),
    Setting::new(
        "SVC_COMPLIANCE_CLASSIFIER",
        Kind::Choice(&[Word::built("shipped")]),
        Source::Named,
        "shipped: allowed decisions are purged after 90 days, denied ones after 365. Unset: both \
         are kept. SVC_AUDIT_SIGNING_KEY_PATH signs how far, if it is set.",
    )
    .read_by("server"),
    Setting::new(
        "SVC_AUDIT_SIGNING_KEY_PATH",
        Kind::KeyFile(KeyForm::Ed25519),
        Source::Ours,
        "The key that signs how far the audit was purged, so that what remains can be verified. \
         It is used for nothing else, and is the same on every replica.",
    )
    .read_by("server and audit verify"),
    Setting::new(
        "SVC_AUDIT_QUEUE_LENGTH",
        Kind::Integer {
            min: 500,
            max: 1_000_000,
            unit: "",
        },
        Source::Ours,
        "Access decisions that wait to be written at most; beyond it requests are answered 503.",
    )
    .default_value("10000"),
];

pub(super) static PACKS: &[Setting] = &[
    Setting::new(
        "SVC_PACK_SERVICE_URL",
        Kind::HttpUrl,
        SPEC,
        "The pack service, which runs pack tools and guardrail checks. Unset: no pack code runs.",
    )
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_PACK_SERVICE_TOKEN",
        Kind::Word { min: 16, max: 512 },
        SPEC,
        "The secret that server and pack service share.",
    )
    .read_by("server, with SVC_PACK_SERVICE_URL, which requires it; pack service, required")
    .secret()
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_PACK_CALL_DEADLINE_MS",
        Kind::Integer {
            min: 1,
            max: 86_400_000,
            unit: "milliseconds",
        },
        MEANT,
        "How long one call to the pack service may take.",
    )
    .read_by(WITH_PACK_SERVICE)
    .default_value("120000")
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_PACK_PROOF_MODE",
        Kind::Choice(&[Word::built("token"), Word::built("cloud-id-token")]),
        MEANT,
        "What proves the server to the pack service: its token alone, or an identity token of a \
         service account as well, for an https URL.",
    )
    .read_by(WITH_PACK_SERVICE)
    .default_value("token")
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_PACK_DIR",
        Kind::AbsolutePath,
        SPEC,
        "The pack directory. The server reads tools, guardrails, agents and flows from the index \
         there on every change, and signed deployments are off.",
    )
    .development_only()
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_PACK_INDEX_PATH",
        Kind::AbsolutePath,
        MEANT,
        "The pack's index.",
    )
    .read_by("pack service")
    .default_value("/app/index.json")
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_PACK_CONCURRENCY",
        Kind::Integer {
            min: 1,
            max: 10_000,
            unit: "",
        },
        MEANT,
        "Calls at once; beyond it a call is answered 503 overloaded, which the server tries again.",
    )
    .read_by("pack service")
    .default_value("32")
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_PACK_MISSING_ENV",
        Kind::Choice(&[Word::built("strict"), Word::built("warn")]),
        MEANT,
        "What happens when a name that the pack's env requires is unset or empty. strict: not \
         ready, and calls are answered 503. warn: it serves, and names them.",
    )
    .read_by("pack service")
    .default_value("strict")
    .not_built(PACKS_FEATURE),
    Setting::new(
        "SVC_IMAGE_REGISTRY_HOST",
        Kind::HostAndPort,
        SPEC,
        "The registry that the credentials below are for. Other registries are read anonymously.",
    )
    .not_built(IMAGES),
    Setting::new(
        "SVC_IMAGE_REGISTRY_USERNAME",
        Kind::Word { min: 1, max: 500 },
        SPEC,
        "The user name for that registry.",
    )
    .not_built(IMAGES),
    Setting::new(
        "SVC_IMAGE_REGISTRY_PASSWORD",
        Kind::Word { min: 1, max: 8192 },
        SPEC,
        "The password or access token for that registry. Pull access suffices.",
    )
    .secret()
    .not_built(IMAGES),
    Setting::new(
        "SVC_REGISTRY_SIGN_IN",
        Kind::Choice(&[Word::built("static"), Word::built("cloud")]),
        MEANT,
        "static: with the user name and password above. cloud: with the server's own cloud \
         identity, and neither is set.",
    )
    .default_value("static")
    .not_built(IMAGES),
    Setting::new(
        "SVC_PLAIN_HTTP_REGISTRIES",
        Kind::List(Item::Registry),
        MEANT,
        "Registries reached over HTTP instead of HTTPS. Loopback hosts always are.",
    )
    .default_described("none")
    .not_built(IMAGES),
];
