//! The way out itself: its options, its resolvers, its trusted certificates, and the checks of a host.

use super::address;
use super::cancel::Token;
use super::endpoints::{self, Endpoint, OperatorEndpoint};
use super::failure::{Failure, Kind};
use super::pem;
use super::policy::{self, Policy};
use super::resolver::{self, Lookup, Resolver, look_up};
use super::urls::{invalid, parse};
use super::webhook::WebhookAccess;
use crate::config::{ForwardProxy, Origin, Settings};
use crate::log::Outages;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::RustlsConnector;
use url::{Host, Url};

/// Options of the way out.
pub struct Options {
    /// `SVC_DEV_HOST_ALIAS`: the host to connect to in place of a loopback address that a tenant
    /// chose.
    pub host_alias: Option<String>,
    /// `SVC_HOST_ACCESS_ORIGINS`: origins on this host that a tenant may choose under
    /// [`HostAccess::Deployed`].
    pub host_access_origins: Vec<Origin>,
    /// What no tenant may reach.
    pub operator_endpoints: Vec<OperatorEndpoint>,
    /// `SVC_FORWARD_PROXY`: what clients of [`Outbound::client_through_proxy`] reach listed origins
    /// through.
    pub forward_proxy: Option<ForwardProxy>,
    /// Certificates in PEM to trust beside the system's own.
    pub extra_roots_pem: Vec<u8>,
    /// Resolver threads for what the operator configured.
    pub operator_resolver_threads: usize,
    /// Resolver threads for hosts that tenants chose, started with the first one.
    pub resolver_threads: usize,
    /// Further resolver threads for webhook receivers, started with the first one. Half of them
    /// serve receivers that answered recently.
    pub receiver_resolver_threads: usize,
    /// Look-ups that may queue.
    pub resolver_queue: usize,
    /// Replaces the system's resolver (tests).
    pub lookup: Option<Arc<Lookup>>,
}

impl Options {
    /// As the settings say. A collector that is sent headers asks for a token, so tenants may reach it.
    pub fn from_settings(settings: &Settings) -> Self {
        let outbound = &settings.outbound;
        let collector = settings.values.text("SVC_OTLP_ENDPOINT");
        let collector = collector.filter(|_| !settings.values.is_given("SVC_OTLP_HEADERS"));
        let server = settings.authorization_url.as_deref();
        Self {
            host_alias: outbound.dev_host_alias.clone(),
            host_access_origins: outbound.host_access_origins.clone(),
            operator_endpoints: OperatorEndpoint::all(server, collector.as_deref()),
            forward_proxy: outbound.forward_proxy.clone(),
            extra_roots_pem: pem::pem(&outbound.extra_certificates),
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host_alias: None,
            host_access_origins: Vec::new(),
            operator_endpoints: Vec::new(),
            forward_proxy: None,
            extra_roots_pem: Vec::new(),
            operator_resolver_threads: 4,
            resolver_threads: 8,
            receiver_resolver_threads: 32,
            resolver_queue: 256,
            lookup: None,
        }
    }
}

/// Those whose absence the log tells of. Webhook receivers are not among them: their deliveries say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The authorization server.
    AuthorizationServer,
    /// A key-management service, or what gives the credentials for one.
    KeyManagement,
    /// A model provider.
    ModelProvider,
    /// A tool.
    Tool,
    /// An identity provider.
    IdentityProvider,
}

impl Peer {
    /// Every value.
    pub const ALL: [Self; 5] = [
        Self::AuthorizationServer,
        Self::KeyManagement,
        Self::ModelProvider,
        Self::Tool,
        Self::IdentityProvider,
    ];

    /// As the subject of a sentence.
    const fn name(self) -> &'static str {
        match self {
            Self::AuthorizationServer => "The authorization server",
            Self::KeyManagement => "The key-management service",
            Self::ModelProvider => "A model provider",
            Self::Tool => "A tool",
            Self::IdentityProvider => "An identity provider",
        }
    }
}

/// The way out. Clones share the resolver and the trusted certificates.
#[derive(Clone)]
pub struct Outbound(pub(super) Arc<Inner>);

/// The result of checking a URL.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The URL, normalised.
    pub url: Url,
    /// Every present address of its host, refused ones included. Empty if the name itself was
    /// refused or did not resolve.
    pub addresses: Vec<IpAddr>,
    /// Whether an exchange would be allowed.
    pub verdict: Verdict,
}

