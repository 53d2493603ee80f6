//! What a sign-in is about: an issuer as it was registered, and a flow that has begun at it.

use crate::outbound::Policy;
use crate::secret::Secret;

/// An OpenID Connect issuer as somebody registered it.
#[derive(Debug, Clone, Copy)]
pub struct Issuer<'a> {
    /// Byte for byte as it is configured.
    pub issuer: &'a str,
    /// What the provider calls this server.
    pub client_id: &'a str,
    /// None: a public client.
    pub client_secret: Option<&'a Secret>,
    /// Scopes beside `openid email profile`.
    pub scopes: &'a [String],
    /// The claim that has a person's groups, if they are asked for.
    pub groups_claim: Option<&'a str>,
    /// What the server may reach: by whom the issuer was registered.
    pub policy: Policy,
}

/// A sign-in that has begun. Its browser keeps it until it comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Comes back with the browser.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: Secret,
    /// Shows at the token endpoint that the flow began here.
    pub verifier: Secret,
}
