//! What an issuer says of somebody.

/// What an issuer says of somebody who signed in there, after every check of the protocol.
#[derive(Debug, Clone)]
pub struct Claims {
    /// Who it is at the issuer: never given to somebody else there.
    pub subject: String,
    /// The email.
    pub email: Option<String>,
    /// The issuer says that the email is the subject's.
    pub email_vouched: bool,
    /// What the subject is called.
    pub name: Option<String>,
    /// The subject's groups. None: not asked for, not said, or left out for their number, so nothing is to change.
    pub groups: Option<Vec<String>>,
    /// The issuer says that it left groups out.
    pub groups_left_out: bool,
    /// The session at the issuer.
    pub session: Option<String>,
}