/// Whether an exchange would be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It would be allowed.
    Allowed,
    /// It would be refused by the rule that [`Failure::rule`] names.
    Refused(Failure),
    /// The name does not resolve, or not in time.
    Unresolved(Failure),
}

pub(super) struct Inner {
    /// For what the operator configured. The names that tenants choose, whose name servers may not
    /// answer, never occupy these threads: authorization and secrets must not wait for them.
    operator: Resolver,
    /// For hosts that tenants chose, but for receivers of webhooks.
    tenants: Started,
    /// Two pools: for receivers that answered recently, and for all others.
    receivers: [Started; 2],
    host_alias: Option<Host>,
    host_access_origins: Vec<Origin>,
    endpoints: Vec<Endpoint>,
    pub(super) forward_proxy: Option<ForwardProxy>,
    pub(super) tls: TlsConfig,
    pub(super) rustls: Arc<RustlsConnector>,
    outages: OnceLock<[Outages; Peer::ALL.len()]>,
}

/// Resolver threads that are started with the first look-up. A name with dead name servers occupies
/// a thread as long as the system keeps asking them. So there are several pools, and receivers that
/// answered recently have one of their own.
struct Started {
    resolver: OnceLock<Resolver>,
    name: &'static str,
    threads: usize,
    queue: usize,
    lookup: Arc<Lookup>,
}

impl Started {
    fn with_first(name: &'static str, threads: usize, queue: usize, lookup: &Arc<Lookup>) -> Self {
        Self {
            resolver: OnceLock::new(),
            name,
            threads,
            queue,
            lookup: Arc::clone(lookup),
        }
    }

    fn resolver(&self) -> Result<&Resolver, Failure> {
        if let Some(resolver) = self.resolver.get() {
            return Ok(resolver);
        }
        let started = Resolver::start(self.name, self.threads, self.queue, &self.lookup);
        let started = started.map_err(|error| {
            let message = format!("The host name cannot be looked up: {error}.");
            Failure::new(Kind::Resolve, message)
        })?;
        // If two start at once, one stays; the threads of the other end with it.
        Ok(self.resolver.get_or_init(|| started))
    }
}

impl Outbound {
    /// As the settings say.
    ///
    /// # Errors
    /// A certificate is no use.
    pub fn from_settings(settings: &Settings) -> crate::error::Result<Self> {
        Self::new(Options::from_settings(settings))
    }

