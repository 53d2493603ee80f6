//! The tree of an expression. All names are resolved: a variable is its place on the stack of variables,
//! a function one of [`Function`].
//!
//! Chains of operators of one rank lie in one node. So the tree is only as deep as the parser went down,
//! and that is bounded.

use serde_json::Value as Json;

use crate::functions::Function;

#[derive(Debug, Clone)]
pub(crate) enum Term {
    /// `.`
    Identity,
    Constant(Json),
    /// A string with interpolations, or a format applied to a string.
    Text {
        format: Format,
        pieces: Vec<Piece>,
    },
    /// `@base64` and so on, applied to the input.
    Format(Format),
    /// A place on the stack of variables.
    Variable(usize),
    Array(Option<Box<Term>>),
    Object(Vec<(Term, Term)>),
    Negate(Box<Term>),
    Pipe(Vec<Term>),
    Comma(Vec<Term>),
    /// `a // b // c`, which groups from the right.
    Alternative(Vec<Term>),
    /// Operators of one rank, from the left.
    Chain(Box<Term>, Vec<(Operator, Term)>),
    /// `.a[0]?`: what is read from the term, step by step.
    Access(Box<Term>, Vec<Step>),
    If {
        branches: Vec<(Term, Term)>,
        otherwise: Option<Box<Term>>,
    },
    Try {
        body: Box<Term>,
        catch: Option<Box<Term>>,
    },
    /// `source as PATTERN | body`; the variables of the pattern are the next on the stack.
    Bind {
        source: Box<Term>,
        pattern: Pattern,
        body: Box<Term>,
    },
    Call(Function, Vec<Term>),
}

#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Literal(String),
    Interpolated(Term),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    Base64,
    Base64Decoded,
    Uri,
}

impl Format {
    pub(crate) const ALL: [(&str, Self); 5] = [
        ("text", Self::Text),
        ("json", Self::Json),
        ("base64", Self::Base64),
        ("base64d", Self::Base64Decoded),
        ("uri", Self::Uri),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) part: Part,
    /// `?`: a value that has no such part gives nothing instead of an error.
    pub(crate) is_optional: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// `.name`, `["name"]`, `[0]`
    Index(Term),
    /// `[from:until]`
    Slice(Option<Term>, Option<Term>),
    /// `[]`
    Each,
}

/// What `as` takes apart.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    Variable,
    Array(Vec<Pattern>),
    /// The key, whether the whole value under it is bound too, and what its value is taken apart into.
    Object(Vec<(Term, bool, Option<Pattern>)>),
}
