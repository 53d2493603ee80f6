//! Regular expressions, by the crate `regex`: no pattern takes exponential time.
//!
//! Time still grows with the pattern's states and the text, so each search costs steps for both. Patterns
//! have the syntax of that crate: there is no looking around and no reference back. The flags are `g`
//! (all matches), `i` (letters of both cases), `n` (no empty matches) and `x` (white space and comments in
//! the pattern).
//!
//! A search must be able to pay for the rest of the text before it begins. What it did not read is given
//! back.

use std::ops::Range;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use super::{Done, Evaluator, shown};
use crate::functions::Function as F;
use crate::tree::Term;
use crate::value::{Fields, Text, Value};

/// Bytes of a pattern's text: the reader of patterns takes kilobytes for each, before the bound below.
const MAX_SOURCE: usize = 1024;
/// Flags, of which there are four.
const MAX_FLAGS: usize = 16;
/// Bytes of a compiled pattern, and what compiling one of up to as many costs beside its text.
const SIZES: [(usize, u64); 2] = [(8 * 1024, 2_000), (128 * 1024, 32_000)];
/// What reading a byte of a pattern's text costs.
const SOURCE_BYTE: u64 = 100;
/// What reading a class such as `\w` or `\pL` costs: its hundreds of ranges are joined with others, and folded
/// with the flag `i`.
const CLASS: u64 = 3_000;
/// Bytes of a pattern that is compiled without Unicode, where a class is about one state, and what a search
/// costs for 16 bytes of text with as many. The engine may have to go through all states at each byte.
const STATES: [(usize, u64); 3] = [(1024, 1), (8 * 1024, 8), (32 * 1024, 64)];
/// What a search costs with yet more states.
const MANY_STATES: u64 = 512;
/// How many times as much it costs to know the groups of what was found.
const GROUPS: u64 = 4;
/// Patterns that are kept compiled during an evaluation.
const MAX_KEPT: usize = 4;

#[derive(Default)]
pub(super) struct Cache(Vec<Rc<Pattern>>);

struct Pattern {
    source: String,
    flags: String,
    regex: Regex,
    /// Steps for 16 bytes.
    cost: u64,
    /// How many bytes behind a match the engine may read to know that it is the one, if that has a bound.
    most_ahead: Option<usize>,
    is_global: bool,
    skips_empty: bool,
}

/// A match: where it lies, and then each group, in bytes. Groups are left out if nobody wants them.
struct Found {
    groups: Vec<Option<Range<usize>>>,
    start: usize,
    end: usize,
}

/// The first match at or after a place.
fn found_at(regex: &Regex, text: &str, from: usize, has_groups: bool) -> Option<Found> {
    let groups: Vec<Option<Range<usize>>> = match has_groups {
        true => {
            let captures = regex.captures_at(text, from)?;
            let groups = captures.iter();
            groups.map(|group| Some(group?.range())).collect()
        }
        false => vec![Some(regex.find_at(text, from)?.range())],
    };
    let whole = groups.first()?.clone()?;
    Some(Found {
        groups,
        start: whole.start,
        end: whole.end,
    })
}