    /// Reads the trusted certificates and starts the operator's resolver threads.
    pub fn new(options: Options) -> crate::error::Result<Self> {
        let lookup = options.lookup.unwrap_or_else(|| Arc::new(resolver::system));
        let (threads, queue) = (options.operator_resolver_threads, options.resolver_queue);
        let operator = Resolver::start("resolve-own", threads, queue, &lookup)
            .map_err(crate::error::Error::internal)?;
        let host_alias = match options.host_alias {
            Some(alias) => Some(parse_alias(&alias)?),
            None => None,
        };
        let endpoints = compared(&options.operator_endpoints)?;
        check_host_access_origins(&options.host_access_origins, &options.operator_endpoints)
            .map_err(|problem| invalid(format!("SVC_HOST_ACCESS_ORIGINS {problem}. Remove it.")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots(
                &options.extra_roots_pem,
            )?)))
            .unversioned_rustls_crypto_provider(provider)
            .build();
        Ok(Self(Arc::new(Inner {
            operator,
            tenants: Started::with_first("resolve", options.resolver_threads, queue, &lookup),
            receivers: ["resolve-hook", "resolve-doubt"].map(|name| {
                let threads = options.receiver_resolver_threads.div_ceil(2);
                Started::with_first(name, threads, queue, &lookup)
            }),
            host_alias,
            host_access_origins: options.host_access_origins,
            endpoints,
            forward_proxy: options.forward_proxy,
            tls,
            rustls: Arc::new(RustlsConnector::default()),
            outages: OnceLock::new(),
        })))
    }

    /// Tells the log from here on which peers are away.
    pub fn log_outages(&self, log: &slog::Logger) {
        let outages = Peer::ALL.map(|peer| Outages::new(log.clone(), peer.name()));
        // Only the first logger counts.
        let _ = self.0.outages.set(outages);
    }

    /// Whether the log has told that one of these peers is away.
    pub fn is_away(&self, peer: Peer) -> bool {
        self.away(peer) > 0
    }

    /// How many of these peers are away, as far as is known.
    pub fn away(&self, peer: Peer) -> usize {
        self.outages(peer).map_or(0, Outages::count)
    }

    pub(super) fn outages(&self, peer: Peer) -> Option<&Outages> {
        let outages = self.0.outages.get()?;
        Peer::ALL
            .iter()
            .zip(outages)
            .find(|(one, _)| **one == peer)
            .map(|(_, outages)| outages)
    }

    /// Checks a URL before it is stored: its syntax, and its host as far as possible without a
    /// look-up. Each exchange checks it again. Returns the normalised URL.
    pub fn check_url(&self, policy: Policy, text: &str) -> crate::error::Result<Url> {
        let url = parse(policy, text)?;
        self.check_host(self.as_reached(policy), &url)?;
        Ok(url)
    }

    /// Checks a URL as an exchange would, with a look-up of at most `timeout`, without connecting.
    ///
    /// # Errors
    /// [`Kind::Invalid`]: the text is not a URL. [`Kind::Refused`]: its form alone is refused
    /// (another scheme, a user name or password, a fragment).
    pub fn inspect(
        &self,
        policy: Policy,
        text: &str,
        timeout: Duration,
    ) -> Result<Inspection, Failure> {
        let url = parse(policy, text)?;
        let policy = self.as_reached(policy);
        let deadline = Instant::now() + timeout;
        let mut addresses = Vec::new();
        let verdict = match self.check_host(policy, &url) {
            Err(failure) => {
                addresses.extend(failure.address());
                Verdict::Refused(failure)
            }
            Ok(()) => match self.resolver(policy, false).and_then(|resolver| {
                self.look_up_url(policy, resolver, &url, deadline, &Token::new())
            }) {
                Err(failure) => Verdict::Unresolved(failure),
                Ok(found) => {
                    addresses = found;
                    self.judge(policy, &url, &addresses, deadline)
                }
            },
        };
        Ok(Inspection {
            url,
            addresses,
            verdict,
        })
    }

    fn judge(&self, policy: Policy, url: &Url, addresses: &[IpAddr], deadline: Instant) -> Verdict {
        let checked = self.check_each(policy, url, addresses);
        let token = Token::new();
        match checked.and_then(|()| {
            endpoints::check_reached(
                &self.0.endpoints,
                &self.0.operator,
                policy,
                url,
                addresses,
                deadline,
                &token,
            )
        }) {
            Ok(()) => Verdict::Allowed,
            Err(failure) if failure.kind() == Kind::Busy => Verdict::Unresolved(failure),
            Err(failure) => Verdict::Refused(failure),
        }
    }

    /// The addresses that an exchange may connect to, each checked. `is_well` as in
    /// [`Client::set_well`].
    pub(super) fn addresses(
        &self,
        policy: Policy,
        is_well: bool,
        url: &Url,
        deadline: Instant,
        token: &Token,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let policy = self.as_reached(policy);
        self.check_host(policy, url)?;
        let resolver = self.resolver(policy, is_well)?;
        let mut addresses = self.look_up_url(policy, resolver, url, deadline, token)?;
        self.check_each(policy, url, &addresses)?;
        if let Some(alias) = self.alias(policy)
            && addresses.iter().all(|a| a.to_canonical().is_loopback())
        {
            // The operator configured the alias for development, so the tenant's policy does not
            // apply to it.
            addresses = look_up(resolver, alias, deadline, token)?;
        }
        endpoints::check_reached(
            &self.0.endpoints,
            &self.0.operator,
            policy,
            url,
            &addresses,
            deadline,
            token,
        )?;
        let port = url.port_or_known_default().unwrap_or(443);
        let with_port = |address| SocketAddr::new(address, port);
        Ok(addresses.into_iter().map(with_port).collect())
    }

    /// The addresses of the forward proxy. The operator chose it.
    pub(super) fn proxy_addresses(
        &self,
        proxy: &ForwardProxy,
        deadline: Instant,
        token: &Token,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let url = Url::parse(proxy.origin.text());
        let url = url.map_err(|_| invalid("SVC_FORWARD_PROXY is not a URL."))?;
        self.addresses(Policy::Operator, false, &url, deadline, token)
            .map_err(|failure| {
                let message = format!("{} cannot be reached: {failure}", upper(&proxy.in_words()));
                Failure::new(failure.kind(), message)
            })
    }

    /// Checks the host of a URL without a look-up.
    pub(super) fn check_host(&self, policy: Policy, url: &Url) -> Result<(), Failure> {
        endpoints::check_named(&self.0.endpoints, policy, url)?;
        policy::check_url(policy, url, &self.0.host_access_origins)
    }

    fn check_each(&self, policy: Policy, url: &Url, addresses: &[IpAddr]) -> Result<(), Failure> {
        let origins = &self.0.host_access_origins;
        let check = |address: &IpAddr| policy::check_address(policy, url, *address, origins);
        addresses.iter().try_for_each(check)
    }

    /// The alias, for hosts that a tenant chose. What the operator configured (the authorization
    /// server, key management) is reached where it says.
    fn alias(&self, policy: Policy) -> Option<&Host> {
        let alias = self.0.host_alias.as_ref();
        alias.filter(|_| policy != Policy::Operator)
    }

    /// The policy that applies here. Behind an alias (development only), loopback means another
    /// machine, so the service's own port there is not the service.
    fn as_reached(&self, policy: Policy) -> Policy {
        match policy {
            Policy::Webhook(access) if self.0.host_alias.is_some() => {
                Policy::Webhook(WebhookAccess {
                    listening: None,
                    ..access
                })
            }
            policy => policy,
        }
    }

    fn resolver(&self, policy: Policy, is_well: bool) -> Result<&Resolver, Failure> {
        let [well, doubtful] = &self.0.receivers;
        match policy {
            Policy::Webhook(_) if is_well => well.resolver(),
            Policy::Webhook(_) => doubtful.resolver(),
            Policy::Tenant(_) => self.0.tenants.resolver(),
            Policy::Operator => Ok(&self.0.operator),
        }
    }

    fn look_up_url(
        &self,
        policy: Policy,
        resolver: &Resolver,
        url: &Url,
        deadline: Instant,
        token: &Token,
    ) -> Result<Vec<IpAddr>, Failure> {
        let host = url.host().map(|host| host.to_owned());
        match &host.ok_or_else(|| invalid("The URL has no host."))? {
            // The alias replaces loopback names (RFC 6761), so they are not looked up.
            Host::Domain(name) if self.alias(policy).is_some() && is_localhost(name) => {
                Ok(vec![IpAddr::from([127, 0, 0, 1])])
            }
            host => look_up(resolver, host, deadline, token),
        }
    }
}

