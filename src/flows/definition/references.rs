//! What a definition names of its project.
//!
//! Not here: whether it is there, which the caller looks up.

/// One name, at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// What is named.
    pub kind: ReferenceKind,
    /// Its name; of an agent also its id, of a flow `namespace.name`.
    pub name: String,
    /// The version, if one is named.
    pub version: Option<String>,
    /// Where, as the JSON path of a fault.
    pub path: String,
}

/// What can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A tool of the project.
    Tool,
    /// An agent of the project.
    Agent,
    /// A flow of the project.
    Flow,
}
