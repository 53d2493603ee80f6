//! Regular expressions, by the crate `regex`: no pattern takes exponential time.
//!
//! Time still grows with the pattern's states and the text, so each search costs steps for both. Patterns
//! have the syntax of that crate: there is no looking around and no reference back. The flags are `g`
//! (all matches), `i` (letters of both cases), `n` (no empty matches) and `x` (white space and comments in
//! the pattern).

use std::rc::Rc;

use regex::{Captures, Regex, RegexBuilder};

use super::{Done, Evaluator, shown};
use crate::functions::Function as F;
use crate::tree::Term;
use crate::value::{Fields, Text, Value};

/// Bytes of a compiled pattern, and what a search costs by the byte of text with as many.
const TIERS: [(usize, u64); 2] = [(8 * 1024, 1), (128 * 1024, 16)];
/// What compiling a pattern costs, by the tier.
const COMPILING: u64 = 2_000;
/// Patterns that are kept compiled during an evaluation.
const MAX_KEPT: usize = 4;

#[derive(Default)]
pub(super) struct Cache(Vec<Rc<Pattern>>);

struct Pattern {
    source: String,
    flags: String,
    regex: Regex,
    cost_by_byte: u64,
    is_global: bool,
    skips_empty: bool,
}

/// A match: where each group lies, in bytes.
struct Found<'t> {
    captures: Captures<'t>,
    start: usize,
    end: usize,
}