/// Checks that `SVC_HOST_ACCESS_ORIGINS` can open each of these origins to tenants.
///
/// # Errors
/// What is wrong, for use after the setting's name.
pub fn check_host_access_origins(
    origins: &[Origin],
    endpoints: &[OperatorEndpoint],
) -> Result<(), String> {
    policy::check_host_access_origins(origins)?;
    // An endpoint that is no URL is a fault of its own setting.
    let endpoints = compared(endpoints).unwrap_or_default();
    endpoints::check_opened(origins, &endpoints)
}

fn compared(endpoints: &[OperatorEndpoint]) -> Result<Vec<Endpoint>, Failure> {
    endpoints.iter().map(Endpoint::new).collect()
}

/// As the beginning of a sentence.
fn upper(text: &str) -> String {
    text.replacen('t', "T", 1)
}

fn is_localhost(name: &str) -> bool {
    matches!(
        address::known_name(name),
        Some((address::Class::Loopback, _))
    )
}

fn parse_alias(alias: &str) -> crate::error::Result<Host> {
    let bare = alias.trim_ascii();
    let host = match bare.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) => Ok(Host::Ipv6(v6)),
        _ => Host::parse(bare),
    };
    host.map_err(|error| {
        invalid(format!(
            "SVC_DEV_HOST_ALIAS must be a host name or an address, without a port: {error}."
        ))
        .into()
    })
}

/// The system's roots and the extra ones. A system without roots is not an error: plain HTTP still
/// works.
fn roots(extra_pem: &[u8]) -> crate::error::Result<Vec<Certificate<'static>>> {
    let own = |der: &CertificateDer<'_>| Certificate::from_der(der).to_owned();
    let system = rustls_native_certs::load_native_certs().certs;
    let mut all: Vec<_> = system.iter().map(own).collect();
    let before = all.len();
    for certificate in CertificateDer::pem_slice_iter(extra_pem) {
        let certificate = certificate
            .map_err(|_| invalid("The bundle of extra certificates is not valid PEM."))?;
        all.push(own(&certificate));
    }
    if !extra_pem.is_empty() && all.len() == before {
        return Err(invalid("The bundle of extra certificates holds none.").into());
    }
    Ok(all)
}
