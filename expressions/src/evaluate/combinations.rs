//! Terms that take several others, each of which may put out several values: every combination counts.
//!
//! The terms are evaluated from the outermost to the innermost, which changes fastest. Once one of them puts
//! out nothing, those further inwards are not evaluated, and so raise nothing.

use super::{Done, Evaluator, Spent, Stop};
use crate::budget::MAX_WEIGHT;
use crate::tree::{Format, Piece, Term};
use crate::value::{Fields, Value};

/// What several terms put out, and which combination is looked at.
pub(super) struct Sides<'a> {
    values: Vec<Value<'a>>,
    sides: Vec<Side>,
    is_begun: bool,
    /// How the evaluation ends when all combinations were looked at.
    pub(super) ended: Done<'a>,
}

struct Side {
    start: usize,
    length: usize,
    place: usize,
}

impl<'a> Sides<'a> {
    /// The value of one side in this combination.
    pub(super) fn at(&self, side: usize) -> &Value<'a> {
        let side = &self.sides[side];
        &self.values[side.start + side.place]
    }

    pub(super) fn len(&self) -> usize {
        self.sides.len()
    }

    fn advance(&mut self) -> bool {
        if !self.is_begun {
            self.is_begun = true;
            return self.sides.iter().all(|side| side.length > 0);
        }
        for side in self.sides.iter_mut().rev() {
            side.place += 1;
            if side.place < side.length {
                return true;
            }
            side.place = 0;
        }
        false
    }

    /// Keeps what one more side put out. An error further inwards comes before the next round further
    /// outwards.
    fn keep(&mut self, values: impl Iterator<Item = Value<'a>>, ended: Done<'a>) -> Done<'a, bool> {
        let start = self.values.len();
        self.values.extend(values);
        let length = self.values.len() - start;
        match ended {
            Ok(()) => {}
            Err(Stop::Spent(spent)) => return Err(Stop::Spent(spent)),
            raised => {
                for side in &mut self.sides {
                    side.length = 1;
                }
                self.ended = raised;
            }
        }
        self.sides.push(Side {
            start,
            length,
            place: 0,
        });
        Ok(length > 0)
    }
}

impl<'a> Evaluator<'a> {
    /// The combinations of what terms put out. The first term lies outermost.
    pub(super) fn sides(
        &mut self,
        terms: impl Iterator<Item = &'a Term>,
        input: &Value<'a>,
    ) -> Done<'a, Sides<'a>> {
        let (expected, _) = terms.size_hint();
        let mut sides = Sides {
            values: Vec::with_capacity(expected),
            sides: Vec::with_capacity(expected),
            is_begun: false,
            ended: Ok(()),
        };
        for term in terms {
            let mut values = Vec::new();
            let ended = self.run(term, input, &mut values);
            if !sides.keep(values.into_iter(), ended)? {
                break;
            }
        }
        Ok(sides)
    }

    /// Goes to the next combination, if there is one.
    pub(super) fn next(&mut self, sides: &mut Sides<'a>) -> Done<'a, bool> {
        self.charge(1 + sides.len() as u64)?;
        Ok(sides.advance())
    }

    pub(super) fn object(
        &mut self,
        entries: &'a [(Term, Term)],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let terms = entries.iter().flat_map(|(key, value)| [key, value]);
        let mut sides = self.sides(terms, input)?;
        while self.next(&mut sides)? {
            let mut fields = Fields::with_capacity(entries.len());
            for entry in 0..entries.len() {
                match sides.at(2 * entry) {
                    Value::Text(key) => {
                        let value = sides.at(2 * entry + 1).clone();
                        self.insert(&mut fields, key.clone(), value)?;
                    }
                    key => {
                        let of = key.type_name();
                        return self.raise(format!("Object keys must be strings, not {of}"));
                    }
                }
            }
            out.push(self.fields(fields)?);
        }
        sides.ended
    }

    /// A string for each combination of what the pieces put out. The last piece lies outermost.
    pub(super) fn interpolate(
        &mut self,
        format: Format,
        pieces: &'a [Piece],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let terms = pieces.iter().rev().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Interpolated(term) => Some(term),
        });
        let mut sides = self.sides(terms, input)?;
        while self.next(&mut sides)? {
            let mut text = String::new();
            let mut inward = sides.len();
            for piece in pieces {
                match piece {
                    Piece::Literal(literal) => self.append(&mut text, literal)?,
                    Piece::Interpolated(_) => {
                        inward -= 1;
                        if let Value::Text(value) = self.formatted(format, sides.at(inward))? {
                            self.append(&mut text, value.as_str())?;
                        }
                    }
                }
            }
            out.push(self.text(text)?);
        }
        sides.ended
    }

    /// Two texts in one.
    pub(super) fn joined(&mut self, first: &str, second: &str) -> Done<'a, String> {
        let length = first.len() + second.len();
        self.charge(2)?;
        self.charge_bytes(length)?;
        if length > MAX_WEIGHT {
            return Err(Stop::Spent(Spent::Weight));
        }
        Ok([first, second].concat())
    }
}
