//! From an expression's text to its tree, by recursive descent.
//!
//! Names are resolved on the way, and all unknown ones are told at once. The first fault of grammar ends the
//! reading. The descent has a bound, so no text exhausts the thread's stack.
//!
//! Left out, and refused by name: definitions of functions, `reduce` and `foreach`, labels, modules,
//! assignments, alternative patterns.

mod hints;
mod names;
mod terms;
mod text;

use std::ops::Range;

use crate::fault::Fault;
use crate::lexer::{self, Kind, Token};
use crate::tree::{Operator, Pattern, Term};

/// How many levels an expression may nest.
pub const MAX_NESTING: usize = 48;
/// Bytes of an expression's text.
pub const MAX_SOURCE_BYTES: usize = 8 * 1024;
/// Faults that are told at once.
const MAX_FAULTS: usize = 20;

/// The operators of each rank above pipes, commas and alternatives, from the loosest to the tightest.
const RANKS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];
const COMPARISONS: usize = 2;
/// What joins terms more loosely than any operator, and the node for it.
const JOINTS: [(&str, Join); 3] = [
    ("|", Term::Pipe),
    (",", Term::Comma),
    ("//", Term::Alternative),
];
const COMMA: usize = 1;
const ALTERNATIVE: usize = 2;

type Join = fn(Vec<Term>) -> Term;
type Parsed<T> = Result<T, Fault>;

struct Parser<'s> {
    source: &'s str,
    /// Where the last token that was taken ends.
    at: usize,
    /// The last token that was taken.
    last: Kind<'s>,
    ahead: Option<Token<'s>>,
    nesting: usize,
    /// Where the last term between operators begins.
    term: usize,
    /// The variables in scope; the place of a name is its place on the stack of variables.
    variables: Vec<String>,
    /// Unknown names.
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

/// Reads an expression that may use these variables. With the tree come the warnings.
pub(crate) fn parse(source: &str, variables: &[&str]) -> Result<(Term, Vec<Fault>), Vec<Fault>> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(vec![Fault::new(
            0..source.len(),
            format!(
                "The expression has {} bytes; at most {MAX_SOURCE_BYTES} are taken.",
                source.len()
            ),
        )]);
    }
    let mut parser = Parser {
        source,
        at: 0,
        last: Kind::End,
        ahead: None,
        nesting: 0,
        term: 0,
        variables: variables.iter().map(|&name| name.to_owned()).collect(),
        faults: Vec::new(),
        warnings: Vec::new(),
    };
    match parser.whole() {
        Ok(term) if parser.faults.is_empty() => Ok((term, parser.warnings)),
        Ok(_) => Err(parser.faults),
        Err(fault) => {
            parser.faults.truncate(MAX_FAULTS - 1);
            parser.faults.push(fault);
            Err(parser.faults)
        }
    }
}

impl<'s> Parser<'s> {
    fn whole(&mut self) -> Parsed<Term> {
        let first = self.peek()?;
        if first.kind == Kind::End {
            return Err(Fault::new(first.span, "The expression is empty.")
                .hint("Write `.` for the input itself."));
        }
        let term = self.pipe()?;
        match self.peek()?.kind {
            Kind::End => Ok(term),
            _ => Err(self.unexpected("an operator or the end")),
        }
    }

