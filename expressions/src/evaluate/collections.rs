//! Functions of arrays and objects.

use super::{Done, Evaluator, Spent, Stop, letters, shown};
use crate::budget::MAX_WEIGHT;
use crate::functions::Function as F;
use crate::number;
use crate::tree::Operator;
use crate::value::{Array, Fields, Text, Value, compare};

impl<'a> Evaluator<'a> {
    pub(super) fn of_collection(
        &mut self,
        function: F,
        input: &Value<'a>,
        argument: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        match function {
            F::Length => self.length(input),
            F::Keys | F::KeysUnsorted => self.keys(function, input),
            F::Has => self.has(input, argument),
            F::In => self.has(argument, input),
            F::Contains => Ok(Value::Bool(self.contains(input, argument)?)),
            F::Inside => Ok(Value::Bool(self.contains(argument, input)?)),
            F::Index | F::RightIndex | F::Indices => {
                let places = self.indices(input, argument)?;
                match (function, &places) {
                    (F::Index, Value::Array(places)) => Ok(places.get(0).unwrap_or(Value::Null)),
                    (F::RightIndex, Value::Array(places)) => {
                        Ok(places.iter().next_back().unwrap_or(Value::Null))
                    }
                    _ => Ok(places),
                }
            }
            F::ToEntries => {
                let entries = self.entries_of(input)?;
                self.array(entries)
            }
            F::FromEntries => {
                let entries = self.each(input)?;
                self.object_of(entries.into_iter())
            }
            F::Add => self.sum(input),
            F::Any | F::All => {
                let deciding = function == F::Any;
                let mut values = self.each(input)?.into_iter();
                let is_decided = values.any(|value| value.is_true() == deciding);
                Ok(Value::Bool(is_decided == deciding))
            }
            F::Flatten | F::FlattenBy => self.flatten(function, input, argument),
            F::Reverse => self.reverse(input),
            F::Transpose => self.transpose(input),
            _ => self.sorted(function, input),
        }
    }

    fn items(&mut self, input: &Value<'a>) -> Done<'a, Array<'a>> {
        match input {
            Value::Array(items) => Ok(items.clone()),
            _ => self.raise(format!("{} is not an array", shown(input))),
        }
    }

    fn length(&mut self, input: &Value<'a>) -> Done<'a, Value<'a>> {
        match input {
            Value::Null => Ok(Value::from(0)),
            Value::Bool(_) => self.raise(format!("{} has no length", shown(input))),
            Value::Number(_) => self.number(F::Abs, input),
            Value::Text(text) => {
                self.charge_bytes(text.as_str().len())?;
                Ok(Value::from(text.as_str().chars().count()))
            }
            Value::Array(items) => Ok(Value::from(items.len())),
            Value::Object(fields) => Ok(Value::from(fields.len())),
        }
    }

    fn keys(&mut self, function: F, input: &Value<'a>) -> Done<'a, Value<'a>> {
        let keys = match input {
            Value::Object(fields) => {
                self.charge(4 * fields.len() as u64)?;
                let keys = match function {
                    F::Keys => {
                        self.charge(fields.sorting_cost())?;
                        fields.sorted_keys()
                    }
                    _ => fields.iter().map(|(key, _)| key).collect(),
                };
                keys.into_iter().map(Value::Text).collect()
            }
            Value::Array(items) => {
                self.charge(2 * items.len() as u64)?;
                (0..items.len()).map(Value::from).collect()
            }
            _ => return self.raise(format!("{} has no keys", shown(input))),
        };
        self.array(keys)
    }

    fn has(&mut self, value: &Value<'a>, key: &Value<'a>) -> Done<'a, Value<'a>> {
        match (value, key) {
            (Value::Object(fields), Value::Text(key)) => {
                self.charge_bytes(key.as_str().len())?;
                Ok(Value::Bool(fields.get(key.as_str()).is_some()))
            }
            (Value::Array(items), Value::Number(at)) => {
                let at = number::float(at);
                Ok(Value::Bool(at >= 0.0 && at < items.len() as f64))
            }
            _ => self.raise(format!(
                "Cannot check whether {} has {}",
                shown(value),
                shown(key)
            )),
        }
    }

