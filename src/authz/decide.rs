//! One request's questions: who asks, and what was decided.

use crate::error::{Code, Error};
use crate::proof::Caller;
use crate::store::Store;

/// Which check decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// A key is to get a capability that its maker lacks.
    CapabilityNotHeld,
    /// The request names another project than its key's.
    KeyProjectMismatch,
    /// A code for enrolling was refused or taken.
    Enrolment,
}

/// Asks on behalf of one request's caller.
pub struct Asker<'a> {
    pub(super) store: &'a Store,
    pub(super) caller: Caller,
}

impl<'a> Asker<'a> {
    /// For the frame.
    pub fn new(store: &'a Store, caller: Caller) -> Self {
        Self { store, caller }
    }

    /// Who asks.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether authorization is on: with it off there are no decisions, and no rules for keys.
    pub fn enforces(&self) -> bool {
        false
    }

    /// Records a refusal that the model is not asked about, and gives the error for it.
    #[track_caller]
    pub fn refuse(
        &self,
        _: Stage,
        action: &'static str,
        resource: &str,
        sentence: impl Into<String>,
        code: Code,
    ) -> Error {
        denial(code, sentence.into(), action, resource)
    }
}

/// The body of section 7.
#[track_caller]
fn denial(code: Code, sentence: String, action: &str, resource: &str) -> Error {
    Error::new(code, sentence.clone())
        .detail("action", action)
        .detail("resource", resource)
        .detail("reason", sentence)
}
