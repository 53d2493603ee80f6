//! Functions that take expressions: `map`, `select`, `sort_by`, `first` and their like.

use serde_json::Number;

use super::{Done, Evaluator, Stop, shown};
use crate::functions::Function as F;
use crate::number;
use crate::tree::{Operator, Term};
use crate::value::{Fields, Value, compare};

impl<'a> Evaluator<'a> {
    pub(super) fn generate(
        &mut self,
        function: F,
        arguments: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        // The parser counted the arguments.
        let (Some(first), last) = (arguments.first(), arguments.last()) else {
            return self.descend(input, out);
        };
        let last = last.unwrap_or(first);
        match function {
            F::Select => {
                let mut conditions = Vec::new();
                let ended = self.run(first, input, &mut conditions);
                let held = conditions.iter().filter(|held| held.is_true());
                out.extend(held.map(|_| input.clone()));
                ended
            }
            F::Map => {
                let mut mapped = Vec::new();
                for item in self.each(input)? {
                    self.run(first, &item, &mut mapped)?;
                }
                out.push(self.array(mapped)?);
                Ok(())
            }
            F::MapValues => {
                out.push(self.map_values(first, input)?);
                Ok(())
            }
            F::WithEntries => {
                let mut entries = Vec::new();
                for entry in self.entries_of(input)? {
                    self.run(first, &entry, &mut entries)?;
                }
                out.push(self.object_of(entries.into_iter())?);
                Ok(())
            }
            F::Walk => self.walk(first, input, out),
            F::FirstOf => self.some_of(first, input, out, |put_out| put_out.into_iter().next()),
            F::LastOf => {
                let mut put_out = self.all(first, input)?;
                out.extend(put_out.pop());
                Ok(())
            }
            F::Limit | F::NthOf => self.counted(function, first, last, input, out),
            F::IsEmpty => {
                let is_empty = |put_out: Vec<_>| Some(Value::Bool(put_out.is_empty()));
                self.some_of(first, input, out, is_empty)
            }
            F::AnyOf | F::AllOf | F::AnyFrom | F::AllFrom => {
                let from = (arguments.len() == 2).then_some(first);
                let decides = matches!(function, F::AnyOf | F::AnyFrom);
                out.push(Value::Bool(self.decide(from, last, decides, input)?));
                Ok(())
            }
            _ => {
                out.push(self.by_keys(function, first, input)?);
                Ok(())
            }
        }
    }

