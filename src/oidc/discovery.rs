//! A provider's own document (OpenID Connect Discovery 1.0): where its endpoints are, and what it can do.
//!
//! Guarantees: the document names the issuer byte for byte as it is configured. Every URL in it is judged by the policy under
//! which the issuer was registered, and has the issuer's scheme.

use super::exchange::{Exchange, expect_ok, read};
use super::fault::{Code, Fault, shown};
use super::issuer::Issuer;
use crate::config::identity_providers::{ISSUER, is_issuer};
use crate::outbound::Response;
use serde::Deserialize;
use url::Url;

const PATH: &str = "/.well-known/openid-configuration";
const WHAT: &str = "The provider's document (openid-configuration)";

/// The document as it came. What is not used is not read.
#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    id_token_signing_alg_values_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// What is known of a provider.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) jwks_uri: Url,
    pub(super) userinfo_endpoint: Option<Url>,
    /// Where a person signs out there (OpenID Connect RP-Initiated Logout).
    pub(super) end_session_endpoint: Option<Url>,
    /// How a client shows its secret.
    pub(super) secret_in_body: bool,
    /// The names as the provider gives them.
    pub(super) algorithms: Vec<String>,
    pub(super) takes_pkce: Option<bool>,
    /// Every answer that a browser brings names its issuer (RFC 9207).
    pub(super) promises_iss: bool,
}

/// The issuer as a URL, if it may be one.
pub(super) fn issuer_url(issuer: &str) -> Result<Url, Fault> {
    let url = Url::parse(issuer).ok().filter(|_| is_issuer(issuer));
    url.ok_or_else(|| {
        let sentence = format!("The issuer {} is not {ISSUER}.", shown(issuer));
        Fault::new(Code::IssuerDiffers, sentence)
    })
}

/// Fetches the document.
pub(super) fn fetch(exchange: &mut Exchange<'_>, issuer: &Issuer<'_>) -> Result<Response, Fault> {
    issuer_url(issuer.issuer)?;
    let base = issuer.issuer.strip_suffix('/').unwrap_or(issuer.issuer);
    let answer = exchange.get(WHAT, &format!("{base}{PATH}"), &[])?;
    expect_ok(WHAT, answer)
}

/// What the document says, checked.
pub(super) fn metadata(
    exchange: &Exchange<'_>,
    issuer: &Issuer<'_>,
    answer: &Response,
) -> Result<Metadata, Fault> {
    let document: Document = read(WHAT, &answer.body)?;
    if document.issuer != issuer.issuer {
        let sentence = format!(
            "The provider's document names the issuer {}, and {} is configured.",
            shown(&document.issuer),
            shown(issuer.issuer)
        );
        return Err(Fault::new(Code::IssuerDiffers, sentence));
    }
    let scheme = issuer_url(issuer.issuer)?.scheme().to_owned();
    let judge = |name: &str, text: &str| exchange.judge(name, text, &scheme);
    let methods = document.token_endpoint_auth_methods_supported;
    let userinfo = document.userinfo_endpoint.as_deref();
    let end_session = document.end_session_endpoint.as_deref();
    Ok(Metadata {
        authorization_endpoint: judge("authorization_endpoint", &document.authorization_endpoint)?,
        token_endpoint: judge("token_endpoint", &document.token_endpoint)?,
        jwks_uri: judge("jwks_uri", &document.jwks_uri)?,
        userinfo_endpoint: userinfo
            .map(|url| judge("userinfo_endpoint", url))
            .transpose()?,
        // A sign-in does not need it: one that is not to be used is none.
        end_session_endpoint: end_session.and_then(|url| judge("end_session_endpoint", url).ok()),
        // Without a list it is the header (OpenID Connect Discovery, section 3).
        secret_in_body: methods.is_some_and(|methods| {
            let has = |wanted: &str| methods.iter().any(|method| method == wanted);
            has("client_secret_post") && !has("client_secret_basic")
        }),
        algorithms: document
            .id_token_signing_alg_values_supported
            .unwrap_or_default(),
        takes_pkce: document
            .code_challenge_methods_supported
            .map(|methods| methods.iter().any(|method| method == "S256")),
        promises_iss: document.authorization_response_iss_parameter_supported,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_https_or_of_this_very_host() {
        for issuer in [
            "https://id.plant.example",
            "https://id.plant.example/realms/plant",
            "https://id.plant.example:8443/",
            "http://127.0.0.1:8080/realms/plant",
            "http://localhost:3000",
            "http://[::1]:3000",
        ] {
            issuer_url(issuer).unwrap();
        }
        for issuer in [
            "http://id.plant.example",
            "http://10.0.0.1",
            "http://localhost.plant.example",
            "ftp://id.plant.example",
            "https://id.plant.example/?a=1",
            "https://id.plant.example/#a",
            "id.plant.example",
            "",
        ] {
            assert_eq!(
                issuer_url(issuer).unwrap_err().code(),
                Code::IssuerDiffers,
                "{issuer}"
            );
        }
    }
}