impl<'a> Evaluator<'a> {
    fn pattern(&mut self, source: &Value<'a>, flags: &Value<'a>) -> Done<'a, Rc<Pattern>> {
        let letters = match flags {
            Value::Null => "",
            Value::Text(flags) => flags.as_str(),
            _ => return self.raise(format!("{} are no flags", shown(flags))),
        };
        if letters.len() > MAX_FLAGS {
            return self.raise(format!("{} are no flags", shown(flags)));
        }
        let Value::Text(source) = source else {
            return self.raise(format!("{} is no regular expression", shown(source)));
        };
        let source = source.as_str();
        if source.len() > MAX_SOURCE {
            return self.raise(format!(
                "The regular expression has {} bytes, and may have at most {MAX_SOURCE}",
                source.len()
            ));
        }
        self.charge(1 + source.len() as u64 / 16)?;
        let mut kept = self.regexes.0.iter();
        if let Some(pattern) = kept.find(|kept| kept.source == source && kept.flags == letters) {
            return Ok(pattern.clone());
        }
        if let Some(flag) = letters.chars().find(|flag| !"ginx".contains(*flag)) {
            return self.raise(format!("{flag:?} is no flag of a regular expression"));
        }
        let regex = self.compiled(source, letters)?;
        let pattern = Rc::new(Pattern {
            source: source.to_owned(),
            flags: letters.to_owned(),
            regex,
            cost: cost(source, letters),
            most_ahead: most_ahead(source),
            is_global: letters.contains('g'),
            skips_empty: letters.contains('n'),
        });
        if self.regexes.0.len() == MAX_KEPT {
            self.regexes.0.remove(0);
        }
        self.regexes.0.push(pattern.clone());
        Ok(pattern)
    }

    fn compiled(&mut self, source: &str, flags: &str) -> Done<'a, Regex> {
        let pattern = SOURCE_BYTE * source.len() as u64 + CLASS * classes(source);
        for (size, steps) in SIZES {
            self.charge(steps + pattern)?;
            let built = RegexBuilder::new(source)
                .size_limit(size)
                .dfa_size_limit(256 * 1024)
                .nest_limit(50)
                .case_insensitive(flags.contains('i'))
                .ignore_whitespace(flags.contains('x'))
                .build();
            match built {
                Ok(regex) => return Ok(regex),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    // The last line has the reason; those before it draw the place.
                    let told = error.to_string();
                    let reason = told.rsplit("error: ").next().unwrap_or_default();
                    let source = shown(&Value::text(source));
                    return self.raise(format!("{source} is no regular expression: {reason}"));
                }
            }
        }
        let most = SIZES.map(|(size, _)| size / 1024)[SIZES.len() - 1];
        self.raise(format!(
            "The regular expression is too large: compiled, it takes more than {most} KiB. \
             Write `[0-9A-Za-z_]` for `\\w` and `[0-9]` for `\\d`, and repeat less"
        ))
    }

    /// The matches of a pattern, with the groups if they are wanted.
    fn find(
        &mut self,
        pattern: &Pattern,
        text: &str,
        all: bool,
        wants_groups: bool,
    ) -> Done<'a, Vec<Found>> {
        let mut found = Vec::new();
        let has_groups = wants_groups && pattern.regex.captures_len() > 1;
        let cost = match has_groups {
            true => GROUPS * pattern.cost,
            false => pattern.cost,
        };
        let mut from = 0;
        loop {
            let before = self.steps_left;
            self.charge(4 + reading(text.len() - from, cost))?;
            let Some(next) = found_at(&pattern.regex, text, from, has_groups) else {
                return Ok(found);
            };
            self.steps_left = before;
            let rest = text.len() - next.end;
            let ahead = pattern.most_ahead.unwrap_or(rest).min(rest);
            self.charge(4 + reading(next.end - from, cost) + reading(ahead, pattern.cost))?;
            let (is_empty, end) = (next.start == next.end, next.end);
            if !is_empty || !pattern.skips_empty {
                self.charge(8 * next.groups.len() as u64)?;
                found.push(next);
                if !all {
                    return Ok(found);
                }
            }
            // As in jq, an empty match may follow at the end of another one.
            from = match (is_empty, text[end..].chars().next()) {
                (false, _) => end,
                (true, Some(letter)) => end + letter.len_utf8(),
                (true, None) => return Ok(found),
            };
        }
    }

    /// A pattern, or an array of one and its flags.
    pub(super) fn pattern_and_flags(
        &mut self,
        given: &Value<'a>,
    ) -> Done<'a, (Value<'a>, Value<'a>)> {
        let Value::Array(items) = given else {
            return Ok((given.clone(), Value::Null));
        };
        match items.get(0) {
            Some(source) => Ok((source, items.get(1).unwrap_or(Value::Null))),
            None => self.raise(format!("{} is no regular expression", shown(given))),
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
        if pattern.skips_empty {
            let found = self.find(&pattern, text, false, false)?;
            return Ok(Value::Bool(!found.is_empty()));
        }
        let before = self.steps_left;
        self.charge(4 + reading(text.len(), pattern.cost))?;
        let end = pattern.regex.shortest_match(text);
        if let Some(end) = end {
            self.steps_left = before;
            self.charge(4 + reading(end, pattern.cost))?;
        }
        Ok(Value::Bool(end.is_some()))
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
        let found = self.find(&pattern, text, is_scan || pattern.is_global, true)?;
        // Letters are counted once, from match to match.
        let (mut counted, mut letters) = (0, 0);
        for found in &found {
            out.push(match function {
                F::Match | F::MatchWith => {
                    letters += self.letters_of(&text[counted..found.start])?;
                    counted = found.start;
                    self.described(&pattern, text, found, letters)?
                }
                F::Capture | F::CaptureWith => self.named(&pattern, text, found)?,
                _ if found.groups.len() == 1 => {
                    self.text(text[found.start..found.end].to_owned())?
                }
                _ => {
                    let groups = found.groups.iter().skip(1);
                    let groups = groups.map(|group| match group {
                        Some(group) => Value::text(&text[group.clone()]),
                        None => Value::Null,
                    });
                    self.charge_bytes(found.end - found.start)?;
                    self.array(groups.collect())?
                }
            });
        }
        Ok(())
    }

    fn letters_of(&mut self, text: &str) -> Done<'a, usize> {
        self.charge_bytes(text.len())?;
        Ok(text.chars().count())
    }

    /// The groups that have a name.
    fn named(&mut self, pattern: &Pattern, text: &str, found: &Found) -> Done<'a, Value<'a>> {
        let mut fields = Fields::new();
        for (name, group) in pattern.regex.capture_names().zip(&found.groups) {
            let Some(name) = name else { continue };
            let value = match group {
                Some(group) => self.text(text[group.clone()].to_owned())?,
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
        found: &Found,
        letters_before: usize,
    ) -> Done<'a, Value<'a>> {
        let mut groups = Vec::new();
        let names = pattern.regex.capture_names();
        for (at, (group, name)) in found.groups.iter().zip(names).enumerate() {
            let (start, part) = match group {
                Some(group) => {
                    let before = self.letters_of(&text[found.start..group.start])?;
                    let start = Value::from(letters_before + before);
                    (start, Some(&text[group.clone()]))
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
        for found in self.find(&pattern, text, true, false)? {
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
        let terms = [Some(source), flags.first()].into_iter().flatten();
        let mut sides = self.sides(terms, input)?;
        while self.next(&mut sides)? {
            let flags = match sides.len() {
                1 => &Value::Null,
                _ => sides.at(1),
            };
            let pattern = self.pattern(sides.at(0), flags)?;
            let is_all = all_matches || pattern.is_global;
            self.substituted(&pattern, is_all, text, replacement, out)?;
        }
        sides.ended
    }

    /// The texts with the matches replaced.
    fn substituted(
        &mut self,
        pattern: &Pattern,
        is_all: bool,
        text: &str,
        replacement: &'a Term,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let mut made: Vec<String> = Vec::new();
        let mut from = 0;
        let has_names = pattern.regex.capture_names().flatten().next().is_some();
        for found in self.find(pattern, text, is_all, has_names)? {
            let named = self.named(pattern, text, &found)?;
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
        Ok(())
    }
}

/// Steps for reading so many bytes of text.
fn reading(bytes: usize, cost: u64) -> u64 {
    bytes as u64 * cost / 16
}

/// What a search costs for 16 bytes of text. A pattern that is none without Unicode, such as `[é]`, counts by
/// its size with it.
fn cost(source: &str, flags: &str) -> u64 {
    let source = without_properties(source);
    let is_within = |size: usize| {
        let mut plain = regex::bytes::RegexBuilder::new(&source);
        let plain = plain
            .size_limit(size)
            .case_insensitive(flags.contains('i'))
            .ignore_whitespace(flags.contains('x'));
        match plain.unicode(false).build() {
            Err(regex::Error::Syntax(_)) => plain.unicode(true).build().is_ok(),
            built => built.is_ok(),
        }
    };
    let mut states = STATES.iter();
    let found = states.find(|(size, _)| is_within(*size));
    found.map_or(MANY_STATES, |(_, cost)| *cost)
}

/// The pattern with `\w` in place of each property of Unicode, such as `\p{L}`: a class like another.
fn without_properties(source: &str) -> String {
    let mut plain = String::new();
    let mut letters = source.chars();
    while let Some(letter) = letters.next() {
        plain.push(letter);
        if letter != '\\' {
            continue;
        }
        match letters.next() {
            Some('p' | 'P') => {
                plain.push('w');
                if letters.next() == Some('{') {
                    letters.by_ref().find(|letter| *letter == '}');
                }
            }
            escaped => plain.extend(escaped),
        }
    }
    plain
}

/// How many classes a pattern names. A backslash that stands for itself may add one.
fn classes(source: &str) -> u64 {
    let named = source.as_bytes().windows(2);
    named
        .filter(|two| two[0] == b'\\' && b"pPwWdDsS".contains(&two[1]))
        .count() as u64
}

/// How many bytes the engine may read behind a match. Without an endless repetition, no match is longer than
/// the pattern's letters times its counts. An endless one at the pattern's end makes the match longer with
/// each round, so that the engine reads one round more at most.
fn most_ahead(source: &str) -> Option<usize> {
    let bounded = source.trim_end_matches([')', '?']);
    let bounded = match bounded.strip_suffix(['*', '+']) {
        Some(before) => before,
        None => source,
    };
    if bounded.contains(['*', '+']) {
        return None;
    }
    let mut most = 4 * (source.len() + 1);
    for braced in bounded.split('{').skip(1) {
        let (inside, _) = braced.split_once('}')?;
        // A comment may stand in a count. A class or a letter has a name, and a count has none.
        if inside.contains('#') {
            return None;
        }
        if inside.contains(|letter: char| letter.is_ascii_alphabetic()) {
            continue;
        }
        let (_, last) = inside.rsplit_once(',').unwrap_or(("", inside));
        let digits: String = last.chars().filter(char::is_ascii_digit).collect();
        most = most.saturating_mul(digits.parse::<usize>().ok()?.max(1));
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_behind_a_match_has_a_bound_where_only_the_end_repeats() {
        for (source, most) in [
            (" ", Some(8)),
            ("\\s+", Some(16)),
            ("([0-9]+)", Some(36)),
            ("(?:ab?)*?", Some(40)),
            ("a{3}b{2,5}", Some(44 * 15)),
            ("\\p{L}", Some(24)),
            ("x*y|x", None),
            ("(a+)*", None),
            ("a+$", None),
            ("a{2,}", None),
            ("a{2\t,\t3\t}", Some(4 * 10 * 3)),
            ("a{2,#\n3}", None),
            ("[{]", None),
            ("(a|b+)c", None),
            ("[^+]+x", None),
        ] {
            assert_eq!(most_ahead(source), most, "{source}");
        }
    }

    #[test]
    fn a_class_counts_as_one_state_and_a_repetition_as_many() {
        for (source, steps) in [
            ("\\w+@\\w+", 1),
            ("(?:a?){60}", 8),
            ("(?:a?){300}", 64),
            ("(?:a?){900}", MANY_STATES),
            ("é", 1),
            ("^\\p{L}+ [\\pL\\PN]\\\\p$", 1),
        ] {
            assert_eq!(cost(source, ""), steps, "{source}");
        }
    }
}