    fn peek(&mut self) -> Parsed<Token<'s>> {
        if let Some(token) = &self.ahead {
            return Ok(token.clone());
        }
        let token = lexer::token(self.source, self.at)?;
        self.ahead = Some(token.clone());
        Ok(token)
    }

    fn next(&mut self) -> Parsed<Token<'s>> {
        let token = self.peek()?;
        self.skip_to(token.span.end);
        self.last = token.kind;
        Ok(token)
    }

    fn skip_to(&mut self, at: usize) {
        self.at = at;
        self.ahead = None;
    }

    fn sees(&mut self, symbol: &str) -> Parsed<bool> {
        Ok(self.peek()?.kind == Kind::Symbol(symbol))
    }

    fn sees_word(&mut self, word: &str) -> Parsed<bool> {
        Ok(self.peek()?.kind == Kind::Identifier(word))
    }

    fn takes(&mut self, symbol: &str) -> Parsed<bool> {
        let sees = self.sees(symbol)?;
        if sees {
            self.next()?;
        }
        Ok(sees)
    }

    fn takes_word(&mut self, word: &str) -> Parsed<bool> {
        let sees = self.sees_word(word)?;
        if sees {
            self.next()?;
        }
        Ok(sees)
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.takes(symbol)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{symbol}`")))
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.takes_word(word)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{word}`")))
    }

    /// The fault at the next token, which stands where something else is wanted.
    fn unexpected(&mut self, wanted: &str) -> Fault {
        let token = match self.peek() {
            Ok(token) => token,
            Err(fault) => return fault,
        };
        let found = match token.kind {
            Kind::End => "the end".to_owned(),
            _ => format!("`{}`", &self.source[token.span.clone()]),
        };
        let fault = Fault::new(token.span, format!("Expected {wanted}, found {found}."));
        match hints::of_token(self.last, token.kind) {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }

    /// Keeps a fault that does not end the reading.
    fn tell(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    /// One level further down.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            let span = self.peek()?.span;
            return Err(Fault::new(
                span,
                format!("The expression nests more than {MAX_NESTING} levels."),
            )
            .hint("Spread the work over several tasks."));
        }
        self.nesting += 1;
        let read = read(self);
        self.nesting -= 1;
        read
    }

    fn pipe(&mut self) -> Parsed<Term> {
        self.nested(|parser| parser.joined(0, true))
    }

    /// Terms that are joined by `joint` or more tightly. One call reads all ranks at its left end, so that
    /// a level of nesting is few calls deep.
    fn joined(&mut self, joint: usize, with_commas: bool) -> Parsed<Term> {
        let start = self.peek()?.span.start;
        let mut left = self.chain(0)?;
        self.refuse_assignment()?;
        for (rank, (symbol, node)) in JOINTS.iter().enumerate().skip(joint).rev() {
            if rank == COMMA && !with_commas {
                continue;
            }
            if self.sees(symbol)? {
                let mut terms = vec![left];
                while self.takes(symbol)? {
                    terms.push(self.joined(rank + 1, with_commas)?);
                }
                left = node(terms);
            }
            // The source of `as` is all that operators join. Its body takes the rest.
            if rank == ALTERNATIVE && self.sees_word("as")? {
                return self.bind(left, start);
            }
        }
        Ok(left)
    }

    fn refuse_assignment(&mut self) -> Parsed<()> {
        let token = self.peek()?;
        match token.kind {
            Kind::Symbol(symbol) if hints::ASSIGNMENTS.contains(&symbol) => Err(Fault::new(
                token.span,
                format!("`{symbol}` is an assignment, and assignments are not supported."),
            )
            .hint(hints::of_assignment(symbol))),
            _ => Ok(()),
        }
    }

    /// Terms that are joined by the operators of this rank or more tightly.
    fn chain(&mut self, loosest: usize) -> Parsed<Term> {
        let mut left = self.unary()?;
        for rank in (loosest..RANKS.len()).rev() {
            let mut rest = Vec::new();
            while let Some((operator, span)) = self.operator(rank)? {
                if rank == COMPARISONS && !rest.is_empty() {
                    return Err(Fault::new(span, "Comparisons are not chained.")
                        .hint("Write `A < B and B < C`."));
                }
                rest.push((operator, self.chain(rank + 1)?));
            }
            if !rest.is_empty() {
                left = Term::Chain(Box::new(left), rest);
            }
        }
        Ok(left)
    }

    fn operator(&mut self, rank: usize) -> Parsed<Option<(Operator, Range<usize>)>> {
        let token = self.peek()?;
        let (Kind::Symbol(written) | Kind::Identifier(written)) = token.kind else {
            return Ok(None);
        };
        let Some((_, operator)) = RANKS[rank].iter().find(|(text, _)| *text == written) else {
            return Ok(None);
        };
        self.next()?;
        Ok(Some((*operator, token.span)))
    }

    fn unary(&mut self) -> Parsed<Term> {
        if !self.takes("-")? {
            return self.postfix();
        }
        let term = self.nested(Self::unary)?;
        Ok(Term::Negate(Box::new(term)))
    }

    /// What follows `as`: the variables come into scope and stay there.
    fn pattern(&mut self) -> Parsed<Pattern> {
        let token = self.next()?;
        match token.kind {
            Kind::Variable(name) => {
                self.variables.push(name.to_owned());
                Ok(Pattern::Variable)
            }
            Kind::Symbol("[") => self.nested(|parser| {
                let mut items = vec![parser.pattern()?];
                while parser.takes(",")? {
                    items.push(parser.pattern()?);
                }
                parser.expect("]")?;
                Ok(Pattern::Array(items))
            }),
            Kind::Symbol("{") => self.nested(|parser| {
                let mut entries = vec![parser.pattern_entry()?];
                while parser.takes(",")? {
                    entries.push(parser.pattern_entry()?);
                }
                parser.expect("}")?;
                Ok(Pattern::Object(entries))
            }),
            _ => {
                self.skip_to(token.span.start);
                Err(self.unexpected("a variable such as `$name`, `[` or `{`"))
            }
        }
    }

    fn pattern_entry(&mut self) -> Parsed<(Term, bool, Option<Pattern>)> {
        let token = self.peek()?;
        if let Kind::Variable(name) = token.kind {
            self.next()?;
            self.variables.push(name.to_owned());
            let inner = match self.takes(":")? {
                true => Some(self.pattern()?),
                false => None,
            };
            return Ok((Term::Constant(name.into()), true, inner));
        }
        let key = self.key()?;
        self.expect(":")?;
        Ok((key, false, Some(self.pattern()?)))
    }
}
