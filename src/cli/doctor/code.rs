//! Every check of the doctor by its code, which stays the same once it was released: what it looks at,
//! what is wrong where it finds something, and what to do then. `docs/doctor.md` is made from it.

use serde::{Deserialize, Serialize};

/// What names a check. The order is that of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Code {
    Settings,
    SettingsFile,
    Files,
    License,
    AuditKey,
    Database,
    DatabaseVersion,
    DatabaseEncoding,
    DatabaseWritable,
    DatabasePrimary,
    DatabaseRights,
    Schema,
    Tenant,
    Connections,
    Clock,
    Disk,
    DatabaseDisk,
    Openfga,
    OpenfgaVersion,
    OpenfgaSchema,
    OpenfgaIndexes,
    AuthorizationStore,
    Permissions,
    Secrets,
    ToolSecrets,
    SecretUses,
    Runs,
    Approvals,
    Webhooks,
    SignIn,
    IdentityProviders,
    Console,
    Otlp,
    PayloadRetention,
    ForwardProxy,
    TlsRoots,
    Descriptors,
    Service,
}

/// What there is to say of a check.
pub(super) struct About {
    pub(super) code: Code,
    pub(super) name: &'static str,
    /// What it looks at.
    pub(super) looks_at: &'static str,
    /// What a warning or a fault means.
    pub(super) means: &'static str,
    /// What to do, where a finding has nothing of its own to say.
    pub(super) to_do: &'static str,
}

const fn about(
    code: Code,
    name: &'static str,
    looks_at: &'static str,
    means: &'static str,
    to_do: &'static str,
) -> About {
    About {
        code,
        name,
        looks_at,
        means,
        to_do,
    }
}