    fn contains(&mut self, a: &Value<'a>, b: &Value<'a>) -> Done<'a, bool> {
        self.charge(1)?;
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                for (key, inner) in b.iter() {
                    self.charge_bytes(key.as_str().len())?;
                    let is_in = match a.get(key.as_str()) {
                        Some(value) => self.contains(&value, &inner)?,
                        None => false,
                    };
                    if !is_in {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Array(a), Value::Array(b)) => {
                for inner in b.iter() {
                    let mut is_in = false;
                    for value in a.iter() {
                        // What is passed over costs, too.
                        self.charge(1)?;
                        if value.type_name() == inner.type_name()
                            && self.contains(&value, &inner)?
                        {
                            is_in = true;
                            break;
                        }
                    }
                    if !is_in {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Text(a), Value::Text(b)) => {
                self.charge_bytes(a.as_str().len() + b.as_str().len())?;
                Ok(a.as_str().contains(b.as_str()))
            }
            _ if a.type_name() == b.type_name() => Ok(self.order(a, b)?.is_eq()),
            _ => {
                let message = format!("Cannot check whether {} contains {}", shown(a), shown(b));
                self.raise(message)
            }
        }
    }

    /// Where a text, an item or a row of items begins.
    pub(super) fn indices(&mut self, input: &Value<'a>, sought: &Value<'a>) -> Done<'a, Value<'a>> {
        let mut places = Vec::new();
        match (input, sought) {
            (Value::Null, _) => return Ok(Value::Null),
            (Value::Text(_), Value::Text(sought)) if sought.as_str().is_empty() => {}
            (Value::Text(text), Value::Text(sought)) => {
                let (text, sought) = (text.as_str(), sought.as_str());
                for (letters_before, (at, _)) in text.char_indices().enumerate() {
                    self.charge(1 + sought.len() as u64 / 64)?;
                    if text[at..].starts_with(sought) {
                        places.push(Value::from(letters_before));
                    }
                }
            }
            (Value::Array(items), Value::Array(sought)) => {
                if sought.len() == 0 {
                    return self.array(places);
                }
                for at in 0..(items.len() + 1).saturating_sub(sought.len()) {
                    let mut is_here = true;
                    for (offset, item) in sought.iter().enumerate() {
                        let here = items.get(at + offset).unwrap_or(Value::Null);
                        is_here = self.order(&here, &item)?.is_eq();
                        if !is_here {
                            break;
                        }
                    }
                    if is_here {
                        places.push(Value::from(at));
                    }
                }
            }
            (Value::Array(items), _) => {
                for (at, item) in items.iter().enumerate() {
                    if self.order(&item, sought)?.is_eq() {
                        places.push(Value::from(at));
                    }
                }
            }
            _ => return self.raise(format!("Cannot find {} in {}", shown(sought), shown(input))),
        }
        self.array(places)
    }

    pub(super) fn entries_of(&mut self, input: &Value<'a>) -> Done<'a, Vec<Value<'a>>> {
        let keyed: Vec<(Value<'a>, Value<'a>)> = match input {
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| (Value::Text(key), value))
                .collect(),
            Value::Array(items) => (0..).map(Value::from).zip(items.iter()).collect(),
            _ => return self.raise(format!("{} has no entries", shown(input))),
        };
        self.charge(2 * keyed.len() as u64)?;
        let mut entries = Vec::new();
        for (key, value) in keyed {
            let fields = [
                (Text::Borrowed("key"), key),
                (Text::Borrowed("value"), value),
            ];
            entries.push(self.fields(fields.into_iter().collect())?);
        }
        Ok(entries)
    }

    /// Entries have their key under `key` or `name`, their value under `value`, each also with a capital.
    pub(super) fn object_of(
        &mut self,
        entries: impl Iterator<Item = Value<'a>>,
    ) -> Done<'a, Value<'a>> {
        let mut fields = Fields::new();
        for entry in entries {
            let Value::Object(entry) = &entry else {
                return self.raise(format!("{} is no entry", shown(&entry)));
            };
            self.charge(8)?;
            let mut keys = ["key", "Key", "name", "Name"].iter();
            let key = keys.find_map(|name| entry.get(name).filter(Value::is_true));
            let value = entry.get("value").or_else(|| entry.get("Value"));
            let value = value.unwrap_or(Value::Null);
            let Some(Value::Text(key)) = key else {
                let key = key.unwrap_or(Value::Null);
                return self.raise(format!("{} is no key of an object", shown(&key)));
            };
            self.insert(&mut fields, key, value)?;
        }
        self.fields(fields)
    }

