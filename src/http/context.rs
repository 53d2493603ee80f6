//! What a handler can use: the request, the caller, and the service.

use super::door;
use super::external_calls::{ExternalCalls, ExternalPermit};
use super::flow_cookie;
use super::origin::{self, Own};
use super::provider_calls::{ProviderCalls, ProviderPermit};
use super::sse::Streams;
use crate::audit::Audit;
use crate::authn::{Authn, Credential};
use crate::authz::desired_tuples::Object;
use crate::authz::permissions::Permissions;
use crate::authz::{Admission, Checker, Facts, Tickets};
use crate::config::license::Claims;
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::log::trace::TraceContext;
use crate::oidc::Oidc;
use crate::outbound::{Failure, Inspection, Outbound, Policy};
use crate::proof::{Caller, Capability};
use crate::runtime::{ModelKeys, Runtime, StartedBy};
use crate::secrets::Secrets;
use crate::store::{Store, Tx};
use crate::traces::{Traces, Value};
use crate::webhooks::Webhooks;
use bytes::Bytes;
use std::io::Read;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

/// What every request shares.
pub struct Shared {
    /// The database.
    pub store: Store,
    /// Time and ids.
    pub clock: Clock,
    /// Who is it.
    pub authn: Authn,
    /// The record of decisions.
    pub audit: Audit,
    /// Where access is decided; none while authorization is off.
    pub admission: Option<Arc<Admission>>,
    /// Runs.
    pub runtime: Runtime,
    /// The way out, for judging a URL when it is registered.
    pub outbound: Outbound,
    /// Signs people in at identity providers.
    pub oidc: Oidc,
    /// What a tenant may reach.
    pub host_access: crate::outbound::HostAccess,
    /// The API keys that a tenant's model provider may name.
    pub model_keys: ModelKeys,
    /// What the license says; none in development.
    pub license: Option<Claims>,
    /// Open streams.
    pub streams: Streams,
    /// Origins of browsers that may follow a run.
    pub allowed_origins: Vec<String>,
    /// Where secrets live.
    pub secrets: Secrets,
    /// Outbound webhooks.
    pub webhooks: Webhooks,
    /// For requests that wait for what is no part of this deployment.
    pub external_calls: ExternalCalls,
    /// For requests that wait for identity providers.
    pub provider_calls: ProviderCalls,
    /// Who may do what; none: authorization is off.
    pub permissions: Option<Permissions>,
    /// Takes the spans of requests.
    pub traces: Traces,
}

/// The parameters in a path, by name, as they were sent.
pub type Parameters<'p> = Vec<(String, &'p str)>;

/// What checks and inputs look at of the route that a request found.
pub(super) struct Matched {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) capability: Option<Capability>,
    pub(super) body_bytes: u64,
    pub(super) is_stream: bool,
}

/// Parameters of paths that records carry.
const NAMED: [&str; 4] = ["projectId", "runId", "agentId", "toolId"];

/// What records of a request carry as far as it is known.
pub(super) struct Known {
    /// Tenant and user.
    caller: Option<(Uuid, Uuid)>,
    /// What [`NAMED`] names.
    named: [Option<Uuid>; NAMED.len()],
}

impl Known {
    pub(super) fn new(caller: Option<&Caller>, parameters: &Parameters<'_>) -> Self {
        Self {
            caller: caller.map(|caller| (caller.tenant_id, caller.user_id)),
            named: NAMED.map(|name| {
                let mut parameters = parameters.iter();
                let (_, raw) = parameters.find(|(parameter, _)| parameter == name)?;
                raw.parse().ok()
            }),
        }
    }
}

impl Known {
    /// The same for a span.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'static str, Value)> {
        const NAMES: [&str; NAMED.len()] = [
            "agent_runtime.project.id",
            "agent_runtime.run.id",
            "gen_ai.agent.id",
            "agent_runtime.tool.id",
        ];
        let tenant = self.caller.map(|(tenant_id, _)| tenant_id);
        let named = NAMES.into_iter().zip(self.named);
        std::iter::once(("agent_runtime.tenant.id", tenant))
            .chain(named)
            .filter_map(|(name, id)| Some((name, id?.into())))
    }
}