/// Every check, in the order of the report.
pub(super) static ALL: &[About] = &[
    about(
        Code::Settings,
        "settings",
        "Everything that `agent-runtime check-config` checks, except the license key.",
        "The server does not start with a fault. A warning is one that the server logs at its start.",
        "Correct the setting; `docs/settings.md` has each.",
    ),
    about(
        Code::SettingsFile,
        "settings-file",
        "The env file: that it exists, its owner and mode, and that systemd reads each line as intended.",
        "Others may read or change the settings, or the service gets a value that differs from \
         what the file seems to say.",
        "Run `agent-runtime setup`, which corrects owner and mode; write a value without `export`, and a comment on a line of its own.",
    ),
    about(
        Code::Files,
        "files",
        "Owner and mode of the credentials and their directory, and of the state directory.",
        "Others may read a secret, or the service cannot write its own directory.",
        "Run `agent-runtime setup`, which corrects owners and modes.",
    ),
    about(
        Code::License,
        "license",
        "That the license key was signed by a key that this build trusts, and when it expires.",
        "A warning comes 30 days before the end, and during the grace after it if the license has one; then the server does not start.",
        "Put a valid license key into SVC_LICENSE_KEY: `agent-runtime setup --license-file FILE`.",
    ),
    about(
        Code::AuditKey,
        "audit-key",
        "Where SVC_COMPLIANCE_CLASSIFIER purges access decisions: that SVC_AUDIT_SIGNING_KEY_PATH names a key, which signs how far.",
        "The server starts and purges without it. But whoever may write the tables can then pass a removal of old decisions off as a purge, and `agent-runtime audit verify` does not notice.",
        "Make a key, in a file of mode 0600: `openssl genpkey -algorithm ed25519`. On an installed host the file is `/etc/agent-runtime/credentials/SVC_AUDIT_SIGNING_KEY_PATH`, and the env file does not name it; elsewhere name it in SVC_AUDIT_SIGNING_KEY_PATH. Every replica needs it.",
    ),
    about(
        Code::Database,
        "database",
        "That the database of SVC_DATABASE_URL answers, for the role that it names.",
        "Nothing works without it.",
        "See that PostgreSQL runs and that SVC_DATABASE_URL names it; `agent-runtime setup` makes role and database.",
    ),
    about(
        Code::DatabaseVersion,
        "database-version",
        "That PostgreSQL is of version 14 or later.",
        "The server does not start.",
        "Upgrade PostgreSQL.",
    ),
    about(
        Code::DatabaseEncoding,
        "database-encoding",
        "That the database's encoding is UTF8.",
        "The server does not start.",
        "Make a database in UTF8, as `agent-runtime setup` does, and move the data with `agent-runtime backup` and `agent-runtime restore`.",
    ),
    about(
        Code::DatabaseWritable,
        "database-writable",
        "That the database is no standby and not read-only.",
        "Every write is answered 503.",
        "Name the primary server in SVC_DATABASE_URL, or take back default_transaction_read_only.",
    ),
    about(
        Code::DatabasePrimary,
        "database-primary",
        "Where SVC_DATABASE_URL names several hosts: which of them is the primary and on which timeline, and what each of the others is.",
        "A fault: no host is a primary, or an old primary lives on beside the new one. A warning: a host does not answer, so fewer are left to be promoted.",
        "See `patronictl list`, and `docs/high-availability.md`. Stop an old primary, and let it come back as a standby.",
    ),
    about(
        Code::DatabaseRights,
        "database-rights",
        "That the role may create tables, and read and write the existing ones.",
        "Requests that touch such a table fail.",
        "Grant the privileges as the tables' owner, or make the role their owner.",
    ),
    about(
        Code::Schema,
        "schema",
        "What `agent-runtime migrate --check` says.",
        "A fault keeps the server from starting. A warning names migrations that the next start applies.",
        "See `agent-runtime migrate --check`; an older program than the schema allows has to be upgraded.",
    ),
    about(
        Code::Tenant,
        "tenant",
        "That the tenant of SVC_TENANT_ID is one of the database's. A database without tenants gets it at the first start.",
        "A fault: the next start creates this tenant, new and empty, beside those of the database. A warning: SVC_TENANT_ID is not set, so each start creates a new tenant.",
        "Set SVC_TENANT_ID and SVC_SEED_USER_ID as they were. For a further tenant use `agent-runtime tenant create`.",
    ),
    about(
        Code::Connections,
        "connections",
        "Whether the connections of all replicas (`--replicas`) fit into what PostgreSQL allows beside its other clients.",
        "Under load requests wait for connections that the server refuses.",
        "Raise max_connections of PostgreSQL, or lower SVC_DATABASE_POOL_SIZE.",
    ),
    about(
        Code::Clock,
        "clock",
        "How far this host's clock is from the database's. If both are one host, its clock is compared with nothing.",
        "Above 2 s the times in records and tokens are doubtful; above 30 s it is a fault: tokens and keys end too early or too late, and from five minutes on receivers refuse webhooks.",
        "Keep both clocks by NTP: `timedatectl set-ntp true`.",
    ),
    about(
        Code::Disk,
        "disk",
        "Free space on the disk of the state directory.",
        "Below 10 %, and 5 GiB, it warns; below 2 %, and 512 MiB, it is a fault.",
        "Make room.",
    ),
    about(
        Code::DatabaseDisk,
        "database-disk",
        "Free space on the disk of the database's directory, if the database is on this host. Other disks, of tablespaces or of the write-ahead log, are not looked at.",
        "Below 10 %, and 5 GiB, it warns; below 2 %, and 512 MiB, it is a fault: a full disk stops every write. It also warns if PostgreSQL does not tell the directory to the service's role.",
        "Make room, or move the data to a larger disk.",
    ),
    about(
        Code::Openfga,
        "openfga",
        "That the authorization server of SVC_AUTHZ_API_URL serves, its database included.",
        "Every request that needs a check is answered 500. A warning: authorization is off, which is only for development.",
        "See `systemctl status agent-runtime-openfga` and its log; without one, set SVC_AUTHZ_API_URL.",
    ),
    about(
        Code::OpenfgaVersion,
        "openfga-version",
        "The version of the companion package's OpenFGA. OpenFGA reports its version to no client, \
         so for any other the schema's revision has to do.",
        "Versions before 1.22 have published security advisories.",
        "Upgrade to OpenFGA 1.22: `docs/openfga.md`.",
    ),
    about(
        Code::OpenfgaSchema,
        "openfga-schema",
        "The revision of the schema in OpenFGA's database (SVC_AUTHZ_DATABASE_URL): 6 with version 1.22, 5 with version 1.9.",
        "Below 4 OpenFGA does not serve. 4 and 5 are from before 1.22.",
        "Install the new companion package, which migrates before it starts; with an OpenFGA of your own run `openfga migrate` of the new version, then start that version: `docs/openfga.md`.",
    ),
    about(
        Code::OpenfgaIndexes,
        "openfga-indexes",
        "That no index in OpenFGA's database (SVC_AUTHZ_DATABASE_URL) is invalid, and that the index of revision 6 exists.",
        "A migration was interrupted while it built an index. PostgreSQL then maintains the index \
         and never uses it, and the migration counts it as done. Or the index was dropped: no \
         migration creates it again.",
        "As the database's owner: reindex index concurrently NAME.",
    ),
    about(
        Code::AuthorizationStore,
        "authorization-store",
        "That the authorization server has one store for each of the first 20 tenants, with this program's model.",
        "A fault: checks of that tenant answer 500. A warning: the next start of the server makes or upgrades it.",
        "Run `agent-runtime authz repair`.",
    ),
    about(
        Code::Permissions,
        "permissions",
        "Changes of permissions that the authorization server does not have yet. `agent-runtime \
         authz verify` compares everything.",
        "A running server applies them within seconds; those that stay cannot be applied.",
        "Run the doctor again in a minute; if they are still there: `agent-runtime authz verify`, \
         then `agent-runtime authz repair`.",
    ),
    about(
        Code::Secrets,
        "secrets",
        "That a value can be sealed and opened again, the key-management service included, and that the newest stored secret opens with these keys. Nothing is written.",
        "Secrets can be neither stored nor read, and webhooks are not signed. If only the stored one does not open, it was sealed with other keys.",
        "See `docs/secrets.md` and `docs/secrets-kms.md`.",
    ),
    about(
        Code::ToolSecrets,
        "tool-secrets",
        "That each secret a tool names is there, under the environment of SVC_ENVIRONMENT.",
        "Calls of the tool fail, and the model is told why.",
        "Put the secret under that environment and name: `PUT /v1/secrets/{environment}/{name}`. Or register the tool anew with another name.",
    ),
    about(
        Code::SecretUses,
        "secret-uses",
        "That each secret that a tool names has a use for the tool's origin and project, and that each use has a secret, under the environment of SVC_ENVIRONMENT.",
        "Calls of a tool without a use are not made, and the model is told why. A use without a secret is of no effect; whoever puts the secret sends it there.",
        "Create the use as a tenant admin: `agent-runtime secrets uses add NAME ORIGIN`. Delete a use that nothing needs, or put its secret.",
    ),
    about(
        Code::Runs,
        "runs",
        "That every run that has not finished has a job that will carry it on, that a run whose children have ended was woken, and that runs are not held.",
        "Such a run stays as it is for ever. Runs that are held wait until they are released.",
        "Cancel the runs that are named. It is a fault of this program: report it with the output of `agent-runtime doctor --json`.",
    ),
    about(
        Code::Approvals,
        "approvals",
        "How many approvals wait and since when, that each whose time is over has a job that closes it, and that somebody may decide each.",
        "A fault: an approval waits for ever. A warning: nobody may decide, so its time will run out.",
        "Cancel the runs of the approvals that are named. It is a fault of this program: report it with the output of `agent-runtime doctor --json`.",
    ),
    about(
        Code::Webhooks,
        "webhooks",
        "That there is a secrets backend to sign for the registered webhook endpoints, and that the newest attempt at each succeeded. At most 20 that failed are named.",
        "A fault: deliveries fail until there is a backend. A warning: the receivers that are named do not take their events; the time of a delivery is over after ten attempts.",
        "Set SVC_SECRETS_BACKEND, or unregister the endpoints.",
    ),
    about(
        Code::SignIn,
        "sign-in",
        "That SVC_PUBLIC_URL leads to this server, and that the server there knows it for its own address.",
        "Nobody signs in with a browser: a proxy changes the header Host, or the address is another server's.",
        "Let the proxy pass the header Host on as it came (`docs/proxy.md`), and set SVC_PUBLIC_URL to the address that people open: `docs/sign-in.md`.",
    ),
    about(
        Code::IdentityProviders,
        "identity-providers",
        "That each identity provider of SVC_IDENTITY_PROVIDERS_PATH can be used to sign in: its document, its keys, its algorithms and its clock. It is asked as a sign-in does, within SVC_SIGN_IN_TIMEOUT_MS, without a person.",
        "Nobody signs in by it.",
        "See `docs/sign-in.md`.",
    ),
    about(
        Code::Console,
        "console",
        "That the console is served at SVC_PUBLIC_URL, with the content security policy that it was sent with.",
        "The console's page stays blank, or is not there.",
        "Let the proxy pass /console/ on, and add no content security policy of its own: `docs/console.md`.",
    ),
    about(
        Code::Otlp,
        "otlp",
        "That the collector of traces of SVC_OTLP_ENDPOINT takes an export, of no spans, with the headers of SVC_OTLP_HEADERS.",
        "The server works; its spans are dropped.",
        "See that an OpenTelemetry collector listens there for OTLP over HTTP (not gRPC), and takes JSON: `docs/traces.md`.",
    ),
    about(
        Code::PayloadRetention,
        "payload-retention",
        "With SVC_PAYLOAD_RETENTION_DAYS: that what runs said is erased within a day of its time, and conversations within a day of the request.",
        "It is still stored, and can be read.",
        "See that a server runs, and its log: `Maintenance of the tables of runs failed`, or `A conversation could not be erased`.",
    ),
    about(
        Code::ForwardProxy,
        "forward-proxy",
        "That SVC_FORWARD_PROXY reaches the origins of SVC_FORWARD_PROXY_ORIGINS, of them the first five: each is asked for `/`, and any answer will do.",
        "Model providers there cannot be asked, and spans do not arrive.",
        "See that the proxy runs, lets this host in and allows these origins: `docs/forward-proxy.md`.",
    ),
    about(
        Code::TlsRoots,
        "tls-roots",
        "That the system's certificate authorities can be read.",
        "Without them no https address can be reached: model providers, tools, webhooks.",
        "Install the authorities (`apt-get install ca-certificates`), or name a file of them in SVC_OUTBOUND_CA_PATH.",
    ),
    about(
        Code::Descriptors,
        "descriptors",
        "That the limit on the file descriptors of the service's process is above what its settings allow: client connections, runs, webhook attempts and connections to the database. The limit is that of the unit, or else of the doctor's own process.",
        "Before the settings' own bounds are reached, client connections are refused and runs cannot connect to models and tools.",
        "Raise the limit of the process, such as `LimitNOFILE=65536` in a drop-in (`systemctl edit agent-runtime`) or `ulimit -n 65536`, and start the service again; or lower SVC_MAX_CONNECTIONS.",
    ),
    about(
        Code::Service,
        "service",
        "The unit agent-runtime.service, where systemd runs, and whether a drop-in gives it settings that the doctor does not see.",
        "The service failed, is not started, or does not start at boot. A drop-in: the other checks may have looked at other settings than the service has.",
        "See `systemctl status agent-runtime` and `journalctl -u agent-runtime`.",
    ),
];

impl Code {
    pub(super) fn about(self) -> &'static About {
        // The codes are in the order of the enum; a test checks it.
        &ALL[self as usize]
    }

    pub(super) fn name(self) -> &'static str {
        self.about().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn each_code_has_its_place_and_its_name() {
        for (index, about) in ALL.iter().enumerate() {
            assert_eq!(about.code as usize, index, "{}", about.name);
            assert_eq!(serde_json::json!(about.code), about.name);
            for text in [about.looks_at, about.means, about.to_do] {
                assert!(text.ends_with('.'), "{}: {text}", about.name);
            }
        }
        assert_eq!(ALL.len(), Code::Service as usize + 1);
    }

    #[test]
    fn the_document_has_every_check() {
        let mut table = String::from(
            "| code | looks at | a warning or a fault | what to do |\n|---|---|---|---|\n",
        );
        for about in ALL {
            writeln!(
                table,
                "| `{}` | {} | {} | {} |",
                about.name, about.looks_at, about.means, about.to_do
            )
            .unwrap();
        }
        crate::config::generated::part("docs/doctor.md", "checks", &table, "doctor::code");
    }
}
