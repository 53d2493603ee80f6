//! Operators: logic, comparison, arithmetic.

use std::cmp::Ordering;

use super::{Done, Evaluator, Spent, Stop, name_of, shown};
use crate::budget::MAX_WEIGHT;
use crate::number;
use crate::tree::{Operator, Term};
use crate::value::{Object, Value, compare};

impl<'a> Evaluator<'a> {
    /// Operators of one rank, from the left.
    pub(super) fn chain(
        &mut self,
        first: &'a Term,
        rest: &'a [(Operator, Term)],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        if let Some((Operator::And | Operator::Or, _)) = rest.first() {
            return self.logic(first, rest, input, out);
        }
        let terms = rest.iter().rev().map(|(_, term)| term);
        let mut sides = self.sides(terms.chain([first]), input)?;
        while self.next(&mut sides)? {
            let mut value = sides.at(rest.len()).clone();
            for (place, (operator, _)) in rest.iter().enumerate() {
                self.charge(2)?;
                value = self.apply(*operator, &value, sides.at(rest.len() - 1 - place))?;
            }
            out.push(value);
        }
        sides.ended
    }

    /// A right side is evaluated only if its left one does not decide.
    fn logic(
        &mut self,
        first: &'a Term,
        rest: &'a [(Operator, Term)],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let mut lefts = Vec::new();
        let mut ended = self.run(first, input, &mut lefts);
        for (operator, right) in rest {
            let deciding = *operator == Operator::Or;
            let mut results = Vec::new();
            for left in &lefts {
                self.charge(2)?;
                if left.is_true() == deciding {
                    results.push(Value::Bool(deciding));
                    continue;
                }
                let start = results.len();
                let ran = self.run(right, input, &mut results);
                for result in &mut results[start..] {
                    *result = Value::Bool(result.is_true());
                }
                if ran.is_err() {
                    ended = ran;
                    break;
                }
            }
            if let Err(Stop::Spent(_)) = ended {
                return ended;
            }
            lefts = results;
        }
        out.append(&mut lefts);
        ended
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
        let mut values = Vec::new();
        let ended = self.run(term, input, &mut values);
        for value in values {
            let negated = match &value {
                Value::Number(number) => number::negate(number),
                _ => None,
            };
            match negated {
                Some(negated) => out.push(Value::Number(negated)),
                None => return self.raise(format!("{} cannot be negated", shown(&value))),
            }
        }
        ended
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
                self.extend(&mut fields, b)?;
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
            self.charge_bytes(key.as_str().len())?;
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
