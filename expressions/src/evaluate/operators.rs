//! Operators: logic, comparison, arithmetic.

use std::cmp::Ordering;

use super::{Done, Evaluator, Spent, Stop, name_of, shown};
use crate::budget::MAX_WEIGHT;
use crate::number;
use crate::tree::{Operator, Term};
use crate::value::{Object, Value, compare};

impl<'a> Evaluator<'a> {
    /// Operators of one rank, from the left. Of what the sides put out each combination counts; the left
    /// side changes fastest.
    pub(super) fn chain(
        &mut self,
        first: &'a Term,
        rest: &'a [(Operator, Term)],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let mut lefts = self.all(first, input)?;
        for (operator, term) in rest {
            lefts = match operator {
                Operator::And | Operator::Or => self.logic(*operator, &lefts, term, input)?,
                _ => self.combine(*operator, &lefts, term, input)?,
            };
        }
        out.append(&mut lefts);
        Ok(())
    }

    /// The right side is evaluated only if a left one does not decide.
    fn logic(
        &mut self,
        operator: Operator,
        lefts: &[Value<'a>],
        right: &'a Term,
        input: &Value<'a>,
    ) -> Done<'a, Vec<Value<'a>>> {
        let deciding = operator == Operator::Or;
        let mut out = Vec::new();
        for left in lefts {
            if left.is_true() == deciding {
                out.push(Value::Bool(deciding));
                continue;
            }
            for right in self.all(right, input)? {
                self.charge(2)?;
                out.push(Value::Bool(right.is_true()));
            }
        }
        Ok(out)
    }

    fn combine(
        &mut self,
        operator: Operator,
        lefts: &[Value<'a>],
        right: &'a Term,
        input: &Value<'a>,
    ) -> Done<'a, Vec<Value<'a>>> {
        let rights = self.all(right, input)?;
        let mut out = Vec::with_capacity(lefts.len());
        for right in &rights {
            for left in lefts {
                self.charge(2)?;
                out.push(self.apply(operator, left, right)?);
            }
        }
        Ok(out)
    }

    pub(super) fn apply(
        &mut self,
        operator: Operator,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let order = match operator {
            Operator::Add => return self.add(left, right),
            Operator::Subtract => return self.subtract(left, right),
            Operator::Multiply => return self.multiply(left, right),
            Operator::Divide => return self.divide(left, right),
            Operator::Remainder => return self.calculate(operator, left, right),
            _ => self.order(left, right)?,
        };
        Ok(Value::Bool(match operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            _ => order.is_ge(),
        }))
    }

    pub(super) fn order(&mut self, a: &Value<'a>, b: &Value<'a>) -> Done<'a, Ordering> {
        let mut cost = 0;
        let order = compare(a, b, &mut cost);
        self.charge(cost)?;
        Ok(order)
    }

    pub(super) fn negate(
        &mut self,
        term: &'a Term,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        for value in self.all(term, input)? {
            let negated = match &value {
                Value::Number(number) => number::negate(number),
                _ => None,
            };
            match negated {
                Some(negated) => out.push(Value::Number(negated)),
                None => return self.raise(format!("{} cannot be negated", shown(&value))),
            }
        }
        Ok(())
    }

    fn calculate(
        &mut self,
        operator: Operator,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let (Value::Number(a), Value::Number(b)) = (left, right) else {
            let name = name_of(operator);
            return self.raise(format!(
                "{} and {} cannot be {name}",
                shown(left),
                shown(right)
            ));
        };
        match number::calculate(operator, a, b) {
            Ok(number) => Ok(Value::Number(number)),
            Err(why) => self.raise(format!("{} and {} {why}", shown(left), shown(right))),
        }
    }

    pub(super) fn add(&mut self, left: &Value<'a>, right: &Value<'a>) -> Done<'a, Value<'a>> {
        match (left, right) {
            (Value::Null, other) | (other, Value::Null) => Ok(other.clone()),
            (Value::Text(a), Value::Text(b)) => {
                let text = self.joined(a.as_str(), b.as_str())?;
                Ok(Value::text(text))
            }
            (Value::Array(a), Value::Array(b)) => {
                self.charge(2 * (a.len() + b.len()) as u64)?;
                let items = a.iter().chain(b.iter()).collect();
                self.array(items)
            }
            (Value::Object(a), Value::Object(b)) => {
                let mut fields = self.copied(a)?;
                self.charge(8 * b.len() as u64)?;
                fields.extend(b.iter());
                self.fields(fields)
            }
            _ => self.calculate(Operator::Add, left, right),
        }
    }

    fn subtract(&mut self, left: &Value<'a>, right: &Value<'a>) -> Done<'a, Value<'a>> {
        let (Value::Array(a), Value::Array(b)) = (left, right) else {
            return self.calculate(Operator::Subtract, left, right);
        };
        let mut kept = Vec::new();
        for item in a.iter() {
            let mut is_kept = true;
            for other in b.iter() {
                if self.order(&item, &other)?.is_eq() {
                    is_kept = false;
                    break;
                }
            }
            self.charge(2)?;
            if is_kept {
                kept.push(item);
            }
        }
        self.array(kept)
    }

    fn multiply(&mut self, left: &Value<'a>, right: &Value<'a>) -> Done<'a, Value<'a>> {
        match (left, right) {
            (Value::Text(text), Value::Number(times))
            | (Value::Number(times), Value::Text(text)) => {
                let times = number::float(times);
                if times < 0.0 {
                    return Ok(Value::Null);
                }
                if times.floor() * text.as_str().len() as f64 > MAX_WEIGHT as f64 {
                    return Err(Stop::Spent(Spent::Weight));
                }
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "an empty text alone can be repeated more often, and stays empty"
                )]
                let times = (times as usize).min(MAX_WEIGHT);
                self.charge_bytes(text.as_str().len() * times)?;
                self.text(text.as_str().repeat(times))
            }
            (Value::Object(a), Value::Object(b)) => self.merge(a, b),
            _ => self.calculate(Operator::Multiply, left, right),
        }
    }

    /// Objects under the same key are merged, too.
    fn merge(&mut self, a: &Object<'a>, b: &Object<'a>) -> Done<'a, Value<'a>> {
        let mut fields = self.copied(a)?;
        for (key, value) in b.iter() {
            self.charge(8)?;
            let value = match (fields.get(key.as_str()), &value) {
                (Some(Value::Object(inner)), Value::Object(other)) => {
                    let inner = inner.clone();
                    self.merge(&inner, other)?
                }
                _ => value,
            };
            fields.insert(key, value);
        }
        self.fields(fields)
    }

    fn divide(&mut self, left: &Value<'a>, right: &Value<'a>) -> Done<'a, Value<'a>> {
        match (left, right) {
            (Value::Text(text), Value::Text(by)) => self.split(text.as_str(), by.as_str()),
            _ => self.calculate(Operator::Divide, left, right),
        }
    }
}
