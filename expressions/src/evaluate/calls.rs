//! Which code a function is: the one place that knows all of them.
//!
//! A function of values gets its arguments evaluated, each combination once. One that takes expressions,
//! such as `map`, evaluates them itself.

use super::{Done, Evaluator, Stop};
use crate::functions::Function as F;
use crate::tree::Term;
use crate::value::Value;

impl<'a> Evaluator<'a> {
    pub(super) fn call(
        &mut self,
        function: F,
        arguments: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        match function {
            F::Empty => Ok(()),
            F::Descend
            | F::Select
            | F::Map
            | F::MapValues
            | F::WithEntries
            | F::Walk
            | F::FirstOf
            | F::LastOf
            | F::Limit
            | F::NthOf
            | F::IsEmpty
            | F::AnyOf
            | F::AllOf
            | F::AnyFrom
            | F::AllFrom
            | F::SortBy
            | F::GroupBy
            | F::UniqueBy
            | F::MinBy
            | F::MaxBy => self.generate(function, arguments, input, out),
            F::Range | F::RangeFrom | F::RangeBy => self.range(arguments, input, out),
            F::PathOf | F::Delete | F::Pick | F::Paths => {
                self.by_paths(function, arguments, input, out)
            }
            F::Sub | F::SubWith | F::Gsub | F::GsubWith => {
                self.substitute(function, arguments, input, out)
            }
            F::Arrays
            | F::Booleans
            | F::Iterables
            | F::Nulls
            | F::Numbers
            | F::Objects
            | F::Scalars
            | F::Strings
            | F::Values => {
                if has_type(function, input) {
                    out.push(input.clone());
                }
                Ok(())
            }
            _ => self.call_of_values(function, arguments, input, out),
        }
    }

    /// A function of values, once for each combination of its arguments.
    fn call_of_values(
        &mut self,
        function: F,
        arguments: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        match function {
            F::MatchWith | F::CaptureWith => {
                // The flags lie outermost.
                let mut sides = self.sides(arguments.iter().rev(), input)?;
                while self.next(&mut sides)? {
                    self.matches(function, input, sides.at(1), sides.at(0), out)?;
                }
                sides.ended
            }
            F::Match | F::Capture => {
                let mut sides = self.sides(arguments.iter(), input)?;
                while self.next(&mut sides)? {
                    let (source, flags) = self.pattern_and_flags(sides.at(0))?;
                    self.matches(function, input, &source, &flags, out)?;
                }
                sides.ended
            }
            F::Scan | F::ScanWith => {
                let mut sides = self.sides(arguments.iter(), input)?;
                while self.next(&mut sides)? {
                    let flags = (sides.len() > 1).then(|| sides.at(1));
                    let flags = flags.unwrap_or(&Value::Null);
                    self.matches(function, input, sides.at(0), flags, out)?;
                }
                sides.ended
            }
            F::SetPath | F::TestWith => {
                let mut sides = self.sides(arguments.iter().rev(), input)?;
                while self.next(&mut sides)? {
                    out.push(match function {
                        F::SetPath => self.set_path(input, sides.at(1), sides.at(0))?,
                        _ => self.test(input, sides.at(1), sides.at(0))?,
                    });
                }
                sides.ended
            }
            _ => {
                let mut sides = self.sides(arguments.iter(), input)?;
                while self.next(&mut sides)? {
                    let first = match sides.len() {
                        0 => &Value::Null,
                        _ => sides.at(0),
                    };
                    let second = match sides.len() {
                        0 | 1 => &Value::Null,
                        _ => sides.at(1),
                    };
                    out.push(self.value(function, input, first, second)?);
                }
                sides.ended
            }
        }
    }

    /// A function that has one result.
    fn value(
        &mut self,
        function: F,
        input: &Value<'a>,
        first: &Value<'a>,
        second: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        match function {
            F::Not => Ok(Value::Bool(!input.is_true())),
            F::Type => Ok(Value::Text(crate::value::Text::Borrowed(input.type_name()))),
            F::Error => Err(Stop::Raised(input.clone())),
            F::ErrorWith => Err(Stop::Raised(first.clone())),
            F::First | F::Last | F::Nth => {
                let at = match function {
                    F::First => Value::from(0),
                    F::Last => Value::Number((-1).into()),
                    _ => first.clone(),
                };
                self.index(input, &at)
            }
            F::GetPath => self.get_path(input, first),
            F::DeletePaths => self.delete_paths(input, first),
            F::Test => {
                let (source, flags) = self.pattern_and_flags(first)?;
                self.test(input, &source, &flags)
            }
            F::SplitWith => self.split_by_pattern(input, first, second),
            F::Abs | F::Ceil | F::Floor | F::Round | F::Sqrt | F::ToNumber => {
                self.number(function, input)
            }
            F::AsciiDowncase
            | F::AsciiUpcase
            | F::EndsWith
            | F::Explode
            | F::FromJson
            | F::Implode
            | F::Join
            | F::LeftTrim
            | F::LeftTrimText
            | F::RightTrim
            | F::RightTrimText
            | F::Split
            | F::StartsWith
            | F::ToJson
            | F::ToText
            | F::Trim
            | F::Utf8ByteLength => self.of_text(function, input, first),
            _ => self.of_collection(function, input, first),
        }
    }
}

fn has_type(function: F, value: &Value<'_>) -> bool {
    let is_iterable = matches!(value, Value::Array(_) | Value::Object(_));
    match function {
        F::Arrays => matches!(value, Value::Array(_)),
        F::Booleans => matches!(value, Value::Bool(_)),
        F::Iterables => is_iterable,
        F::Nulls => matches!(value, Value::Null),
        F::Numbers => matches!(value, Value::Number(_)),
        F::Objects => matches!(value, Value::Object(_)),
        F::Scalars => !is_iterable,
        F::Strings => matches!(value, Value::Text(_)),
        _ => !matches!(value, Value::Null),
    }
}
