//! Proofs of access. A store function takes one before it reads or changes a row on someone's
//! behalf.
//!
//! Only `authz` makes an [`Authorized`] value, after its check (a test over the source holds that).
//! It carries the row of the check, which was found in the caller's own tenant. The other proof is
//! the lease that `runtime` holds on a run.
//!
//! Not here: the check (`authz`), and what a role allows (the authorization model).

use std::marker::PhantomData;
use uuid::Uuid;

/// A kind of object with access checks.
pub trait Kind {
    /// Its name in the authorization model and in denials, such as `project`.
    const NAME: &'static str;
    /// The object's id.
    fn id(&self) -> Uuid;
    /// The scope of the object.
    fn scope(&self) -> Scope;
}

/// Where the access to an object is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On the object itself: its roles are stored.
    Itself,
    /// On the object, as a part of this project.
    InProject(Uuid),
    /// On the tenant, because the object belongs to it as a whole.
    OnTenant,
}

/// An action on an object.
pub trait Action {
    /// Its name in the decision record, such as `admin`.
    const NAME: &'static str;
}

/// Read it.
#[derive(Debug)]
pub enum Read {}
/// Change it.
#[derive(Debug)]
pub enum Write {}
/// Administer it.
#[derive(Debug)]
pub enum Admin {}

impl Action for Read {
    const NAME: &'static str = "read";
}
impl Action for Write {
    const NAME: &'static str = "write";
}
impl Action for Admin {
    const NAME: &'static str = "admin";
}

/// `A: Covers<B>`: whoever may do `A` may do `B`.
pub trait Covers<B: Action>: Action {}
impl<A: Action> Covers<A> for A {}
impl Covers<Read> for Write {}
impl Covers<Read> for Admin {}
impl Covers<Write> for Admin {}

/// The caller of a request, known from the credential alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The tenant of the credential: the only source of a tenant id.
    pub tenant_id: Uuid,
    /// The user that the credential belongs to.
    pub user_id: Uuid,
    /// The credential.
    pub token_id: Uuid,
    /// What kind of credential it is.
    pub known_by: KnownBy,
    /// The limits of the credential.
    pub key: Key,
}

impl Caller {
    /// Under what its denials are counted: signing in again makes another session, and is forgiven nothing.
    pub fn denied_as(&self) -> Uuid {
        match self.known_by {
            KnownBy::Token => self.token_id,
            KnownBy::Session { of_token } => of_token.unwrap_or(self.user_id),
        }
    }
}

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownBy {
    /// A bearer token.
    Token,
    /// The session of a browser.
    Session {
        /// The token that it came from, and ends with.
        of_token: Option<Uuid>,
    },
}

/// The limits of a key, whatever its owner may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// A `member` key does not act as its owner's being a tenant admin allows.
    pub role: KeyRole,
    /// The kinds of writes that it may make.
    pub capabilities: Capabilities,
    /// The only project that it may be used for.
    pub project_id: Option<Uuid>,
}

crate::texts! {
    /// The role of a key.
    KeyRole {
        /// What its owner may as a member of the tenant, and by roles in orgs, teams and projects.
        Member = "member",
        /// Whatever its owner may.
        Admin = "admin",
    }
}

crate::texts! {
    /// A kind of write that a key takes part in only if it says so.
    Capability {
        /// Change who may do what.
        AccessWrite = "access:write",
        /// Change environments.
        EnvWrite = "env:write",
        /// Mint keys, and revoke others than itself.
        KeysWrite = "keys:write",
        /// Put and delete secrets.
        SecretsWrite = "secrets:write",
    }
}

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u8);

impl Capabilities {
    /// All of them.
    pub fn all() -> Self {
        Capability::ALL.into_iter().collect()
    }

    /// Whether this one is among them.
    pub fn has(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u8 != 0
    }

    /// Those that `held` lacks.
    #[must_use]
    pub fn beyond(self, held: Self) -> Self {
        Self(self.0 & !held.0)
    }

    /// There are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each, in the order of their texts.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL
            .into_iter()
            .filter(move |capability| self.has(*capability))
    }

    /// Parses stored texts. A text that this version does not know is dropped: it allows nothing
    /// here.
    pub fn from_texts(texts: &[String]) -> Self {
        texts
            .iter()
            .filter_map(|text| Capability::parse(text))
            .collect()
    }

    /// As they are stored.
    pub fn texts(self) -> Vec<&'static str> {
        self.iter().map(Capability::text).collect()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        Self(
            capabilities
                .into_iter()
                .fold(0, |set, capability| set | 1 << capability as u8),
        )
    }
}

/// A proof that the action `A` is allowed on the object of kind `K`.
pub trait May<A: Action, K: Kind> {
    /// The tenant in which it holds.
    fn tenant_id(&self) -> Uuid;
    /// The object.
    fn object_id(&self) -> Uuid;
}

/// The caller may do `A` on this row.
#[derive(Debug)]
pub struct Authorized<K, A> {
    row: K,
    caller: Caller,
    action: PhantomData<fn() -> A>,
}

impl<K: Kind, A: Action> Authorized<K, A> {
    /// For `authz` only, after the check.
    pub(crate) fn mint(row: K, caller: Caller) -> Self {
        Self {
            row,
            caller,
            action: PhantomData,
        }
    }

    /// The row that the proof was made for.
    pub fn row(&self) -> &K {
        &self.row
    }

    /// The row, if the proof is no longer needed.
    pub fn into_row(self) -> K {
        self.row
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl<K: Kind, A: Covers<B>, B: Action> May<B, K> for Authorized<K, A> {
    fn tenant_id(&self) -> Uuid {
        self.caller.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.row.id()
    }
}

/// The caller may list the kind `K`. A list holds what the caller may read.
#[derive(Debug)]
pub struct Listing<K> {
    caller: Caller,
    reader: Option<Uuid>,
    project_id: Option<Uuid>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Listing<K> {
    /// For `authz` only, after the check.
    pub(crate) fn mint(caller: Caller, reader: Option<Uuid>, project_id: Option<Uuid>) -> Self {
        Self {
            caller,
            reader,
            project_id,
            kind: PhantomData,
        }
    }

    /// The user whose project roles bound the list; none if the caller reads the whole tenant.
    pub fn reader(&self) -> Option<Uuid> {
        self.reader
    }

    /// The only project of the list, if the caller's key is limited to it.
    pub fn project_id(&self) -> Option<Uuid> {
        self.project_id
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}
