//! What stands around a task: the variables that it sees, and what it may not do there.

use super::values::Scope;

/// What stands around a list of tasks.
#[derive(Debug, Clone)]
pub(super) struct Around<'a> {
    /// The variables that its tasks see.
    pub(super) scope: Scope,
    /// How many lists it stands in.
    pub(super) levels: usize,
    /// Others run beside it.
    pub(super) in_branch: bool,
    /// The functions whose calls led here, outermost first.
    pub(super) functions: Vec<&'a str>,
}

/// Where `then` can lead.
#[derive(Debug, Clone, Copy)]
pub(super) enum Targets<'t> {
    /// To the tasks of the list, by name.
    List(&'t [&'t str]),
    /// To no other task: it is a branch of a `fork`.
    Branch,
    /// To no other task: it is a function's.
    Function,
}

impl<'a> Around<'a> {
    pub(super) fn outer() -> Self {
        Self {
            scope: Scope::outer(),
            levels: 0,
            in_branch: false,
            functions: Vec::new(),
        }
    }

    /// Of a list within, whose tasks see these variables too.
    pub(super) fn within(&self, names: &[&str]) -> Self {
        Self {
            scope: self.scope.with(names),
            levels: self.levels + 1,
            ..self.clone()
        }
    }

    /// Of a list that handles an error.
    pub(super) fn handling(&self, error: &str) -> Self {
        Self {
            scope: self.scope.with_error(error),
            ..self.within(&[])
        }
    }

    /// Of branches, which run beside each other.
    pub(super) fn beside(&self, names: &[&str]) -> Self {
        Self {
            in_branch: true,
            ..self.within(names)
        }
    }

    /// Of a function's task: it sees what every function sees, wherever it is called.
    pub(super) fn function(&self, name: &'a str) -> Self {
        let mut functions = self.functions.clone();
        functions.push(name);
        Self {
            scope: Scope::outer(),
            functions,
            ..self.within(&[])
        }
    }
}