    /// `add`: texts, arrays and objects are gathered at once, so that a long list costs its length alone.
    fn sum(&mut self, input: &Value<'a>) -> Done<'a, Value<'a>> {
        let values = self.each(input)?;
        if !values.is_empty() && values.iter().all(|value| letters(value).is_some()) {
            let mut text = String::new();
            for value in values.iter().filter_map(letters) {
                self.append(&mut text, value)?;
            }
            return self.text(text);
        }
        if !values.is_empty() && values.iter().all(|value| matches!(value, Value::Array(_))) {
            let mut items = Vec::new();
            for value in &values {
                items.extend(self.each(value)?);
            }
            return self.array(items);
        }
        if !values.is_empty() && values.iter().all(|value| matches!(value, Value::Object(_))) {
            let mut fields = Fields::new();
            for value in &values {
                let Value::Object(object) = value else {
                    continue;
                };
                self.extend(&mut fields, object)?;
            }
            return self.fields(fields);
        }
        let mut sum = Value::Null;
        for value in &values {
            sum = self.apply(Operator::Add, &sum, value)?;
        }
        Ok(sum)
    }

    pub(super) fn append(&mut self, text: &mut String, piece: &str) -> Done<'a> {
        self.charge_bytes(piece.len())?;
        if text.len() + piece.len() > MAX_WEIGHT {
            return Err(Stop::Spent(Spent::Weight));
        }
        text.push_str(piece);
        Ok(())
    }

    fn flatten(
        &mut self,
        function: F,
        input: &Value<'a>,
        levels: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let levels = match (function, levels) {
            (F::Flatten, _) => f64::MAX,
            (_, Value::Number(levels)) if number::float(levels) >= 0.0 => number::float(levels),
            _ => return self.raise(format!("{} is no number of levels", shown(levels))),
        };
        let mut flat = Vec::new();
        for value in self.each(input)? {
            self.flatten_into(&value, levels, &mut flat)?;
        }
        self.array(flat)
    }

    fn flatten_into(
        &mut self,
        value: &Value<'a>,
        levels: f64,
        flat: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        if !matches!(value, Value::Array(_)) || levels < 1.0 {
            self.charge(2)?;
            flat.push(value.clone());
            return Ok(());
        }
        for inner in self.each(value)? {
            self.flatten_into(&inner, levels - 1.0, flat)?;
        }
        Ok(())
    }

    fn reverse(&mut self, input: &Value<'a>) -> Done<'a, Value<'a>> {
        match input {
            Value::Null => self.array(Vec::new()),
            _ => {
                let items = self.items(input)?;
                self.charge(2 * items.len() as u64)?;
                self.array(items.iter().rev().collect())
            }
        }
    }

    fn transpose(&mut self, input: &Value<'a>) -> Done<'a, Value<'a>> {
        let mut rows = Vec::new();
        for row in self.items(input)?.iter() {
            self.charge(2)?;
            rows.push(self.items(&row)?);
        }
        let mut columns = Vec::new();
        for at in 0..rows.iter().map(Array::len).max().unwrap_or(0) {
            self.charge(2 * rows.len() as u64)?;
            let column = rows.iter().map(|row| row.get(at).unwrap_or(Value::Null));
            columns.push(self.array(column.collect())?);
        }
        self.array(columns)
    }

    /// `sort`, `unique`, `min`, `max`
    fn sorted(&mut self, function: F, input: &Value<'a>) -> Done<'a, Value<'a>> {
        let items = self.items(input)?;
        self.charge(4 * items.len() as u64)?;
        let mut keyed: Vec<_> = items.iter().map(|item| (item, Value::Null)).collect();
        self.sort(&mut keyed)?;
        let mut sorted: Vec<Value<'a>> = keyed.into_iter().map(|(item, _)| item).collect();
        match function {
            F::Min => Ok(sorted.into_iter().next().unwrap_or(Value::Null)),
            F::Max => Ok(sorted.pop().unwrap_or(Value::Null)),
            F::Unique => {
                sorted.dedup_by(|a, b| compare(a, b, &mut 0).is_eq());
                self.array(sorted)
            }
            _ => self.array(sorted),
        }
    }
}
