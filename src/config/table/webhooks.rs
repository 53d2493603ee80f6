//! The settings of outbound webhooks.

use super::setting::{Kind, Setting, Source, Word};

pub(super) static WEBHOOKS: &[Setting] = &[
    Setting::new(
        "SVC_WEBHOOK_PRIVATE_NETWORKS",
        Kind::Choice(&[Word::built("allow")]),
        Source::Named,
        "allow opens webhook receivers on private networks, over https only: 10.0.0.0/8, \
         172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 and fc00::/7. Metadata addresses inside \
         them, loopback and every other special network stay refused. This server's own private \
         addresses are judged as private ones, and where it listens is refused.",
    )
    .default_described("none: receivers must be on public addresses"),
    Setting::new(
        "SVC_WEBHOOK_TIMEOUT_MS",
        Kind::Integer {
            min: 100,
            max: 30_000,
            unit: "milliseconds",
        },
        Source::Ours,
        "How long one attempt may take, from the look-up of the name to the end of the answer.",
    )
    .default_value("10000"),
    Setting::new(
        "SVC_WEBHOOK_THREADS",
        Kind::Integer {
            min: 1,
            max: 256,
            unit: "",
        },
        Source::Ours,
        "Webhook attempts that this process makes at once at most. Three times as many deliveries at most wait in \
         the process for one of them to end; the rest waits in the database.",
    )
    .default_value("32"),
    Setting::new(
        "SVC_WEBHOOK_ENDPOINT_CONCURRENCY",
        Kind::Integer {
            min: 1,
            max: 64,
            unit: "",
        },
        Source::Ours,
        "Attempts to one webhook endpoint at once at most, over all processes; one that fails, is slow or has taken none \
         yet gets one at a time, and such ones together half of the threads.",
    )
    .default_value("8"),
    Setting::new(
        "SVC_WEBHOOK_RETENTION_DAYS",
        Kind::Integer {
            min: 14,
            max: 3650,
            unit: "days",
        },
        Source::Ours,
        "How long events, deliveries and attempts of webhooks are kept at least.",
    )
    .default_value("30"),
];