impl slog::KV for Known {
    fn serialize(&self, _: &slog::Record<'_>, out: &mut dyn slog::Serializer) -> slog::Result {
        if let Some((tenant_id, user_id)) = self.caller {
            out.emit_arguments("userId", &format_args!("{user_id}"))?;
            out.emit_arguments("tenantId", &format_args!("{tenant_id}"))?;
        }
        for (name, id) in NAMED.into_iter().zip(self.named) {
            if let Some(id) = id {
                out.emit_arguments(name, &format_args!("{id}"))?;
            }
        }
        Ok(())
    }
}

/// The API description of the mounted routes, put together when it is first asked for: most servers of the tests are not,
/// and it was a tenth of their time.
pub(super) type Description = LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>;

/// One request.
pub struct Cx<'a> {
    pub(super) shared: &'a Shared,
    pub(super) request: &'a rouille::Request,
    pub(super) parameters: Parameters<'a>,
    pub(super) context: &'a Arc<door::Context>,
    pub(super) description: &'a Description,
    pub(super) log: slog::Logger,
    /// Wiped when the request is over: it may hold a secret.
    pub(super) body: OnceLock<Zeroizing<Vec<u8>>>,
    /// Who it turned out to be, for the log.
    pub(super) identified: OnceLock<Caller>,
    pub(super) matched: Matched,
    pub(super) facts: OnceLock<Facts>,
    pub(super) tickets: &'a Tickets,
}