impl<'a> Evaluator<'a> {
    fn pattern(&mut self, source: &Value<'a>, flags: &Value<'a>) -> Done<'a, Rc<Pattern>> {
        let flags = match flags {
            Value::Null => "",
            Value::Text(flags) => flags.as_str(),
            _ => return self.raise(format!("{} are no flags", shown(flags))),
        };
        let Value::Text(source) = source else {
            return self.raise(format!("{} is no regular expression", shown(source)));
        };
        let source = source.as_str();
        let mut kept = self.regexes.0.iter();
        if let Some(pattern) = kept.find(|kept| kept.source == source && kept.flags == flags) {
            return Ok(pattern.clone());
        }
        if let Some(flag) = flags.chars().find(|flag| !"ginx".contains(*flag)) {
            return self.raise(format!("{flag:?} is no flag of a regular expression"));
        }
        for (place, (size, cost_by_byte)) in TIERS.iter().enumerate() {
            self.charge(COMPILING * cost_by_byte + source.len() as u64)?;
            let built = RegexBuilder::new(source)
                .size_limit(*size)
                .dfa_size_limit(256 * 1024)
                .nest_limit(50)
                .case_insensitive(flags.contains('i'))
                .ignore_whitespace(flags.contains('x'))
                .build();
            let regex = match built {
                Ok(regex) => regex,
                Err(regex::Error::CompiledTooBig(_)) if place + 1 < TIERS.len() => continue,
                Err(regex::Error::CompiledTooBig(_)) => {
                    return self.raise("The regular expression is too large".to_owned());
                }
                Err(_) => {
                    let source = shown(&Value::text(source));
                    return self.raise(format!("{source} is no regular expression"));
                }
            };
            let pattern = Rc::new(Pattern {
                source: source.to_owned(),
                flags: flags.to_owned(),
                regex,
                cost_by_byte: *cost_by_byte,
                is_global: flags.contains('g'),
                skips_empty: flags.contains('n'),
            });
            if self.regexes.0.len() == MAX_KEPT {
                self.regexes.0.remove(0);
            }
            self.regexes.0.push(pattern.clone());
            return Ok(pattern);
        }
        self.raise("The regular expression is too large".to_owned())
    }

    /// The matches of a pattern. Each search may read to the text's end, and costs as if it did.
    fn find<'t>(
        &mut self,
        pattern: &Pattern,
        text: &'t str,
        all: bool,
    ) -> Done<'a, Vec<Found<'t>>> {
        let mut found = Vec::new();
        let mut searches = pattern.regex.captures_iter(text);
        let mut from = 0;
        loop {
            // A search that finds something soon has not read much further, but for a few patterns.
            let rest = text.len() - from;
            self.charge(4 + rest as u64 * pattern.cost_by_byte / 8)?;
            let Some(captures) = searches.next() else {
                return Ok(found);
            };
            let Some(whole) = captures.get(0) else {
                return Ok(found);
            };
            let (start, end) = (whole.start(), whole.end());
            from = end;
            if start == end && pattern.skips_empty {
                continue;
            }
            self.charge(8 * captures.len() as u64)?;
            found.push(Found {
                captures,
                start,
                end,
            });
            if !all {
                return Ok(found);
            }
        }
    }

    fn searched<'v>(&mut self, input: &'v Value<'a>) -> Done<'a, &'v str> {
        match input {
            Value::Text(text) => Ok(text.as_str()),
            _ => self.raise(format!(
                "{} cannot be matched, as it is not a string",
                shown(input)
            )),
        }
    }

    pub(super) fn test(
        &mut self,
        input: &Value<'a>,
        source: &Value<'a>,
        flags: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let text = self.searched(input)?;
        let pattern = self.pattern(source, flags)?;
        let found = self.find(&pattern, text, false)?;
        Ok(Value::Bool(!found.is_empty()))
    }

    /// `match`, `capture`, `scan`
    pub(super) fn matches(
        &mut self,
        function: F,
        input: &Value<'a>,
        source: &Value<'a>,
        flags: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let text = self.searched(input)?;
        let pattern = self.pattern(source, flags)?;
        let is_scan = matches!(function, F::Scan | F::ScanWith);
        let found = self.find(&pattern, text, is_scan || pattern.is_global)?;
        for found in &found {
            out.push(match function {
                F::Match | F::MatchWith => self.described(&pattern, text, found)?,
                F::Capture | F::CaptureWith => self.named(&pattern, found)?,
                _ if found.captures.len() == 1 => {
                    self.text(text[found.start..found.end].to_owned())?
                }
                _ => {
                    let groups = found.captures.iter().skip(1);
                    let groups = groups.map(|group| match group {
                        Some(group) => Value::text(group.as_str()),
                        None => Value::Null,
                    });
                    self.charge_bytes(found.end - found.start)?;
                    self.array(groups.collect())?
                }
            });
        }
        Ok(())
    }

    /// The groups that have a name.
    fn named(&mut self, pattern: &Pattern, found: &Found<'_>) -> Done<'a, Value<'a>> {
        let mut fields = Fields::new();
        for name in pattern.regex.capture_names().flatten() {
            let value = match found.captures.name(name) {
                Some(group) => self.text(group.as_str().to_owned())?,
                None => Value::Null,
            };
            fields.insert(Text::Made(name.into()), value);
        }
        self.fields(fields)
    }

    /// A match as `match` puts it out; places count letters.
    fn described(
        &mut self,
        pattern: &Pattern,
        text: &str,
        found: &Found<'_>,
    ) -> Done<'a, Value<'a>> {
        let mut groups = Vec::new();
        let names = pattern.regex.capture_names();
        for (at, (group, name)) in found.captures.iter().zip(names).enumerate() {
            let (start, part) = match group {
                Some(group) => {
                    self.charge_bytes(group.start())?;
                    let letters = text[..group.start()].chars().count();
                    (Value::from(letters), Some(group.as_str()))
                }
                None => (Value::Number((-1).into()), None),
            };
            let mut fields = Fields::new();
            fields.insert(Text::Borrowed("offset"), start);
            let length = part.map_or(0, |part| part.chars().count());
            fields.insert(Text::Borrowed("length"), Value::from(length));
            let part = match part {
                Some(part) => self.text(part.to_owned())?,
                None => Value::Null,
            };
            fields.insert(Text::Borrowed("string"), part);
            if at > 0 {
                fields.insert(
                    Text::Borrowed("name"),
                    name.map_or(Value::Null, Value::text),
                );
            }
            groups.push(fields);
        }
        let mut groups = groups.into_iter();
        let mut whole = groups.next().unwrap_or_default();
        let mut captures = Vec::new();
        for group in groups {
            captures.push(self.fields(group)?);
        }
        whole.insert(Text::Borrowed("captures"), self.array(captures)?);
        self.fields(whole)
    }

    pub(super) fn split_by_pattern(
        &mut self,
        input: &Value<'a>,
        source: &Value<'a>,
        flags: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let text = self.searched(input)?;
        let pattern = self.pattern(source, flags)?;
        let mut parts = Vec::new();
        let mut from = 0;
        for found in self.find(&pattern, text, true)? {
            parts.push(self.text(text[from..found.start].to_owned())?);
            from = found.end;
        }
        parts.push(self.text(text[from..].to_owned())?);
        self.array(parts)
    }

    /// `sub` and `gsub`. The replacement sees the named groups. Its first outputs for all matches make the
    /// first text, its second ones the second text, and so on.
    pub(super) fn substitute(
        &mut self,
        function: F,
        arguments: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let [source, replacement, flags @ ..] = arguments else {
            return Ok(());
        };
        let text = self.searched(input)?;
        let all_matches = matches!(function, F::Gsub | F::GsubWith);
        for flags in self.bounds(flags.first(), input)? {
            for source in self.all(source, input)? {
                let pattern = self.pattern(&source, &flags)?;
                let mut made: Vec<String> = Vec::new();
                let mut from = 0;
                for found in self.find(&pattern, text, all_matches || pattern.is_global)? {
                    let named = self.named(&pattern, &found)?;
                    for (at, piece) in self.all(replacement, &named)?.iter().enumerate() {
                        let Value::Text(piece) = piece else {
                            return self.raise(format!("{} replaces no text", shown(piece)));
                        };
                        self.charge(2)?;
                        if at == made.len() {
                            made.push(String::new());
                        }
                        self.append(&mut made[at], &text[from..found.start])?;
                        self.append(&mut made[at], piece.as_str())?;
                    }
                    from = found.end;
                }
                if made.is_empty() {
                    made.push(String::new());
                    from = 0;
                }
                for mut text_made in made {
                    self.append(&mut text_made, &text[from..])?;
                    out.push(Value::text(text_made));
                }
            }
        }
        Ok(())
    }
}