    /// `..`: the value and all that is in it, what holds before what is held.
    fn descend(&mut self, input: &Value<'a>, out: &mut Vec<Value<'a>>) -> Done<'a> {
        self.charge(2)?;
        out.push(input.clone());
        if matches!(input, Value::Array(_) | Value::Object(_)) {
            for part in self.each(input)? {
                self.descend(&part, out)?;
            }
        }
        Ok(())
    }

    /// One value made of what a term put out; an error counts only if there is none.
    fn some_of(
        &mut self,
        term: &'a Term,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
        of: impl FnOnce(Vec<Value<'a>>) -> Option<Value<'a>>,
    ) -> Done<'a> {
        let mut put_out = Vec::new();
        match self.run(term, input, &mut put_out) {
            Err(Stop::Raised(raised)) if put_out.is_empty() => return Err(Stop::Raised(raised)),
            Err(Stop::Spent(spent)) => return Err(Stop::Spent(spent)),
            _ => {}
        }
        out.extend(of(put_out));
        Ok(())
    }

    /// `limit(n; f)` and `nth(n; f)`
    fn counted(
        &mut self,
        function: F,
        count: &'a Term,
        term: &'a Term,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let (counts, counted) = self.outputs(Some(count), input)?;
        for count in counts {
            let Value::Number(count) = &count else {
                return self.raise(format!("{} is no count", shown(&count)));
            };
            let count = number::float(count);
            if count < 0.0 {
                let name = if function == F::Limit { "limit" } else { "nth" };
                return self.raise(format!("`{name}` takes no negative count"));
            }
            let count = match function {
                F::Limit => count.ceil(),
                _ => count.floor(),
            };
            if count == 0.0 && function == F::Limit {
                continue;
            }
            let mut put_out = Vec::new();
            let ended = self.run(term, input, &mut put_out);
            let is_enough = count <= put_out.len() as f64;
            match ended {
                Err(Stop::Raised(_)) if is_enough => {}
                Err(Stop::Raised(raised)) if function == F::Limit => {
                    out.append(&mut put_out);
                    return Err(Stop::Raised(raised));
                }
                ended => ended?,
            }
            let at = number::bound(count, put_out.len());
            match function {
                F::Limit => out.extend(put_out.drain(..at)),
                _ => out.extend(put_out.into_iter().nth(at)),
            }
        }
        counted
    }

    /// Whether a condition holds for any, or for all, of what a term puts out or of what the input holds.
    fn decide(
        &mut self,
        from: Option<&'a Term>,
        condition: &'a Term,
        deciding: bool,
        input: &Value<'a>,
    ) -> Done<'a, bool> {
        let mut values = Vec::new();
        let ended = match from {
            Some(from) => self.run(from, input, &mut values),
            None => {
                values = self.each(input)?;
                Ok(())
            }
        };
        for value in &values {
            let mut conditions = Vec::new();
            let tested = self.run(condition, value, &mut conditions);
            if conditions.iter().any(|held| held.is_true() == deciding) {
                return Ok(deciding);
            }
            tested?;
        }
        ended.map(|()| !deciding)
    }

    fn map_values(&mut self, term: &'a Term, input: &Value<'a>) -> Done<'a, Value<'a>> {
        if let Value::Object(object) = input {
            let mut fields = Fields::new();
            for (key, value) in object.iter() {
                let mut put_out = Vec::new();
                self.some_of(term, &value, &mut put_out, |put_out| {
                    put_out.into_iter().next()
                })?;
                if let Some(first) = put_out.pop() {
                    self.insert(&mut fields, key, first)?;
                }
            }
            return self.fields(fields);
        }
        let mut items = Vec::new();
        for item in self.each(input)? {
            self.some_of(term, &item, &mut items, |put_out| {
                put_out.into_iter().next()
            })?;
        }
        self.array(items)
    }

    /// Each value from the innermost outwards, replaced by what the term makes of it.
    fn walk(&mut self, term: &'a Term, input: &Value<'a>, out: &mut Vec<Value<'a>>) -> Done<'a> {
        let walked = self.walking(|this| this.walk_parts(term, input))?;
        self.run(term, &walked, out)
    }

    fn walk_parts(&mut self, term: &'a Term, input: &Value<'a>) -> Done<'a, Value<'a>> {
        match input {
            Value::Array(items) => {
                let mut inner = Vec::new();
                for item in items.iter() {
                    self.walk(term, &item, &mut inner)?;
                }
                self.array(inner)
            }
            Value::Object(object) => {
                let mut fields = Fields::new();
                for (key, value) in object.iter() {
                    let mut inner = Vec::new();
                    self.walk(term, &value, &mut inner)?;
                    if let Some(first) = inner.into_iter().next() {
                        self.insert(&mut fields, key, first)?;
                    }
                }
                self.fields(fields)
            }
            scalar => Ok(scalar.clone()),
        }
    }

    /// `sort_by` and what sorts by what a term makes of each item.
    fn by_keys(&mut self, function: F, term: &'a Term, input: &Value<'a>) -> Done<'a, Value<'a>> {
        let Value::Array(items) = input else {
            return self.raise(format!(
                "{} cannot be sorted, as it is not an array",
                shown(input)
            ));
        };
        let mut keyed = Vec::new();
        for item in items.iter() {
            let key = self.all(term, &item)?;
            keyed.push((self.array(key)?, item));
        }
        self.sort(&mut keyed)?;
        let last = keyed.len().saturating_sub(1);
        match function {
            F::SortBy => self.array(keyed.into_iter().map(|(_, item)| item).collect()),
            F::MinBy => Ok(keyed
                .into_iter()
                .next()
                .map_or(Value::Null, |(_, item)| item)),
            F::MaxBy => Ok(keyed
                .into_iter()
                .nth(last)
                .map_or(Value::Null, |(_, item)| item)),
            _ => {
                let mut groups = Vec::new();
                for group in keyed.chunk_by(|(a, _), (b, _)| compare(a, b, &mut 0).is_eq()) {
                    let mut items = group.iter().map(|(_, item)| item.clone());
                    groups.push(match (function, items.next()) {
                        (F::UniqueBy, Some(first)) => first,
                        (_, first) => self.array(first.into_iter().chain(items).collect())?,
                    });
                }
                self.array(groups)
            }
        }
    }

    /// Sorts by the keys; what is equal keeps its order. It costs beforehand what the comparisons may take.
    pub(super) fn sort(&mut self, keyed: &mut [(Value<'a>, Value<'a>)]) -> Done<'a> {
        let mut weight = 0;
        for (key, _) in keyed.iter() {
            weight += self.size(key)?.weight as u64;
        }
        let length = keyed.len() as u64;
        let rounds = u64::from(u64::BITS - length.leading_zeros());
        self.charge(rounds * (length / 2 + weight / 128))?;
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, &mut 0));
        Ok(())
    }

    pub(super) fn range(
        &mut self,
        arguments: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let mut sides = self.sides(arguments.iter(), input)?;
        while self.next(&mut sides)? {
            let (zero, one) = (Value::from(0), Value::from(1));
            let (from, until, by) = match sides.len() {
                1 => (&zero, sides.at(0), &one),
                2 => (sides.at(0), sides.at(1), &one),
                _ => (sides.at(0), sides.at(1), sides.at(2)),
            };
            let (Value::Number(from), Value::Number(until), Value::Number(by)) = (from, until, by)
            else {
                return self.raise("The bounds and the step of a range must be numbers".to_owned());
            };
            self.count(from, until, by, out)?;
        }
        sides.ended
    }

    fn count(
        &mut self,
        from: &Number,
        until: &Number,
        by: &Number,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let direction = number::compare(by, &Number::from(0));
        let mut at = from.clone();
        while direction.is_ne() && number::compare(&at, until) == direction.reverse() {
            self.charge(2)?;
            out.push(Value::Number(at.clone()));
            match number::calculate(Operator::Add, &at, by) {
                Ok(next) => at = next,
                Err(why) => return self.raise(format!("The numbers of a range {why}")),
            }
        }
        Ok(())
    }
}
