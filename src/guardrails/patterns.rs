//! Patterns of an author: regular expressions without backtracking.

use super::finding::Finding;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// Patterns of one check at most.
const PATTERNS_MOST: usize = 50;
/// The longest pattern, in bytes.
const PATTERN_BYTES_MOST: usize = 1000;
/// What all of them take when they are compiled, at most.
const COMPILED_BYTES_MOST: usize = 4 * 1024 * 1024;

/// What is wrong with patterns: which one, from 0, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternFault {
    /// Which pattern; none: all of them together.
    pub index: Option<usize>,
    /// What is expected, without the pattern.
    pub expected: String,
}

/// Patterns of one check.
#[derive(Debug, Clone)]
pub struct Patterns {
    any: RegexSet,
    each: Vec<Regex>,
    /// A text that matches none is found, from its begin to its end.
    must_match: bool,
}

impl Patterns {
    /// Compiles the patterns of an author.
    ///
    /// # Errors
    /// A pattern is too long or none, or they are too many or too large together.
    pub fn new(patterns: &[String], must_match: bool) -> Result<Self, PatternFault> {
        let fault = |index, expected: &str| PatternFault {
            index,
            expected: expected.to_owned(),
        };
        if patterns.is_empty() || patterns.len() > PATTERNS_MOST {
            return Err(fault(None, "1 to 50 patterns"));
        }
        let mut each = Vec::with_capacity(patterns.len());
        for (index, pattern) in patterns.iter().enumerate() {
            if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MOST {
                return Err(fault(Some(index), "a pattern of 1 to 1,000 bytes"));
            }
            let compiled = RegexBuilder::new(pattern)
                .size_limit(COMPILED_BYTES_MOST / PATTERNS_MOST)
                .build();
            each.push(compiled.map_err(|error| PatternFault {
                index: Some(index),
                expected: match error {
                    regex::Error::CompiledTooBig(_) => "a pattern that is smaller when it is compiled".to_owned(),
                    _ => "a regular expression of the kind that takes linear time, without look-around and back references"
                        .to_owned(),
                },
            })?);
        }
        let any = RegexSetBuilder::new(patterns)
            .size_limit(COMPILED_BYTES_MOST)
            .build()
            .map_err(|_| {
                fault(
                    None,
                    "patterns that are smaller together when they are compiled",
                )
            })?;
        Ok(Self {
            any,
            each,
            must_match,
        })
    }

    /// Whether a text is to match one of them.
    pub(super) fn must_match(&self) -> bool {
        self.must_match
    }

    pub(super) fn find(&self, text: &str, found: &mut Vec<Finding>) {
        let matched = self.any.matches(text);
        if self.must_match {
            if !matched.matched_any() {
                found.push(Finding {
                    range: 0..text.len(),
                    kind: "text",
                });
            }
            return;
        }
        for index in matched {
            let matches = self.each[index].find_iter(text);
            let matches = matches.filter(|one| !one.is_empty());
            found.extend(matches.map(|one| Finding {
                range: one.range(),
                kind: "pattern",
            }));
        }
    }
}
