//! Terms: what stands between operators.

use std::ops::Range;

use serde_json::Value as Json;

use super::{MAX_FAULTS, Parsed, Parser};
use crate::fault::Fault;
use crate::functions::Function;
use crate::lexer::{Kind, Token};
use crate::tree::{Format, Part, Step, Term};

/// Words of jq's grammar that begin what is not supported, and what to do instead.
const REFUSED: [(&str, &str); 7] = [
    (
        "def",
        "Functions are not defined here. Spread the work over several tasks.",
    ),
    (
        "reduce",
        "Use `add`, `group_by`, `min_by` or `map`, or a `for` task.",
    ),
    ("foreach", "Use `map`, or a `for` task."),
    ("label", "Use `first`, `limit` or `any`."),
    ("break", "Use `first`, `limit` or `any`."),
    ("import", "There are no modules."),
    ("include", "There are no modules."),
];
/// Words that end or join terms, and so begin none.
const JOINING: [&str; 8] = ["and", "or", "as", "then", "elif", "else", "end", "catch"];

impl Parser<'_> {
    /// A term and what is read from it.
    pub(super) fn postfix(&mut self) -> Parsed<Term> {
        let start = self.peek()?.span.start;
        let (mut term, mut steps) = self.term()?;
        loop {
            match self.peek()?.kind {
                Kind::Field(_) | Kind::Symbol("." | "[") => self.part(&mut steps)?,
                Kind::Symbol("?") => {
                    self.next()?;
                    match steps.last_mut() {
                        Some(last) => last.is_optional = true,
                        None => term = tried(term),
                    }
                }
                _ => {
                    self.term = start;
                    return Ok(read(term, steps));
                }
            }
        }
    }

    /// A part that is read from what stands before it.
    fn part(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        let token = self.next()?;
        steps.push(match token.kind {
            Kind::Field(name) => step(Term::Constant(name.into())),
            Kind::Symbol("[") => self.bracket()?,
            _ => self.after_dot()?,
        });
        Ok(())
    }

    /// `source as PATTERN | body`, whose source was taken and begins at `start`.
    pub(super) fn bind(&mut self, source: Term, start: usize) -> Parsed<Term> {
        let (term, end) = (self.term, self.at);
        self.next()?;
        let outer = self.variables.len();
        let pattern_start = self.peek()?.span.start;
        let pattern = self.pattern()?;
        if term > start {
            self.warn_of_source(start..end, term, pattern_start..self.at);
        }
        self.expect("|")?;
        let body = self.pipe()?;
        self.variables.truncate(outer);
        Ok(Term::Bind {
            source: Box::new(source),
            pattern,
            body: Box::new(body),
        })
    }

    /// Up to jq 1.7, `as` bound the last term before it alone.
    fn warn_of_source(&mut self, source: Range<usize>, term: usize, pattern: Range<usize>) {
        if self.warnings.len() == MAX_FAULTS {
            return;
        }
        let whole = start_of(&self.source[source.clone()]);
        let last = start_of(&self.source[term..source.end]);
        let pattern = start_of(&self.source[pattern]);
        let warning = Fault::new(
            source,
            format!("`as` binds all of `{whole}`, not `{last}` alone as up to jq 1.7."),
        );
        self.warnings.push(warning.hint(format!(
            "Parentheses say which is meant: `({whole}) as {pattern} | …` or `({last} as {pattern} | …)`."
        )));
    }

    /// Each arm has the same type, and what it reads further is read elsewhere: this function is on the stack
    /// once for each level of nesting.
    fn term(&mut self) -> Parsed<(Term, Vec<Step>)> {
        let token = self.next()?;
        let read = match token.kind {
            Kind::Field(_) => return self.own_part(&token),
            Kind::Symbol(".") => return self.own_part(&token),
            Kind::Number(text) => number(text, &token),
            Kind::Quote => self.text(Format::Text),
            Kind::Format(name) => self.format(name, &token),
            Kind::Variable(name) => Ok(self.variable(name, token.span)),
            Kind::Symbol("..") => Ok(Term::Call(Function::Descend, Vec::new())),
            Kind::Symbol("(") => self.group(),
            Kind::Symbol("[") => self.array(),
            Kind::Symbol("{") => self.nested(Self::object),
            Kind::Identifier("if") => self.nested(Self::branches),
            Kind::Identifier("try") => self.nested(Self::attempt),
            Kind::Identifier(word) => self.word(word, &token),
            Kind::Symbol(_) | Kind::End => Err(self.no_term(&token)),
        };
        read.map(|term| (term, Vec::new()))
    }

    /// After a dot or `.name` that begins a term: the input, or a part of it.
    fn own_part(&mut self, token: &Token<'_>) -> Parsed<(Term, Vec<Step>)> {
        if let Kind::Field(name) = token.kind {
            return Ok((Term::Identity, vec![step(Term::Constant(name.into()))]));
        }
        let next = self.peek()?;
        let is_named = next.kind == Kind::Quote && next.span.start == token.span.end;
        let steps = match is_named {
            true => vec![self.after_dot()?],
            false => Vec::new(),
        };
        Ok((Term::Identity, steps))
    }

    fn group(&mut self) -> Parsed<Term> {
        let inner = self.pipe()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn array(&mut self) -> Parsed<Term> {
        if self.takes("]")? {
            return Ok(Term::Array(None));
        }
        let inner = self.pipe()?;
        self.expect("]")?;
        Ok(Term::Array(Some(Box::new(inner))))
    }

    fn word(&mut self, word: &str, token: &Token<'_>) -> Parsed<Term> {
        if let Some((_, hint)) = REFUSED.iter().find(|(refused, _)| *refused == word) {
            let fault = Fault::new(
                token.span.clone(),
                format!("`{word}` is not supported here."),
            );
            return Err(fault.hint(*hint));
        }
        if JOINING.contains(&word) {
            return Err(self.no_term(token));
        }
        self.call(word, token.span.clone())
    }

    /// The token that was taken begins no term.
    fn no_term(&mut self, token: &Token<'_>) -> Fault {
        self.skip_to(token.span.start);
        self.last = Kind::End;
        self.unexpected("a value")
    }

    /// After a dot that has no name: `."name"`, `.[…]`.
    fn after_dot(&mut self) -> Parsed<Step> {
        if self.takes("[")? {
            return self.bracket();
        }
        if self.peek()?.kind != Kind::Quote {
            return Err(self.unexpected("a field"));
        }
        self.next()?;
        Ok(step(self.text(Format::Text)?))
    }

    /// What stands in brackets after a term.
    fn bracket(&mut self) -> Parsed<Step> {
        if self.takes("]")? {
            return Ok(of(Part::Each));
        }
        let from = self.bound()?;
        if !self.takes(":")? {
            self.expect("]")?;
            return match from {
                Some(index) => Ok(step(index)),
                None => Err(self.unexpected("an index")),
            };
        }
        let until = self.bound()?;
        self.expect("]")?;
        Ok(of(Part::Slice(from, until)))
    }

    /// A bound of a slice, which may be left out.
    fn bound(&mut self) -> Parsed<Option<Term>> {
        if self.sees(":")? || self.sees("]")? {
            return Ok(None);
        }
        self.pipe().map(Some)
    }

    fn branches(&mut self) -> Parsed<Term> {
        let mut branches = Vec::new();
        loop {
            let condition = self.pipe()?;
            self.expect_word("then")?;
            branches.push((condition, self.pipe()?));
            if !self.takes_word("elif")? {
                break;
            }
        }
        let otherwise = match self.takes_word("else")? {
            true => Some(Box::new(self.pipe()?)),
            false => None,
        };
        self.expect_word("end")?;
        Ok(Term::If {
            branches,
            otherwise,
        })
    }

    fn attempt(&mut self) -> Parsed<Term> {
        let body = Box::new(self.unary()?);
        let catch = match self.takes_word("catch")? {
            true => Some(Box::new(self.unary()?)),
            false => None,
        };
        Ok(Term::Try { body, catch })
    }

    fn object(&mut self) -> Parsed<Term> {
        let mut entries = Vec::new();
        while !self.sees("}")? {
            entries.push(self.entry()?);
            if !self.takes(",")? {
                break;
            }
        }
        self.expect("}")?;
        Ok(Term::Object(entries))
    }

    fn entry(&mut self) -> Parsed<(Term, Term)> {
        let token = self.peek()?;
        if let Kind::Variable(name) = token.kind {
            self.next()?;
            let value = self.variable(name, token.span);
            return match self.takes(":")? {
                true => Ok((value, self.object_value()?)),
                false => Ok((Term::Constant(name.into()), value)),
            };
        }
        let key = self.key()?;
        if self.takes(":")? {
            return Ok((key, self.object_value()?));
        }
        if token.kind == Kind::Symbol("(") {
            return Err(self.unexpected("`:`"));
        }
        // `{name}` is short for `{name: .name}`.
        let value = read(Term::Identity, vec![step(key.clone())]);
        Ok((key, value))
    }

    /// The key of an object or of a pattern.
    pub(super) fn key(&mut self) -> Parsed<Term> {
        let token = self.next()?;
        match token.kind {
            Kind::Identifier(name) => Ok(Term::Constant(name.into())),
            Kind::Quote => self.text(Format::Text),
            Kind::Format(name) => self.format(name, &token),
            Kind::Symbol("(") => {
                let key = self.pipe()?;
                self.expect(")")?;
                Ok(key)
            }
            _ => {
                self.skip_to(token.span.start);
                self.last = Kind::End;
                let fault = self.unexpected("a key");
                Err(match (token.kind, &fault.hint) {
                    (Kind::Number(_) | Kind::Field(_), None) => {
                        fault.hint("A key is a name, a string, or an expression in parentheses.")
                    }
                    _ => fault,
                })
            }
        }
    }

    /// A value in an object, where a comma begins the next entry.
    fn object_value(&mut self) -> Parsed<Term> {
        self.nested(|parser| parser.joined(0, false))
    }
}

/// The start of a text, for a sentence.
fn start_of(text: &str) -> String {
    const MAX_LETTERS: usize = 60;
    match text.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn of(part: Part) -> Step {
    Step {
        part,
        is_optional: false,
    }
}

fn step(index: Term) -> Step {
    of(Part::Index(index))
}

/// `(f)?`, which is `try f`; more than once is as once.
fn tried(term: Term) -> Term {
    match term {
        Term::Try { catch: None, .. } => term,
        _ => Term::Try {
            body: Box::new(term),
            catch: None,
        },
    }
}

fn read(term: Term, steps: Vec<Step>) -> Term {
    match steps.is_empty() {
        true => term,
        false => Term::Access(Box::new(term), steps),
    }
}

fn number(text: &str, token: &Token<'_>) -> Parsed<Term> {
    if let Ok(whole) = text.parse::<u64>() {
        return Ok(Term::Constant(whole.into()));
    }
    let read = text.parse::<f64>().ok().filter(|read| read.is_finite());
    match read.and_then(crate::number::of_float) {
        Some(number) => Ok(Term::Constant(Json::Number(number))),
        None => Err(Fault::new(
            token.span.clone(),
            "The number is too large for a double.",
        )),
    }
}
