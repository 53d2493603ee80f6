//! OpenID Connect: what an issuer says of somebody who signed in there.

mod claims;

pub use claims::Claims;
