//! The operator's file of identity providers: its format, and the checks that also apply to providers from the API.
//!
//! Guarantees: all faults of a file are reported at once, each with its path. No value of the file is repeated. A provider's
//! id is derived from its tenant, issuer and client id, so it is the same on every replica and at every start.
//!
//! Not here: reading the file and the secrets that it names (`read`), and putting the providers into the database (`server`).

use super::types::{EmailTrust, loopback_name};
use crate::ids;
use crate::secret::Secret;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::path::PathBuf;
use url::Url;
use uuid::Uuid;

/// Providers of a tenant at most.
pub const PROVIDERS_MOST: usize = 20;
/// Rows of groups of a provider at most, and characters of a group's name.
pub const GROUPS_MOST: usize = 200;
/// Characters of a group's name at most.
pub const GROUP_NAME_MOST: usize = 256;
/// Domains of a provider at most.
pub const DOMAINS_MOST: usize = 100;
/// Further scopes of a provider at most.
pub const SCOPES_MOST: usize = 20;

/// Providers of a file at most.
const PROVIDERS_OF_FILE: usize = 1000;
/// Faults of a file that are told.
const FAULTS_MOST: usize = 50;

/// What an issuer has to be.
pub const ISSUER: &str = "a URL that begins with https, or with http on a loopback host, without a query, a fragment, a user or a password";
/// What a scope has to be.
pub const SCOPE: &str =
    "a scope that stands once: 1 to 100 printable ASCII characters without quotes and backslashes";
/// What a domain has to be.
pub const DOMAIN: &str = "a domain that stands once, in ASCII form and without a dot at its end";

/// Whether this is the URL of an issuer (OpenID Connect Discovery, section 3).
pub fn is_issuer(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    let is_secret = match url.scheme() {
        "https" => true,
        "http" => url
            .host_str()
            .is_some_and(|host| loopback_name(host).is_some()),
        _ => false,
    };
    let is_bare = url.query().is_none() && url.fragment().is_none();
    let is_nobody = url.username().is_empty() && url.password().is_none();
    is_secret && is_bare && is_nobody && text.len() <= 2048
}

/// Whether this is a scope token (RFC 6749, section 3.3).
pub fn is_scope(text: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (1..=100).contains(&text.len()) && text.bytes().all(is_taken)
}

/// Whether this is a host name in ASCII (RFC 1123, section 2.1).
pub fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// The providers of the operator's file.
#[derive(Debug, Clone, Default)]
pub struct IdentityProviders(pub Vec<OperatorProvider>);

/// A provider of the operator's file.
#[derive(Debug, Clone)]
pub struct OperatorProvider {
    /// Its id.
    pub id: Uuid,
    /// Whose people sign in by it.
    pub tenant_id: Uuid,
    /// What the sign-in page calls it.
    pub name: String,
    /// The issuer.
    pub issuer: String,
    /// What it calls this server.
    pub client_id: String,
    /// None: a public client.
    pub client_secret: Option<Secret>,
    /// Scopes beside `openid email profile`.
    pub scopes: Vec<String>,
    /// The domains that it speaks for, in lowercase.
    pub domains: Vec<String>,
    /// When its emails count.
    pub email_trust: EmailTrust,
    /// Whether it adds people.
    pub creates_people: bool,
    /// The claim that has the groups.
    pub groups_claim: Option<String>,
    /// What its groups are.
    pub groups: Vec<OperatorGroup>,
}

/// A group of a provider of the operator's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorGroup {
    /// As the claim names it.
    pub group: String,
    /// The team's slug.
    pub team: String,
    /// Its members are admins of the team.
    pub is_admin: bool,
}

impl OperatorProvider {
    /// The id of the provider with this issuer and client id in this tenant.
    pub fn id_of(tenant_id: Uuid, issuer: &str, client_id: &str) -> Uuid {
        ids::derived(&[
            b"agent-runtime identity provider",
            tenant_id.as_bytes(),
            issuer.as_bytes(),
            &[0],
            client_id.as_bytes(),
        ])
    }
}

/// Where a client's secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SecretIn {
    /// In a file.
    File(PathBuf),
    /// In the systemd credential of this name.
    Credential(String),
}

/// What a file says: its providers, where each has its secret, and every fault.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) providers: Vec<(OperatorProvider, Option<SecretIn>)>,
    pub(super) faults: Vec<String>,
}

/// Reads what a file holds.
pub(super) fn parse(bytes: &[u8]) -> Parsed {
    let mut walk = Walk::default();
    let providers = walk.file(bytes);
    walk.faults.truncate(FAULTS_MOST);
    Parsed {
        providers,
        faults: walk.faults,
    }
}

/// The fields of a provider.
const FIELDS: [&str; 12] = [
    "tenantId",
    "name",
    "issuer",
    "clientId",
    "clientSecretFile",
    "clientSecretCredential",
    "scopes",
    "emailDomains",
    "emailTrust",
    "createsPeople",
    "groupsClaim",
    "groups",
];

