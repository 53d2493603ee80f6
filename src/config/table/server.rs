//! The server itself, its tenant, its log, and outbound connections.

use super::setting::{Item, KeyForm, Kind, Setting, Source, Word};

const SPEC: Source = Source::Named;
const LOG_SPEC: Source = Source::Named;
const MEANT: Source = Source::Meant;

pub(super) static SERVER: &[Setting] = &[
    Setting::new(
        "SVC_DEV",
        Kind::Boolean,
        SPEC,
        "Development mode. It allows the settings that are for development only, uses a local \
         database by default, and needs no license key. Never set it in production.",
    )
    .default_value("false"),
    Setting::new(
        "SVC_LICENSE_KEY",
        Kind::LicenseKey,
        MEANT,
        "The commercial license key. It is checked at start, offline; without a valid one the \
         server does not start outside development. From 30 days before its expiry every start \
         warns; after it the key is taken for as many days as its own graceDays says, if it says any.",
    )
    .secret()
    .required_outside_development()
    .default_described("none; required outside development"),
    Setting::new(
        "SVC_HTTP_PORT",
        Kind::Integer {
            min: 0,
            max: 65535,
            unit: "",
        },
        MEANT,
        "The port that the server listens on. 0 takes any free port.",
    )
    .default_value("4000"),
    Setting::new(
        "SVC_BIND_ADDRESS",
        Kind::IpAddress,
        MEANT,
        "The address that the server listens on. 127.0.0.1 keeps it off the network; :: is all \
         interfaces, IPv6 and IPv4.",
    )
    .default_derived(
        "127.0.0.1 in development on Linux, :: otherwise",
        |_, development| {
            let off_network = development && cfg!(target_os = "linux");
            Some(if off_network { "127.0.0.1" } else { "::" }.to_owned())
        },
    ),
    Setting::new(
        "SVC_DOCS",
        Kind::Boolean,
        MEANT,
        "Whether the API reference is served at /docs.",
    )
    .default_value("true"),
    Setting::new(
        "SVC_CONSOLE",
        Kind::Boolean,
        Source::Ours,
        "Whether the console is served at /console/.",
    )
    .default_value("true"),
    Setting::new(
        "SVC_ALLOWED_ORIGINS",
        Kind::List(Item::Origin),
        MEANT,
        "The browser origins that may call the routes a public run token opens. Unset: no CORS \
         headers on any route.",
    )
    .default_described("none: no CORS headers"),
    Setting::new(
        "SVC_STATE_DIR",
        Kind::AbsolutePath,
        Source::Ours,
        "The directory for what the server itself keeps on disk, such as the seed token of its \
         last start.",
    )
    .default_derived(
        "the first entry of $STATE_DIRECTORY, else /var/lib/agent-runtime",
        |vars, _| {
            let given = vars.state_directory();
            let given = given.as_deref().and_then(|path| path.to_str());
            Some(given.unwrap_or("/var/lib/agent-runtime").to_owned())
        },
    ),
];

pub(super) static TENANT: &[Setting] = &[
    Setting::new(
        "SVC_TENANT_ID",
        Kind::Uuid,
        MEANT,
        "The tenant to make at the first start, or to use again.",
    )
    .default_described("a fresh UUID, printed at start"),
    Setting::new(
        "SVC_SEED_USER_ID",
        Kind::Uuid,
        SPEC,
        "The first user, who is the first tenant admin: a user that stands is made one at the first \
         start with authorization. Keep it the same across restarts.",
    )
    .default_described("a UUID derived from the tenant's"),
    Setting::new(
        "SVC_SEED_USER_EMAIL",
        Kind::Email,
        Source::Ours,
        "The seed user's email, by which an identity provider signs them in. It is given to a seed user \
         who has none.",
    ),
    Setting::new(
        "SVC_SEED_TOKEN",
        Kind::Word { min: 16, max: 512 },
        MEANT,
        "The seed user's bearer token, taken as it is. It is valid until it is revoked, also without this \
         setting. Unset: each start makes one, in development on \
         the screen, otherwise in the file seed-token of SVC_STATE_DIR, whose token before it ends.",
    )
    .secret()
    .default_described("a fresh token at each start, which begins with svc_bt_"),
    Setting::new(
        "SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH",
        Kind::KeyFile(KeyForm::Ed25519),
        SPEC,
        "The key that signs public run tokens, used for nothing else. Unset: in development a key \
         is made at start and its tokens end at the next; otherwise public run tokens are off.",
    ),
    Setting::new(
        "SVC_PUBLIC_TOKEN_SIGNING_KEY",
        Kind::KeyText(KeyForm::Ed25519),
        MEANT,
        "The same key as a text, for platforms that hand secrets over as environment variables.",
    )
    .secret()
    .variant_of("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH"),
];