impl Cx<'_> {
    /// The database.
    pub fn store(&self) -> &Store {
        &self.busy().store
    }

    /// For a handler that goes on to something that takes time: the request's decisions are written meanwhile.
    fn busy(&self) -> &Shared {
        self.tickets.start_writing();
        self.shared
    }

    /// Runs `work` in a transaction, and commits it once the request's decisions are on disk
    /// (`audit-before-commit`).
    ///
    /// # Errors
    /// Those of `work`; `database-unavailable`; `audit-unavailable`.
    pub fn transact<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        self.store().transact(|tx| {
            let done = work(tx)?;
            self.recorded()?;
            Ok(done)
        })
    }

    /// Waits until the request's decisions are on disk: for a change that is committed elsewhere.
    ///
    /// # Errors
    /// `audit-unavailable`: nothing may be changed.
    pub fn recorded(&self) -> Result<()> {
        self.tickets.wait()
    }

    /// Whether nothing waits for the disk before this request may change anything: it stands on no decision. Then a
    /// change that is one statement needs no transaction around it.
    pub fn is_undecided(&self) -> bool {
        self.tickets.is_empty()
    }

    /// Writes the objects that the request marked to the authorization server (`postgres-is-the-truth`). Called
    /// after every change of a role, also where nothing was left to change.
    ///
    /// # Errors
    /// `authorization-unavailable`: the change stands, and is applied later.
    pub fn apply_permissions(&self, tenant_id: Uuid, objects: &[Object]) -> Result<()> {
        let permissions = self.busy().permissions.as_ref();
        permissions.map_or(Ok(()), |permissions| permissions.apply(tenant_id, objects))
    }

    /// A permit to wait for what others answer: name servers, key services, receivers; for identity
    /// providers there is [`Self::provider_permit`]. Taken before anything is changed, and held as long as it waits.
    ///
    /// # Errors
    /// `overloaded`: too many requests wait already, of this tenant or in all.
    pub fn external_call_permit(&self, tenant_id: Uuid) -> Result<ExternalPermit> {
        let calls = &self.busy().external_calls;
        calls.acquire_briefly(tenant_id).ok_or_else(|| {
            Error::new(
                Code::Overloaded,
                "Too many requests wait for name servers, key services or receivers. Try again shortly.",
            )
        })
    }

    /// A permit to wait for an identity provider, held as long as it waits.
    ///
    /// # Errors
    /// `overloaded`: too many requests wait for this provider, for those of its tenant, or for all.
    pub fn provider_permit(&self, tenant_id: Uuid, provider_id: Uuid) -> Result<ProviderPermit> {
        let calls = &self.busy().provider_calls;
        calls
            .acquire_briefly(tenant_id, provider_id)
            .ok_or_else(|| {
                Error::new(
                    Code::Overloaded,
                    "Too many requests wait for identity providers. Try again shortly.",
                )
            })
    }

    /// Now.
    pub fn now(&self) -> OffsetDateTime {
        self.shared.clock.now()
    }

    /// A new row id.
    pub fn new_id(&self) -> Uuid {
        self.shared.clock.new_id()
    }

    /// Who is it.
    pub fn authn(&self) -> &Authn {
        &self.busy().authn
    }

    /// Runs.
    pub fn runtime(&self) -> &Runtime {
        &self.busy().runtime
    }

    /// Open streams.
    pub fn streams(&self) -> &Streams {
        &self.busy().streams
    }

    /// The API description of the mounted routes.
    pub(super) fn description(&self) -> &Bytes {
        self.description
    }

    /// The request's trace.
    pub fn trace(&self) -> &TraceContext {
        self.context.trace()
    }

    /// What starts a run that this request makes.
    pub fn started_by(&self) -> StartedBy {
        StartedBy {
            request_id: self.context.request_id(),
            traceparent: self.trace().traceparent(),
        }
    }

    /// The request's logger, with its ids.
    pub fn log(&self) -> &slog::Logger {
        &self.log
    }

    /// Where secrets live.
    pub fn secrets(&self) -> &Secrets {
        &self.busy().secrets
    }

    /// Outbound webhooks.
    pub fn webhooks(&self) -> &Webhooks {
        &self.busy().webhooks
    }

    /// The API keys that a tenant's model provider may name.
    pub fn model_keys(&self) -> &ModelKeys {
        &self.shared.model_keys
    }

    /// What the license says; none in development.
    pub fn license(&self) -> Option<&Claims> {
        self.shared.license.as_ref()
    }

    /// The request's logger, with what is known of its caller and of the objects that its path names.
    pub(super) fn known_log(&self) -> slog::Logger {
        let known = Known::new(self.identified.get(), &self.parameters);
        self.log.new(slog::o!(known))
    }

    /// Checks a URL that the tenant chose against the policy.
    ///
    /// # Errors
    /// `host-access-denied`, `invalid-body`.
    pub fn check_tenant_url(&self, url: &str) -> Result<()> {
        self.shared
            .outbound
            .check_url(self.tenant_policy(), url)
            .map(|_| ())
    }

    /// Checks the URL of a webhook receiver (section 6.1), with a look-up of at most `timeout`.
    ///
    /// # Errors
    /// It is no URL, or its form alone is refused.
    pub fn inspect_receiver(&self, url: &str, timeout: Duration) -> Result<Inspection, Failure> {
        let policy = self.shared.webhooks.policy();
        self.shared.outbound.inspect(policy, url, timeout)
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.context.header(name)
    }

    /// The credential, of whichever kind.
    ///
    /// # Errors
    /// `unauthenticated`, `csrf-origin-mismatch`, `database-unavailable`.
    pub fn credential(&self) -> Result<Credential> {
        origin::credential(self.authn(), self.context, self.matched.is_stream)
    }

    /// The server's own origin, from a page of which the request signs somebody in.
    ///
    /// # Errors
    /// `csrf-origin-mismatch`, `not-configured`.
    pub(super) fn signing_in(&self) -> Result<Own> {
        origin::signing_in(self.shared.authn.sign_in(), self.context)
    }

    /// The server's own origin, to which a browser comes back from an identity provider.
    ///
    /// # Errors
    /// `csrf-origin-mismatch`, `not-configured`.
    pub(super) fn returning(&self) -> Result<Own> {
        origin::returning(self.shared.authn.sign_in(), self.context)
    }

    /// The sign-ins through identity providers that the browser has begun.
    pub(crate) fn flows(&self, own: &Own) -> Vec<flow_cookie::Cookie> {
        flow_cookie::all(own, origin::cookies(self.context))
    }

    /// Signs people in at identity providers.
    pub fn oidc(&self) -> &Oidc {
        &self.busy().oidc
    }

    /// What the server reaches of what a tenant named.
    pub fn tenant_policy(&self) -> Policy {
        Policy::Tenant(self.shared.host_access)
    }

    /// The server's own origin, as the request names it.
    pub(crate) fn own_origin(&self) -> Option<Own> {
        Own::of(self.shared.authn.sign_in(), self.context)
    }

    /// The value of the session that the browser keeps at this address.
    pub(crate) fn session_value(&self, own: &Own) -> Option<&str> {
        own.session(self.context)
    }

    /// The request is addressed to this very host, by one of the three names that mean it (section 1.3), and comes from a
    /// page that was, or from none.
    pub(super) fn is_loopback_page(&self) -> bool {
        origin::is_loopback_page(self.context)
    }

    /// The other end of the connection.
    pub fn client_address(&self) -> std::net::IpAddr {
        self.context.peer().ip()
    }

    /// The caller behind a bearer token or a session. A public run token has none.
    ///
    /// # Errors
    /// `unauthenticated`, `csrf-origin-mismatch`, `public-run-token-not-allowed`, `database-unavailable`.
    pub fn caller(&self) -> Result<Caller> {
        match self.credential()? {
            Credential::Bearer(known) | Credential::Session(known) => {
                Ok(self.identify(known.caller))
            }
            Credential::Public(_) => Err(Error::new(
                Code::PublicRunTokenNotAllowed,
                "A public run token opens the progress of its runs alone. Use a bearer token here.",
            )),
        }
    }

    pub(super) fn identify(&self, caller: Caller) -> Caller {
        self.identified.get_or_init(|| caller).clone()
    }

    /// Whether authorization is on.
    pub fn enforces(&self) -> bool {
        self.shared.admission.is_some()
    }

    /// Asks for the caller behind a bearer token or a session.
    ///
    /// # Errors
    /// As [`Cx::caller`].
    pub fn checker(&self) -> Result<Checker<'_>> {
        Ok(self.checker_of(self.caller()?))
    }

    /// Asks for somebody whom the request made known: by a credential, or by an enrolment code or a token in its body.
    pub fn checker_of(&self, caller: Caller) -> Checker<'_> {
        let facts = self.facts.get_or_init(|| Facts {
            request_id: self.context.request_id(),
            trace_id: self.trace().trace_id(),
            route: format!("{} {}", self.matched.method, self.matched.path),
            client_address: self.context.peer().ip(),
            capability: self.matched.capability,
        });
        let admission = self.shared.admission.as_deref();
        Checker::new(self.store(), admission, caller, facts, self.tickets)
    }

    /// A path parameter, percent-decoded.
    ///
    /// # Errors
    /// `not-found`: it is not text.
    pub fn parameter(&self, name: &str) -> Result<String> {
        let raw = self
            .parameters
            .iter()
            .find(|(parameter, _)| parameter == name)
            .map(|(_, value)| *value)
            .ok_or_else(|| Error::internal(format!("the path has no parameter {name}")))?;
        percent_encoding::percent_decode_str(raw)
            .decode_utf8()
            .map(std::borrow::Cow::into_owned)
            .ok()
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| Error::not_found("object", "with this id"))
    }

    /// The query as it was sent.
    pub fn query_text(&self) -> &str {
        self.request.raw_query_string()
    }

    /// The body, which the door has read whole and bounded.
    ///
    /// # Errors
    /// `internal`: it was read before.
    pub fn body(&self) -> Result<&[u8]> {
        if let Some(body) = self.body.get() {
            return Ok(body);
        }
        // Long enough at once: what a buffer leaves behind as it grows is not wiped.
        let declared = self
            .header("content-length")
            .and_then(|text| text.parse().ok());
        let most = usize::try_from(self.matched.body_bytes).unwrap_or(usize::MAX);
        let mut bytes = Zeroizing::new(Vec::with_capacity(
            declared.map_or(0, |n: usize| n.min(most)),
        ));
        if let Some(mut data) = self.request.data() {
            data.read_to_end(&mut bytes).map_err(Error::internal)?;
        }
        Ok(self.body.get_or_init(|| bytes))
    }
}
