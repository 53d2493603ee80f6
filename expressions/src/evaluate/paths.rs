//! Paths: lists of keys and places that lead to a part of a value.
//!
//! `path`, `del` and `pick` take an expression that only reads: it is followed here, and everything else in
//! it is an error.

use super::access::Keys;
use super::{Done, Evaluator, Stop, shown};
use crate::functions::Function as F;
use crate::number;
use crate::tree::{Part, Step, Term};
use crate::value::{Fields, Text, Value};

/// How many keys a path may have.
const MAX_PATH: usize = 10_000;

/// A part of a value, and the path that leads to it.
#[derive(Clone)]
struct PathPair<'a> {
    path: Vec<Value<'a>>,
    value: Value<'a>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn by_paths(
        &mut self,
        function: F,
        arguments: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let start = PathPair {
            path: Vec::new(),
            value: input.clone(),
        };
        let mut pairs = Vec::new();
        let followed = match arguments.first() {
            Some(term) => self.follow(term, &start, &mut pairs),
            None => self.follow_all(&start, &mut pairs).map(|()| {
                pairs.remove(0);
            }),
        };
        let ended = match (function, followed) {
            // What was found before an error is put out before it. The others need all paths.
            (F::PathOf, raised @ Err(Stop::Raised(_))) => raised,
            (_, followed) => {
                followed?;
                Ok(())
            }
        };
        match function {
            F::Delete => {
                let mut paths = Vec::new();
                for pair in pairs {
                    paths.push((self.array(pair.path)?, Value::Null));
                }
                out.push(self.delete(input, paths)?);
            }
            F::Pick => {
                let mut picked = Value::Null;
                for pair in pairs {
                    picked = self.put(&picked, &pair.path, &pair.value)?;
                }
                out.push(picked);
            }
            _ => {
                for pair in pairs {
                    out.push(self.array(pair.path)?);
                }
            }
        }
        ended
    }

    fn follow(
        &mut self,
        term: &'a Term,
        at: &PathPair<'a>,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        self.charge(2 + 2 * at.path.len() as u64)?;
        match term {
            Term::Identity => out.push(at.clone()),
            Term::Access(base, steps) => return self.follow_steps(base, steps, at, out),
            Term::Pipe(stages) => return self.follow_stages(stages, at, out),
            Term::Comma(parts) => {
                for part in parts {
                    self.follow(part, at, out)?;
                }
            }
            Term::If {
                branches,
                otherwise,
            } => return self.follow_branch(branches, otherwise.as_deref(), at, out),
            Term::Alternative(parts) => return self.follow_alternative(parts, at, out),
            Term::Try { body, catch: None } => {
                if let Err(Stop::Spent(spent)) = self.follow(body, at, out) {
                    return Err(Stop::Spent(spent));
                }
            }
            Term::Call(function, arguments) => {
                return self.follow_call(*function, arguments, at, out);
            }
            _ => return self.no_path(),
        }
        Ok(())
    }

    /// What a stage put out before it failed goes through the later ones, as in [`Self::pipe`].
    fn follow_stages(
        &mut self,
        stages: &'a [Term],
        at: &PathPair<'a>,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        let mut ended = Ok(());
        let mut current = vec![at.clone()];
        for stage in stages {
            let mut next = Vec::new();
            for pair in &current {
                match self.follow(stage, pair, &mut next) {
                    Ok(()) => {}
                    Err(Stop::Spent(spent)) => return Err(Stop::Spent(spent)),
                    raised => {
                        ended = raised;
                        break;
                    }
                }
            }
            current = next;
        }
        out.append(&mut current);
        ended
    }

    fn follow_branch(
        &mut self,
        branches: &'a [(Term, Term)],
        otherwise: Option<&'a Term>,
        at: &PathPair<'a>,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        self.choose(
            branches,
            otherwise,
            &at.value,
            &mut |this, chosen| match chosen {
                Some(term) => this.follow(term, at, out),
                None => {
                    this.charge(2 + 2 * at.path.len() as u64)?;
                    out.push(at.clone());
                    Ok(())
                }
            },
        )
    }

    fn no_path(&mut self) -> Done<'a> {
        self.raise(
            "Only what reads a part, such as `.a[0]` or `.[] | select(…)`, is a path".to_owned(),
        )
    }

    fn follow_alternative(
        &mut self,
        parts: &'a [Term],
        at: &PathPair<'a>,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        let Some((last, before)) = parts.split_last() else {
            return Ok(());
        };
        for part in before {
            let mut pairs = Vec::new();
            let ended = self.follow(part, at, &mut pairs);
            pairs.retain(|pair| pair.value.is_true());
            let is_found = !pairs.is_empty();
            out.append(&mut pairs);
            ended?;
            if is_found {
                return Ok(());
            }
        }
        self.follow(last, at, out)
    }

    fn follow_call(
        &mut self,
        function: F,
        arguments: &'a [Term],
        at: &PathPair<'a>,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        match (function, arguments) {
            (F::Empty, _) => {}
            (F::Descend, _) => return self.follow_all(at, out),
            (F::Select, [condition]) => {
                let mut conditions = Vec::new();
                let ended = self.run(condition, &at.value, &mut conditions);
                for held in conditions {
                    if held.is_true() {
                        self.charge(2 + 2 * at.path.len() as u64)?;
                        out.push(at.clone());
                    }
                }
                return ended;
            }
            (F::First, _) => return self.follow_key(at, &Value::from(0), false, out),
            (F::Last, _) => return self.follow_key(at, &Value::Number((-1).into()), false, out),
            (F::FirstOf, [term]) => {
                let mut pairs = Vec::new();
                match self.follow(term, at, &mut pairs) {
                    Err(Stop::Raised(_)) if !pairs.is_empty() => {}
                    followed => followed?,
                }
                out.extend(pairs.into_iter().next());
            }
            (F::GetPath, [path]) => {
                let (paths, ended) = self.outputs(Some(path), &at.value)?;
                for path in paths {
                    let mut pair = at.clone();
                    for key in self.keys_of(&path)? {
                        pair.value = self.index(&pair.value, &key)?;
                        pair.path.push(key);
                    }
                    out.push(pair);
                }
                return ended;
            }
            _ => return self.no_path(),
        }
        Ok(())
    }

    fn follow_steps(
        &mut self,
        base: &'a Term,
        steps: &'a [Step],
        at: &PathPair<'a>,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        let is_slice = |step: &Step| matches!(step.part, Part::Slice(..));
        if steps.iter().any(is_slice) {
            return self
                .raise("A slice is no path: instead of `del(.[1:])` write `.[:1]`".to_owned());
        }
        let sought = self.sought(steps, &at.value)?;
        let mut current = Vec::new();
        let mut ended = match sought.is_any {
            true => self.follow(base, at, &mut current),
            false => Ok(()),
        };
        for (step, (mut keys, keys_ended)) in steps.iter().zip(sought.keys) {
            if let Err(Stop::Spent(_)) = ended {
                return ended;
            }
            if ended.is_err() {
                keys.truncate(1);
            }
            let mut next = Vec::new();
            let parted = self.follow_parts(&keys, step.is_optional, &current, &mut next);
            ended = parted.and(ended).and(keys_ended);
            current = next;
        }
        out.append(&mut current);
        ended
    }

    /// The parts that one step names.
    fn follow_parts(
        &mut self,
        keys: &Keys<'a>,
        is_optional: bool,
        pairs: &[PathPair<'a>],
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        let Keys::Parts(keys) = keys else {
            for pair in pairs {
                self.follow_each(pair, is_optional, out)?;
            }
            return Ok(());
        };
        for key in keys {
            for pair in pairs {
                self.follow_key(pair, key, is_optional, out)?;
            }
        }
        Ok(())
    }

    fn follow_key(
        &mut self,
        at: &PathPair<'a>,
        key: &Value<'a>,
        is_optional: bool,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        self.charge(4 + 2 * at.path.len() as u64)?;
        match self.index(&at.value, key) {
            Ok(value) => {
                let mut path = at.path.clone();
                path.push(key.clone());
                out.push(PathPair { path, value });
                Ok(())
            }
            Err(Stop::Raised(_)) if is_optional => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    fn follow_each(
        &mut self,
        at: &PathPair<'a>,
        is_optional: bool,
        out: &mut Vec<PathPair<'a>>,
    ) -> Done<'a> {
        let keys: Vec<Value<'a>> = match &at.value {
            Value::Array(items) => (0..items.len()).map(Value::from).collect(),
            Value::Object(fields) => fields.iter().map(|(key, _)| Value::Text(key)).collect(),
            _ if is_optional => Vec::new(),
            other => return self.raise(format!("Cannot iterate over {}", shown(other))),
        };
        self.charge(2 * keys.len() as u64)?;
        for key in &keys {
            self.follow_key(at, key, false, out)?;
        }
        Ok(())
    }

    fn follow_all(&mut self, at: &PathPair<'a>, out: &mut Vec<PathPair<'a>>) -> Done<'a> {
        self.charge(2 + 2 * at.path.len() as u64)?;
        out.push(at.clone());
        let mut inner = Vec::new();
        self.follow_each(at, true, &mut inner)?;
        for pair in &inner {
            self.follow_all(pair, out)?;
        }
        Ok(())
    }

    pub(super) fn get_path(&mut self, input: &Value<'a>, path: &Value<'a>) -> Done<'a, Value<'a>> {
        let mut value = input.clone();
        for key in self.keys_of(path)? {
            value = self.index(&value, &key)?;
        }
        Ok(value)
    }

    /// The keys of a path. Its length has the bound of jq.
    fn keys_of(&mut self, path: &Value<'a>) -> Done<'a, Vec<Value<'a>>> {
        match path {
            Value::Array(keys) if keys.len() > MAX_PATH => self.raise("Path too deep".to_owned()),
            Value::Array(_) => self.each(path),
            _ => self.raise(format!("{} is no path", shown(path))),
        }
    }

    pub(super) fn set_path(
        &mut self,
        input: &Value<'a>,
        path: &Value<'a>,
        value: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let path = self.keys_of(path)?;
        self.put(input, &path, value)
    }

    /// A copy of a value with another part at a path. The result nests as deep as the path is long.
    fn put(
        &mut self,
        input: &Value<'a>,
        path: &[Value<'a>],
        value: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        if path.len() > crate::budget::MAX_DEPTH {
            return Err(Stop::Spent(super::Spent::Depth));
        }
        let Some((key, rest)) = path.split_first() else {
            return Ok(value.clone());
        };
        match (input, key) {
            (Value::Null | Value::Object(_), Value::Text(key)) => {
                let mut fields = match input {
                    Value::Object(object) => self.copied(object)?,
                    _ => Fields::new(),
                };
                let before = fields.get(key.as_str()).cloned().unwrap_or(Value::Null);
                let part = self.put(&before, rest, value)?;
                self.insert(&mut fields, key.clone(), part)?;
                self.fields(fields)
            }
            (Value::Null | Value::Array(_), Value::Number(at)) => {
                let mut items = match input {
                    Value::Null => Vec::new(),
                    array => self.each(array)?,
                };
                let at = number::float(at).floor();
                let at = if at < 0.0 {
                    at + items.len() as f64
                } else {
                    at
                };
                if at < 0.0 {
                    return self.raise("The place lies before the start of the array".to_owned());
                }
                if at >= crate::budget::MAX_WEIGHT as f64 / crate::value::SCALAR as f64 {
                    return Err(Stop::Spent(super::Spent::Weight));
                }
                let at = number::bound(at, usize::MAX);
                if at >= items.len() {
                    self.charge(2 * at as u64)?;
                    items.resize(at + 1, Value::Null);
                }
                let before = items[at].clone();
                items[at] = self.put(&before, rest, value)?;
                self.array(items)
            }
            _ => self.raise(format!("Cannot set {} in {}", shown(key), shown(input))),
        }
    }

    pub(super) fn delete_paths(
        &mut self,
        input: &Value<'a>,
        paths: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let mut listed = Vec::new();
        for path in self.each(paths)? {
            self.keys_of(&path)?;
            listed.push((path, Value::Null));
        }
        self.delete(input, listed)
    }

    fn delete(
        &mut self,
        input: &Value<'a>,
        mut paths: Vec<(Value<'a>, Value<'a>)>,
    ) -> Done<'a, Value<'a>> {
        for (path, _) in &mut paths {
            *path = self.absolute(input, path)?;
        }
        self.sort(&mut paths)?;
        let mut sorted = Vec::new();
        for (path, _) in &paths {
            sorted.push(self.each(path)?);
        }
        let sorted: Vec<&[Value<'a>]> = sorted.iter().map(Vec::as_slice).collect();
        Ok(self.without(input, &sorted)?.unwrap_or(Value::Null))
    }

    /// A path whose places count from the start, so that what names one part is equal.
    fn absolute(&mut self, input: &Value<'a>, path: &Value<'a>) -> Done<'a, Value<'a>> {
        let mut keys = self.each(path)?;
        if !keys.iter().any(|key| matches!(key, Value::Number(_))) {
            return Ok(path.clone());
        }
        let mut value = input.clone();
        for key in &mut keys {
            if let (Value::Array(items), Value::Number(at)) = (&value, &*key)
                && let Some(at) = number::place(at, items.len())
            {
                *key = Value::from(at);
            }
            match self.index(&value, key) {
                Ok(part) => value = part,
                // What cannot be deleted is told where it is deleted.
                Err(Stop::Raised(_)) => break,
                Err(stop) => return Err(stop),
            }
        }
        self.array(keys)
    }

    /// A value without what sorted paths lead to; each part is copied once. `None`: itself goes.
    fn without(
        &mut self,
        value: &Value<'a>,
        paths: &[&[Value<'a>]],
    ) -> Done<'a, Option<Value<'a>>> {
        self.charge(paths.len() as u64)?;
        match paths.first() {
            None => return Ok(Some(value.clone())),
            Some([]) => return Ok(None),
            Some(_) if matches!(value, Value::Null) => return Ok(Some(Value::Null)),
            Some(_) => {}
        }
        let mut inner = Vec::new();
        for group in paths.chunk_by(|a, b| crate::value::compare(&a[0], &b[0], &mut 0).is_eq()) {
            let key = &group[0][0];
            let rests: Vec<&[Value<'a>]> = group.iter().map(|path| &path[1..]).collect();
            let part = self.index(value, key)?;
            inner.push((key, self.without(&part, &rests)?));
        }
        match value {
            Value::Object(object) => {
                let mut fields = self.copied(object)?;
                for (key, part) in inner {
                    let Value::Text(key) = key else { continue };
                    match part {
                        None => drop(fields.swap_remove_full(key.as_str())),
                        Some(part) => set_existing(&mut fields, key, part),
                    }
                }
                // The order of what is left stays.
                let kept = object.iter().filter_map(|(key, _)| {
                    let part = fields.get(key.as_str()).cloned()?;
                    Some((key, part))
                });
                let kept = kept.collect();
                self.fields(kept).map(Some)
            }
            Value::Array(items) => {
                let mut kept: Vec<Option<Value<'a>>> = items.iter().map(Some).collect();
                self.charge(2 * kept.len() as u64)?;
                for (key, part) in inner {
                    let Value::Number(at) = key else {
                        return self.raise(format!("Cannot delete {} of an array", shown(key)));
                    };
                    if let Some(at) = number::place(at, items.len()) {
                        kept[at] = part;
                    }
                }
                self.array(kept.into_iter().flatten().collect()).map(Some)
            }
            _ => self.raise(format!("Cannot delete a part of {}", shown(value))),
        }
    }
}

/// Puts a part where the object has one already.
fn set_existing<'a>(fields: &mut Fields<'a>, key: &Text<'a>, part: Value<'a>) {
    if let Some(place) = fields.get_mut(key.as_str()) {
        *place = part;
    }
}
