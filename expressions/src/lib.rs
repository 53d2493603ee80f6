//! A bounded subset of jq.
//!
//! [`Expression::parse`] reads a text once and tells all unknown names, each with its place and a hint.
//!
//! Guarantees:
//!
//! - An expression is a pure function of its input and its variables. What reads a clock, the environment
//!   or a file is refused when it is parsed.
//!
//! - No text exhausts the stack: the levels that an expression nests have a bound.
//!
//! Deliberately absent: definitions of functions, `reduce` and `foreach`, labels, assignments, modules,
//! dates, NaN and infinite numbers. README.md lists what is taken.

#![allow(dead_code, reason = "the evaluator, which reads the tree, follows")]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod fault;
mod functions;
mod lexer;
mod number;
mod parser;
mod tree;

pub use fault::Fault;
pub use parser::{MAX_NESTING, MAX_SOURCE_BYTES};

/// An expression that was parsed. Threads may share it.
#[derive(Debug)]
pub struct Expression {
    root: tree::Term,
}

impl Expression {
    /// Parses an expression that may use these variables. Their names stand without the dollar.
    ///
    /// # Errors
    ///
    /// The first fault of grammar ends the reading; unknown names before it are told together, at most 20.
    pub fn parse(source: &str, variables: &[&str]) -> Result<Self, Vec<Fault>> {
        let root = parser::parse(source, variables)?;
        Ok(Self { root })
    }
}