const LEVELS: &[Word] = &[
    Word::built("error"),
    Word::built("warn"),
    Word::built("info"),
    Word::built("debug"),
    Word::built("trace"),
];

pub(super) static LOGGING: &[Setting] = &[
    Setting::new(
        "SVC_LOG_LEVEL",
        Kind::Choice(LEVELS),
        LOG_SPEC,
        "The least severe level that is logged.",
    )
    .read_by("logger")
    .default_value("info"),
    Setting::new(
        "SVC_LOG_LEVELS",
        Kind::List(Item::LevelPair),
        LOG_SPEC,
        "Levels of single subsystems. A dotted subsystem takes its parent's level unless it has \
         one of its own.",
    )
    .read_by("logger")
    .default_described("none"),
    Setting::new(
        "SVC_LOG_FORMAT",
        Kind::Choice(&[
            Word::built("auto"),
            Word::built("json"),
            Word::built("pretty"),
        ]),
        LOG_SPEC,
        "How records are written. auto is pretty on a terminal or in development, and JSON \
         otherwise; where standard error is systemd's journal, each line begins with its priority, \
         <3> to <7>, which the journal takes off.",
    )
    .read_by("logger")
    .default_value("auto"),
    Setting::new(
        "SVC_LOG_REDACT_KEYS",
        Kind::List(Item::KeyPattern),
        Source::Meant,
        "Further field keys whose values the log redacts: those whose key, lowercased and without \
         - and _, ends with one of these.",
    )
    .read_by("logger")
    .default_described("none"),
];

pub(super) static OUTBOUND: &[Setting] = &[
    Setting::new(
        "SVC_HOST_ACCESS",
        Kind::Choice(&[Word::built("local"), Word::built("deployed")]),
        MEANT,
        "deployed refuses hosts chosen by a tenant at a loopback, link-local or cloud metadata \
         address, and tool servers that are commands; private networks stay reachable. local \
         allows all of that, and is only for a machine where every token holder may run commands. \
         A value that is set always wins.",
    )
    .default_derived(
        "local in development, deployed otherwise",
        |_, development| Some(if development { "local" } else { "deployed" }.to_owned()),
    ),
    Setting::new(
        "SVC_HOST_ACCESS_ORIGINS",
        Kind::List(Item::Origin),
        Source::Ours,
        "Origins on this host that a tenant may choose all the same where SVC_HOST_ACCESS is \
         deployed, such as a model server's on loopback. Whoever may register a provider or a \
         tool can then call what listens there. It opens no link-local or metadata address, \
         not the authorization server, and nothing for webhooks.",
    )
    .default_described("none"),
    Setting::new(
        "SVC_DEV_HOST_ALIAS",
        Kind::Host,
        SPEC,
        "The host that calls to a loopback address connect to instead, where a tenant chose the \
         address: webhooks, HTTP tools, model providers. URL, Host header and TLS server name \
         stay as written.",
    )
    .development_only(),
    Setting::new(
        "SVC_FORWARD_PROXY",
        Kind::HttpUrl,
        Source::Ours,
        "The HTTP proxy through which model providers, identity providers and the collector of traces \
         are reached, as in http://proxy:3128, where SVC_FORWARD_PROXY_ORIGINS lists their origin. \
         Nothing else goes through it.",
    )
    .default_described("none: every connection is direct"),
    Setting::new(
        "SVC_FORWARD_PROXY_ORIGINS",
        Kind::List(Item::Origin),
        Source::Ours,
        "The origins that are reached through SVC_FORWARD_PROXY. The proxy looks their names up, so \
         the service cannot check their addresses.",
    )
    .default_described("none"),
    Setting::new(
        "SVC_FORWARD_PROXY_CREDENTIALS",
        Kind::Word { min: 3, max: 1024 },
        Source::Ours,
        "The user and the password for SVC_FORWARD_PROXY, as user:password.",
    )
    .secret()
    .default_described("none"),
    Setting::new(
        "SVC_OUTBOUND_CA_PATH",
        Kind::CertificateFile,
        Source::Ours,
        "Certificates of authorities that outbound TLS trusts besides the system's.",
    )
    .default_described("the system's authorities alone"),
];
