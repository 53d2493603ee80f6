//! Proof that somebody may do something: what a store function asks for before it reads or changes
//! a row on someone's behalf.
//!
//! An [`Authorized`] value is minted by `authz` alone (a test over the source checks it) once the
//! check was made, and carries the row it was made for, found in the caller's own tenant. The other
//! proof is the lease that `runtime` holds on a run.
//!
//! Not here: how the check is made (`authz`), and what a role allows (the authorization model).

use std::marker::PhantomData;
use uuid::Uuid;

/// A kind of object that access is checked on.
pub trait Kind {
    /// Its name in the authorization model and in denials, such as `project`.
    const NAME: &'static str;
    /// The object's id.
    fn id(&self) -> Uuid;
}

/// What one may do to an object.
pub trait Action {
    /// Its name in the decision record, such as `admin`.
    const NAME: &'static str;
}

/// See it.
#[derive(Debug)]
pub enum Read {}
/// Work in it.
#[derive(Debug)]
pub enum Write {}
/// Decide about it.
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

/// Who makes a request, from the credential alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The tenant of the credential: the only source of a tenant id.
    pub tenant_id: Uuid,
    /// The user that the credential belongs to.
    pub user_id: Uuid,
    /// The credential.
    pub token_id: Uuid,
}

/// A proof of `A` on the object of kind `K`.
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
    /// For `authz` alone, after the check.
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

    /// The row, when the proof is no longer needed.
    pub fn into_row(self) -> K {
        self.row
    }

    /// Who may.
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

/// The caller may list the kind `K`: a list holds what the caller may read.
#[derive(Debug)]
pub struct Listing<K> {
    caller: Caller,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Listing<K> {
    /// For `authz` alone, after the check.
    pub(crate) fn mint(caller: Caller) -> Self {
        Self {
            caller,
            kind: PhantomData,
        }
    }

    /// Who lists.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}