type Object = Map<String, Value>;

/// Collects faults, each with its path.
#[derive(Default)]
struct Walk {
    faults: Vec<String>,
}

impl Walk {
    fn wrong(&mut self, path: &str, expected: &str) {
        self.faults.push(format!("{path}: expected {expected}"));
    }

    fn file(&mut self, bytes: &[u8]) -> Vec<(OperatorProvider, Option<SecretIn>)> {
        let whole = match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(whole)) => whole,
            Ok(_) => {
                self.wrong("$", "an object");
                return Vec::new();
            }
            Err(error) => {
                let at = format!("line {}, column {}", error.line(), error.column());
                self.wrong(&at, "JSON");
                return Vec::new();
            }
        };
        self.unknown(&whole, "$", &["version", "providers"]);
        if whole.get("version") != Some(&Value::from(1)) {
            self.wrong("$.version", "1");
        }
        let Some(Value::Array(listed)) = whole.get("providers") else {
            self.wrong("$.providers", "a list of providers");
            return Vec::new();
        };
        if listed.len() > PROVIDERS_OF_FILE {
            self.wrong("$.providers", "1000 providers at most");
            return Vec::new();
        }
        let mut providers = Vec::new();
        for (index, one) in listed.iter().enumerate() {
            let path = format!("$.providers[{index}]");
            match one {
                Value::Object(one) => providers.extend(self.provider(one, &path)),
                _ => self.wrong(&path, "an object"),
            }
        }
        self.together(&providers);
        providers
    }

    fn unknown(&mut self, object: &Object, path: &str, known: &[&str]) {
        if object.keys().any(|name| !known.contains(&name.as_str())) {
            self.wrong(path, &format!("no other fields than {}", known.join(", ")));
        }
    }

    fn provider(
        &mut self,
        one: &Object,
        path: &str,
    ) -> Option<(OperatorProvider, Option<SecretIn>)> {
        let before = self.faults.len();
        self.unknown(one, path, &FIELDS);
        let tenant_id = self.tenant(one, path);
        let name = self.text(one, path, "name", 200);
        let issuer = self.text(one, path, "issuer", 2048);
        if issuer.as_ref().is_some_and(|issuer| !is_issuer(issuer)) {
            self.wrong(&format!("{path}.issuer"), ISSUER);
        }
        let client_id = self.text(one, path, "clientId", 500);
        let secret = self.secret(one, path);
        let scopes = self.texts(one, path, "scopes", SCOPES_MOST, SCOPE, is_scope);
        let domains = self.texts(one, path, "emailDomains", DOMAINS_MOST, DOMAIN, is_domain);
        let email_trust = self.email_trust(one, path);
        let creates_people = self.boolean(one, path, "createsPeople");
        let groups_claim = match one.get("groupsClaim") {
            None | Some(Value::Null) => None,
            Some(_) => self.text(one, path, "groupsClaim", 200),
        };
        let groups = self.groups(one, path);
        if !groups.is_empty() && groups_claim.is_none() {
            self.wrong(&format!("{path}.groups"), "none without a groupsClaim");
        }
        if self.faults.len() > before {
            return None;
        }
        let (tenant_id, issuer, client_id) = (tenant_id?, issuer?, client_id?);
        let provider = OperatorProvider {
            id: OperatorProvider::id_of(tenant_id, &issuer, &client_id),
            tenant_id,
            name: name?,
            issuer,
            client_id,
            client_secret: None,
            scopes,
            domains: domains
                .iter()
                .map(|domain| domain.to_ascii_lowercase())
                .collect(),
            email_trust,
            creates_people,
            groups_claim,
            groups,
        };
        Some((provider, secret))
    }

    fn tenant(&mut self, one: &Object, path: &str) -> Option<Uuid> {
        let tenant_id = one
            .get("tenantId")
            .and_then(Value::as_str)
            .and_then(ids::parse);
        if tenant_id.is_none() {
            self.wrong(&format!("{path}.tenantId"), "the id of a tenant");
        }
        tenant_id
    }

    fn text(&mut self, one: &Object, path: &str, name: &str, most: usize) -> Option<String> {
        let text = one.get(name).and_then(Value::as_str);
        let fits = |text: &&str| {
            !text.trim().is_empty() && text.chars().count() <= most && !text.contains('\0')
        };
        let text = text.filter(fits);
        if text.is_none() {
            let expected = format!("a text of 1 to {most} characters");
            self.wrong(&format!("{path}.{name}"), &expected);
        }
        text.map(str::to_owned)
    }

    /// A list of texts, each of which stands once.
    fn texts(
        &mut self,
        one: &Object,
        path: &str,
        name: &str,
        most: usize,
        expected: &str,
        is_one: fn(&str) -> bool,
    ) -> Vec<String> {
        let path = format!("{path}.{name}");
        let listed = match one.get(name) {
            None => return Vec::new(),
            Some(Value::Array(listed)) if listed.len() <= most => listed,
            Some(_) => {
                self.wrong(&path, &format!("a list of {most} texts at most"));
                return Vec::new();
            }
        };
        let mut texts: Vec<String> = Vec::new();
        for (index, value) in listed.iter().enumerate() {
            let text = value.as_str().filter(|text| is_one(text));
            let stands = |text: &&str| !texts.iter().any(|held| held.eq_ignore_ascii_case(text));
            match text.filter(stands) {
                Some(text) => texts.push(text.to_owned()),
                None => self.wrong(&format!("{path}[{index}]"), expected),
            }
        }
        texts
    }

    fn boolean(&mut self, one: &Object, path: &str, name: &str) -> bool {
        match one.get(name) {
            None => false,
            Some(Value::Bool(is)) => *is,
            Some(_) => {
                self.wrong(&format!("{path}.{name}"), "true or false");
                false
            }
        }
    }

    fn email_trust(&mut self, one: &Object, path: &str) -> EmailTrust {
        let trust = match one.get("emailTrust") {
            None => Some(EmailTrust::Claim),
            Some(given) => given.as_str().and_then(EmailTrust::parse),
        };
        trust.unwrap_or_else(|| {
            self.wrong(&format!("{path}.emailTrust"), "claim or provider");
            EmailTrust::Claim
        })
    }

    fn secret(&mut self, one: &Object, path: &str) -> Option<SecretIn> {
        match (
            one.get("clientSecretFile"),
            one.get("clientSecretCredential"),
        ) {
            (None, None) => None,
            (Some(_), None) => {
                let file = self
                    .text(one, path, "clientSecretFile", 4096)
                    .map(PathBuf::from);
                if file.as_ref().is_some_and(|file| !file.is_absolute()) {
                    self.wrong(&format!("{path}.clientSecretFile"), "an absolute path");
                }
                file.map(SecretIn::File)
            }
            (None, Some(_)) => {
                let name = self.text(one, path, "clientSecretCredential", 200)?;
                if name.contains('/') || name.starts_with('.') {
                    let path = format!("{path}.clientSecretCredential");
                    self.wrong(&path, "the name of a systemd credential");
                }
                Some(SecretIn::Credential(name))
            }
            (Some(_), Some(_)) => {
                let path = format!("{path}.clientSecretCredential");
                self.wrong(&path, "none beside a clientSecretFile");
                None
            }
        }
    }

    fn groups(&mut self, one: &Object, path: &str) -> Vec<OperatorGroup> {
        let path = format!("{path}.groups");
        let listed = match one.get("groups") {
            None => return Vec::new(),
            Some(Value::Array(listed)) if listed.len() <= GROUPS_MOST => listed,
            Some(_) => {
                self.wrong(&path, "a list of 200 groups at most");
                return Vec::new();
            }
        };
        let mut groups: Vec<OperatorGroup> = Vec::new();
        for (index, row) in listed.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Value::Object(row) = row else {
                self.wrong(&path, "an object");
                continue;
            };
            self.unknown(row, &path, &["group", "team", "role"]);
            let group = self.text(row, &path, "group", GROUP_NAME_MOST);
            let team = self.text(row, &path, "team", 100);
            let is_admin = match row.get("role").and_then(Value::as_str) {
                Some("admin") => true,
                Some("member") => false,
                _ => {
                    self.wrong(&format!("{path}.role"), "member or admin");
                    false
                }
            };
            let (Some(group), Some(team)) = (group, team) else {
                continue;
            };
            if groups
                .iter()
                .any(|held| (&held.group, &held.team) == (&group, &team))
            {
                self.wrong(&path, "a group and a team that stand together once");
            }
            groups.push(OperatorGroup {
                group,
                team,
                is_admin,
            });
        }
        groups
    }

    /// What two providers of a tenant may not share.
    fn together(&mut self, providers: &[(OperatorProvider, Option<SecretIn>)]) {
        let (mut names, mut ids, mut domains) = (HashSet::new(), HashSet::new(), HashSet::new());
        for (provider, _) in providers {
            let tenant_id = provider.tenant_id;
            if !names.insert((tenant_id, &provider.name)) {
                self.wrong("$.providers", "each name once in a tenant");
            }
            if !ids.insert(provider.id) {
                self.wrong("$.providers", "each issuer and client id once in a tenant");
            }
            for domain in &provider.domains {
                if !domains.insert((tenant_id, domain)) {
                    let expected = "each email domain at one provider of a tenant";
                    self.wrong("$.providers", expected);
                }
            }
        }
        let tenants: HashSet<Uuid> = providers.iter().map(|(one, _)| one.tenant_id).collect();
        for tenant_id in tenants {
            let of_tenant = |(one, _): &&(OperatorProvider, _)| one.tenant_id == tenant_id;
            if providers.iter().filter(of_tenant).count() > PROVIDERS_MOST {
                self.wrong("$.providers", "20 providers of a tenant at most");
            }
        }
    }
}

#[cfg(test)]
mod tests;
