//! The tenant of an installation.

use uuid::Uuid;

/// The tenant that the database holds.
pub(super) enum Tenant {
    /// This tenant, in the database of this name.
    Existing(Uuid, String),
    /// None, or the operator named it.
    None,
    /// Setup cannot ask the database.
    Unknown,
}
