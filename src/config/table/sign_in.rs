//! How people sign in with a browser.

use super::setting::{Kind, Setting, Source, Word};

const fn integer(
    name: &'static str,
    most: u64,
    unit: &'static str,
    meaning: &'static str,
) -> Setting {
    let kind = Kind::Integer {
        min: 1,
        max: most,
        unit,
    };
    Setting::new(name, kind, Source::Ours, meaning)
}

pub(super) static SIGN_IN: &[Setting] = &[
    Setting::new(
        "SVC_PUBLIC_URL",
        Kind::HttpUrl,
        Source::Ours,
        "The server's address as browsers see it, as in https://agents.example.com: an https origin, \
         or http on a loopback host. Sign-in is taken at this address alone. Unset: in development \
         at any loopback address; otherwise nobody signs in with a browser.",
    ),
    Setting::new(
        "SVC_TOKEN_SIGN_IN",
        Kind::Choice(&[Word::built("on"), Word::built("admins"), Word::built("off")]),
        Source::Ours,
        "Who may sign in with a bearer token of their own: everybody, tenant admins, or nobody. \
         Sessions of those who may not any more end. Enrolment codes are taken whatever it says.",
    )
    .default_value("on"),
    integer(
        "SVC_SESSION_IDLE_MINUTES",
        43_200,
        "minutes",
        "After this time without a request by its person a session ends. A session keeps the time that \
         it was opened with, unless this one is shorter.",
    )
    .default_value("240"),
    integer(
        "SVC_SESSION_HOURS",
        720,
        "hours",
        "After this time a session ends, however much it is used. A session keeps the time that it was \
         opened with, unless this one is shorter.",
    )
    .default_value("24"),
    Setting::new(
        "SVC_IDENTITY_PROVIDERS_PATH",
        Kind::AbsolutePath,
        Source::Ours,
        "A JSON file of the identity providers by which people sign in, of all tenants: docs/sign-in.md. \
         Root owns it, or its mode is 0640 or stricter. While it is set, the providers of the file alone \
         serve, and nobody changes providers or sign-in settings through the API. It is read at the start.",
    )
    .default_described("none: tenants register their own"),
    Setting::new(
        "SVC_SIGN_IN_TIMEOUT_MS",
        Kind::Integer {
            min: 500,
            max: 60_000,
            unit: "milliseconds",
        },
        Source::Ours,
        "How long the requests to an identity provider may take together when somebody signs in: its \
         document, its keys, the exchange of the code and userinfo.",
    )
    .default_value("5000"),
    Setting::new(
        "SVC_DEV_CONSOLE_LOGIN",
        Kind::Boolean,
        Source::Named,
        "true lets the console log in by itself: GET /__dev/bearer hands it the API token, to \
         requests addressed to a loopback host only.",
    )
    .default_value("false")
    .development_only(),
];
