//! OpenID Connect: signing a person in at an identity provider, by the code flow with PKCE.
//!
//! Guarantees: a flow is bound to one provider and one browser. Its state, nonce and verifier are random and used once. The
//! code is sent to the token endpoint in the provider's own document. An ID token is accepted only if this provider signed it
//! for this client and this flow. All requests of a sign-in share one deadline, each answer has a size limit, and redirects
//! are not followed. Faults contain no secret.
//!
//! It knows no tenant and no database. Not here: who may sign in (`api`), and the browser's part of the flow
//! (`http::origin`). Left out: the other flows, signed userinfo, encrypted ID tokens, back-channel logout.

mod cache;
mod check;
mod claims;
mod discovery;
mod exchange;
mod fault;
mod issuer;
mod keys;
mod token;
mod verify;

pub use check::Step;
pub use claims::Claims;
pub use fault::{Code, Fault, shown};
pub use issuer::{Flow, Issuer};

use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cache::Cache;
use claims::Reading;
use discovery::Metadata;
use exchange::{Exchange, Figures, expect_ok, read};
use keys::Keys;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use verify::Signature;
use zeroize::Zeroizing;

/// What every sign-in asks for.
const SCOPES: [&str; 3] = ["openid", "email", "profile"];

/// Signs people in at identity providers.
pub struct Oidc {
    outbound: Outbound,
    clock: Clock,
    timeout: Duration,
    cache: Cache,
    figures: Figures,
}

impl Oidc {
    /// `timeout` is for all requests of one sign-in together.
    pub fn new(outbound: Outbound, clock: Clock, timeout: Duration) -> Self {
        Self {
            cache: Cache::new(clock.clone()),
            outbound,
            clock,
            timeout,
            figures: Figures::default(),
        }
    }

    /// How many requests went to providers, and how long they took together.
    pub fn asked(&self) -> (u64, Duration) {
        self.figures.all()
    }

    fn exchange(&self, issuer: &Issuer<'_>) -> Exchange<'_> {
        Exchange::begin(&self.outbound, issuer.policy, self.timeout, &self.figures)
    }

    /// Begins a sign-in: the address that the browser is to open, and what it has to keep. `again`: the last try came to
    /// nothing, so the provider lets the person choose another account.
    ///
    /// # Errors
    /// The provider cannot be used.
    pub fn begin(
        &self,
        issuer: &Issuer<'_>,
        redirect_uri: &str,
        again: bool,
    ) -> Result<(String, Flow), Fault> {
        let metadata = self.cache.metadata(&mut self.exchange(issuer), issuer)?;
        let flow = Flow {
            state: random()?,
            nonce: Secret::new(random()?),
            verifier: Secret::new(random()?),
        };
        let own = SCOPES.into_iter();
        let further = issuer.scopes.iter().map(String::as_str);
        let further = further.filter(|scope| !SCOPES.contains(scope));
        let scopes: Vec<&str> = own.chain(further).collect();
        let challenge = Sha256::digest(flow.verifier.expose());
        let mut url = metadata.authorization_endpoint.clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", issuer.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &flow.state)
            .append_pair("nonce", flow.nonce.expose())
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256");
        if again {
            query.append_pair("prompt", "select_account");
        }
        drop(query);
        Ok((url.into(), flow))
    }

    /// Completes a sign-in with what the browser brought back: the code, and the issuer that it names.
    ///
    /// # Errors
    /// The provider cannot be reached, or what it says is not to be believed.
    pub fn complete(
        &self,
        issuer: &Issuer<'_>,
        redirect_uri: &str,
        flow: &Flow,
        code: &str,
        iss: Option<&str>,
    ) -> Result<Claims, Fault> {
        let exchange = &mut self.exchange(issuer);
        let metadata = self.cache.metadata(exchange, issuer)?;
        check_iss(issuer, &metadata, iss)?;
        let tokens = token::exchange(exchange, issuer, &metadata, redirect_uri, flow, code)?;
        let found = self.verified(exchange, issuer, &metadata, tokens.id_token.expose())?;
        verify::claims(&found, issuer, &flow.nonce, self.clock.now())?;
        let mut reading = Reading::of_token(&found, issuer.groups_claim)?;
        if reading.lacks()
            && let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, &tokens.access_token)
        {
            const WHAT: &str = "The provider's userinfo";
            let bearer = Zeroizing::new(format!("Bearer {}", token.expose()));
            let headers = [("authorization", bearer.as_str())];
            let answer = expect_ok(WHAT, exchange.get(WHAT, url.as_str(), &headers)?)?;
            reading.add_userinfo(&read(WHAT, &answer.body)?)?;
        }
        Ok(reading.claims())
    }

    /// The claims of a token that this provider signed.
    fn verified(
        &self,
        exchange: &mut Exchange<'_>,
        issuer: &Issuer<'_>,
        metadata: &Metadata,
        token: &str,
    ) -> Result<serde_json::Map<String, serde_json::Value>, Fault> {
        let head = verify::head(token)?;
        let verify = |keys: &Keys| verify::signature(token, &head, keys, self.clock.now());
        let keys = self.cache.keys(exchange, issuer, metadata, None)?;
        let mut signature = verify(&keys);
        if matches!(signature, Signature::Unknown) {
            let newer = self.cache.keys(exchange, issuer, metadata, Some(&keys))?;
            if !Arc::ptr_eq(&keys, &newer) {
                signature = verify(&newer);
            }
        }
        match signature {
            Signature::Good => verify::payload(token),
            other => Err(verify::not_verified(&head, &other)),
        }
    }

    /// The address at which a person signs out at the provider, too (OpenID Connect RP-Initiated Logout 1.0, section 2): by
    /// the client's id and the email, for no ID token is kept. None: the provider names no such address.
    ///
    /// # Errors
    /// The provider cannot be used.
    pub fn sign_out_url(&self, issuer: &Issuer<'_>, email: &str) -> Result<Option<String>, Fault> {
        let metadata = self.cache.metadata(&mut self.exchange(issuer), issuer)?;
        Ok(metadata.end_session_endpoint.clone().map(|mut url| {
            url.query_pairs_mut()
                .append_pair("client_id", issuer.client_id)
                .append_pair("logout_hint", email);
            url.into()
        }))
    }

    /// Asks a provider all that a sign-in needs of it, and says of each step what was found. What it says of itself then
    /// counts from here on. No `redirect_uri`: this server has no address yet.
    pub fn check(&self, issuer: &Issuer<'_>, redirect_uri: Option<&str>) -> Vec<Step> {
        let exchange = &mut self.exchange(issuer);
        check::check(exchange, &self.cache, &self.clock, issuer, redirect_uri)
    }
}

/// The answer that the browser brought is from this provider (RFC 9207).
fn check_iss(issuer: &Issuer<'_>, metadata: &Metadata, iss: Option<&str>) -> Result<(), Fault> {
    let differs = |sentence: String| Err(Fault::new(Code::IssDiffers, sentence));
    match iss {
        Some(iss) if iss != issuer.issuer => differs(format!(
            "The browser came back from the issuer {}, and the sign-in began at {}.",
            fault::shown(iss),
            fault::shown(issuer.issuer)
        )),
        None if metadata.promises_iss => differs(
            "The browser came back without the issuer (iss), which the provider promises to name."
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// 32 random bytes: 43 characters that need no encoding anywhere.
fn random() -> Result<String, Fault> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes).map_err(|error| {
        let sentence = format!("The system gives no random bytes: {error}.");
        Fault::new(Code::NoRandomness, sentence)
    })?;
    Ok(URL_SAFE_NO_PAD.encode(*bytes))
}
