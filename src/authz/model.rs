//! The authorization model: parses and checks `model.fga`, and converts it to the JSON that OpenFGA
//! accepts.
//!
//! Of OpenFGA's language (schema 1.1) it accepts direct relations, `or`, `X from Y` and comments,
//! and refuses everything else with its line. So no edit can bring in an intersection, exclusion,
//! wildcard or condition, and the published advisories about those do not apply. It also refuses a
//! reference to nothing, a duplicate, and a circle.
//!
//! Not here: the stores, and upgrading their models.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// The model's version: raised with every change of what [`json`] gives.
pub const VERSION: u32 = 2;

const SOURCE: &str = include_str!("model.fga");

/// The model as OpenFGA takes it.
pub fn json() -> Value {
    parse(SOURCE)
        .expect("the tests of this module read the same file")
        .json()
}

/// SHA-256 of the model's JSON text.
pub fn digest() -> [u8; 32] {
    Sha256::digest(json().to_string().as_bytes()).into()
}

/// A model and its version: this program's own, or another one's in tests.
#[derive(Debug, Clone)]
pub struct Model {
    /// Raised with every change.
    pub version: u32,
    /// As OpenFGA takes it.
    pub json: Value,
}

impl Model {
    /// This program's.
    pub fn own() -> Self {
        Self {
            version: VERSION,
            json: json(),
        }
    }

    pub(super) fn version(&self) -> i32 {
        i32::try_from(self.version).unwrap_or(i32::MAX)
    }

    pub(super) fn digest(&self) -> Vec<u8> {
        Sha256::digest(self.json.to_string().as_bytes()).to_vec()
    }
}

/// Why a model is not taken.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    /// From 1.
    line: usize,
    reason: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Parsed {
    types: Vec<Type>,
}

#[derive(Debug, PartialEq, Eq)]
struct Type {
    name: String,
    relations: Vec<Relation>,
}

#[derive(Debug, PartialEq, Eq)]
struct Relation {
    name: String,
    line: usize,
    /// Any of them is enough. Never empty.
    terms: Vec<Term>,
}

#[derive(Debug, PartialEq, Eq)]
enum Term {
    /// `[user, team#member]`: who may be granted it, a type and perhaps a relation to one.
    Direct(Vec<(String, Option<String>)>),
    /// `admin`: whoever has this other relation to the object.
    Same(String),
    /// `admin from org`: whoever has the relation to an object that the second relation names.
    From(String, String),
}

fn parse(source: &str) -> Result<Parsed, Refusal> {
    let mut model = Parsed { types: Vec::new() };
    let mut lines = source
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, without_comment(line)))
        .filter(|(_, line)| !line.is_empty());
    for expected in ["model", "  schema 1.1"] {
        let found = lines.next();
        if found.is_none_or(|(_, line)| line != expected) {
            let line = found.map_or(1, |(line, _)| line);
            return refuse(line, format!("here must stand `{}`", expected.trim()));
        }
    }
    let mut open = None;
    for (line, text) in lines {
        if let Some(name) = text.strip_prefix("type ") {
            if let Some(line) = open {
                return refuse(line, "`relations` without a `define`");
            }
            let name = word(line, name)?;
            if model.find(&name).is_some() {
                return refuse(line, format!("the type {name} is there already"));
            }
            let relations = Vec::new();
            model.types.push(Type { name, relations });
        } else if let (Some(last), "  relations") = (model.types.last(), text) {
            if open.is_some() || !last.relations.is_empty() {
                return refuse(line, "`relations` is there already");
            }
            open = Some(line);
        } else if let (Some(last), Some(rest)) =
            (model.types.last_mut(), text.strip_prefix("    define "))
        {
            if open.take().is_none() && last.relations.is_empty() {
                return refuse(line, "a `define` must stand below `relations`");
            }
            let relation = relation(line, rest)?;
            if last.find(&relation.name).is_some() {
                return refuse(line, format!("{} is defined already", relation.name));
            }
            last.relations.push(relation);
        } else {
            return refuse(line, "this is not part of the language that is taken");
        }
    }
    if let Some(line) = open {
        return refuse(line, "`relations` without a `define`");
    }
    model.check()?;
    Ok(model)
}

/// A comment begins a line or follows a space: `team#member` holds none.
fn without_comment(line: &str) -> &str {
    let begin = line
        .char_indices()
        .find(|(at, c)| *c == '#' && line[..*at].chars().next_back().is_none_or(|b| b == ' '));
    line[..begin.map_or(line.len(), |(at, _)| at)].trim_end()
}

fn refuse<T>(line: usize, reason: impl Into<String>) -> Result<T, Refusal> {
    let reason = reason.into();
    Err(Refusal { line, reason })
}

/// Words that OpenFGA's language keeps, most of them for what is not taken here.
const KEPT: [&str; 14] = [
    "and",
    "as",
    "but",
    "condition",
    "define",
    "extend",
    "from",
    "model",
    "module",
    "not",
    "or",
    "self",
    "this",
    "with",
];

/// The name of a type or a relation.
fn word(line: usize, text: &str) -> Result<String, Refusal> {
    let lower = |b: u8| b.is_ascii_lowercase() || b == b'_';
    if text.is_empty() || !text.bytes().all(lower) || KEPT.contains(&text) {
        return refuse(line, format!("`{text}` is no name that is taken"));
    }
    Ok(text.to_owned())
}

/// What follows `define`.
fn relation(line: usize, text: &str) -> Result<Relation, Refusal> {
    let Some((name, expression)) = text.split_once(": ") else {
        return refuse(line, "a `define` needs a name, a colon and what it means");
    };
    let name = word(line, name)?;
    let mut terms = Vec::new();
    for (index, part) in expression.split(" or ").enumerate() {
        let term = term(line, part)?;
        if index > 0 && matches!(term, Term::Direct(_)) {
            return refuse(line, "who may be granted a relation stands first");
        }
        if terms.contains(&term) {
            return refuse(line, format!("`{part}` is there already"));
        }
        terms.push(term);
    }
    Ok(Relation { name, line, terms })
}

fn term(line: usize, text: &str) -> Result<Term, Refusal> {
    if let Some(list) = text.strip_prefix('[') {
        let Some(list) = list.strip_suffix(']') else {
            return refuse(line, format!("`{text}` is no list of types"));
        };
        let mut types = Vec::new();
        for one in list.split(", ") {
            let named = match one.split_once('#') {
                Some((kind, relation)) => (word(line, kind)?, Some(word(line, relation)?)),
                None => (word(line, one)?, None),
            };
            if types.contains(&named) {
                return refuse(line, format!("`{one}` is there already"));
            }
            types.push(named);
        }
        return Ok(Term::Direct(types));
    }
    match text.split_once(" from ") {
        Some((relation, through)) => Ok(Term::From(word(line, relation)?, word(line, through)?)),
        None => Ok(Term::Same(word(line, text)?)),
    }
}

impl Parsed {
    fn find(&self, name: &str) -> Option<&Type> {
        self.types.iter().find(|kind| kind.name == name)
    }

    /// Whether what is referred to is there.
    fn check(&self) -> Result<(), Refusal> {
        for kind in &self.types {
            for relation in &kind.relations {
                for term in &relation.terms {
                    self.check_term(kind, relation.line, term)?;
                }
                let mut passed = HashSet::new();
                if kind.comes_back(relation, &relation.name, &mut passed) {
                    return refuse(relation.line, format!("{} means itself", relation.name));
                }
            }
        }
        Ok(())
    }

    fn check_term(&self, kind: &Type, line: usize, term: &Term) -> Result<(), Refusal> {
        match term {
            Term::Direct(types) => types
                .iter()
                .try_for_each(|(name, relation)| self.check_name(line, name, relation.as_deref())),
            Term::Same(relation) => self.check_name(line, &kind.name, Some(relation)),
            Term::From(relation, through) => {
                self.check_name(line, &kind.name, Some(through))?;
                let terms = kind.find(through).map(|through| through.terms.as_slice());
                let Some([Term::Direct(types)]) = terms else {
                    return refuse(line, format!("{through} must be only granted"));
                };
                if types.iter().any(|(_, relation)| relation.is_some()) {
                    return refuse(line, format!("{through} must name objects alone"));
                }
                types
                    .iter()
                    .try_for_each(|(name, _)| self.check_name(line, name, Some(relation)))
            }
        }
    }

    fn check_name(&self, line: usize, name: &str, relation: Option<&str>) -> Result<(), Refusal> {
        let Some(kind) = self.find(name) else {
            return refuse(line, format!("there is no type {name}"));
        };
        match relation {
            Some(relation) if kind.find(relation).is_none() => {
                refuse(line, format!("there is no relation {name}#{relation}"))
            }
            _ => Ok(()),
        }
    }

    fn json(&self) -> Value {
        let types: Vec<Value> = self.types.iter().map(Type::json).collect();
        json!({ "schema_version": "1.1", "type_definitions": types })
    }
}

impl Type {
    fn find(&self, name: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// Whether the relation's own terms lead to `goal`, without leaving the object.
    fn comes_back<'a>(
        &'a self,
        from: &'a Relation,
        goal: &str,
        passed: &mut HashSet<&'a str>,
    ) -> bool {
        from.terms.iter().any(|term| match term {
            Term::Same(name) if name == goal => true,
            Term::Same(name) if passed.insert(name) => self
                .find(name)
                .is_some_and(|next| self.comes_back(next, goal, passed)),
            _ => false,
        })
    }

    fn json(&self) -> Value {
        let mut relations = Map::new();
        let mut granted = Map::new();
        for relation in &self.relations {
            let mut terms: Vec<Value> = relation.terms.iter().map(Term::json).collect();
            let meaning = match terms.len() {
                1 => terms.remove(0),
                _ => json!({ "union": { "child": terms } }),
            };
            relations.insert(relation.name.clone(), meaning);
            let types: Vec<Value> = relation.terms.iter().flat_map(Term::granted).collect();
            let types = json!({ "directly_related_user_types": types });
            granted.insert(relation.name.clone(), types);
        }
        if relations.is_empty() {
            return json!({ "type": self.name });
        }
        json!({
            "type": self.name,
            "relations": relations,
            "metadata": { "relations": granted },
        })
    }
}

impl Term {
    fn json(&self) -> Value {
        match self {
            Self::Direct(_) => json!({ "this": {} }),
            Self::Same(relation) => json!({ "computedUserset": { "relation": relation } }),
            Self::From(relation, through) => json!({
                "tupleToUserset": {
                    "tupleset": { "relation": through },
                    "computedUserset": { "relation": relation },
                }
            }),
        }
    }

    /// To whom it may be granted.
    fn granted(&self) -> Vec<Value> {
        let Self::Direct(types) = self else {
            return Vec::new();
        };
        let one = |(kind, relation): &(String, Option<String>)| match relation {
            Some(relation) => json!({ "type": kind, "relation": relation }),
            None => json!({ "type": kind }),
        };
        types.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model in which only the last line is new.
    fn with(line: &str) -> Result<Parsed, Refusal> {
        parse(&format!("{BEGIN}\n{line}\n"))
    }

    const BEGIN: &str = "# first\nmodel\n  schema 1.1\ntype user\ntype team\n  relations\n    define member: [user]\ntype doc\n  relations\n    define team: [team]\n    define owner: [user, team#member]";
    const NEXT: usize = 12;

    #[test]
    fn a_change_of_the_model_raises_its_version() {
        let hex = crate::text::hex(&digest());
        assert_eq!(
            (VERSION, hex.as_str()),
            (
                2,
                "79e76cfc3226e8387316388b1e94680930361142c3000ff07c569f400e8640f4"
            ),
            "the model's JSON has changed: raise VERSION, and pin it here with its digest"
        );
    }

    #[test]
    fn every_type_but_user_answers_for_every_action() {
        let model = parse(SOURCE).unwrap();
        let names: Vec<&str> = model.types.iter().map(|kind| kind.name.as_str()).collect();
        let (user, objects) = names.split_first().unwrap();
        assert_eq!(*user, "user");
        let expected = [
            "tenant",
            "org",
            "team",
            "project",
            "agent",
            "flow",
            "tool",
            "conversation",
            "run",
        ];
        assert_eq!(objects, expected);
        for kind in &model.types[1..] {
            for action in ["can_read", "can_write", "can_admin"] {
                assert!(kind.find(action).is_some(), "{} {action}", kind.name);
            }
        }
    }

    #[test]
    fn what_a_member_may_do_is_never_granted_itself() {
        for kind in parse(SOURCE).unwrap().types {
            for relation in kind.relations {
                let granted = matches!(relation.terms[0], Term::Direct(_));
                let can = relation.name.starts_with("can_");
                assert!(!(can && granted), "{}#{}", kind.name, relation.name);
            }
        }
    }

    #[test]
    fn what_lies_in_a_project_has_its_project_and_nothing_of_its_own() {
        let model = parse(SOURCE).unwrap();
        for name in ["agent", "flow", "tool", "conversation", "run"] {
            let kind = model.find(name).unwrap();
            let direct = vec![Term::Direct(vec![("project".into(), None)])];
            assert_eq!(kind.find("project").unwrap().terms, direct, "{name}");
            for action in ["can_read", "can_write", "can_admin"] {
                let through = vec![Term::From(action.into(), "project".into())];
                assert_eq!(kind.find(action).unwrap().terms, through, "{name}");
            }
            assert_eq!(kind.relations.len(), 4, "{name}");
        }
    }

    #[test]
    fn the_json_is_openfgas() {
        let model = with("    define reader: [user] or owner or member from team # all").unwrap();
        assert_eq!(
            model.json()["type_definitions"][2],
            json!({
                "type": "doc",
                "relations": {
                    "team": { "this": {} },
                    "owner": { "this": {} },
                    "reader": { "union": { "child": [
                        { "this": {} },
                        { "computedUserset": { "relation": "owner" } },
                        { "tupleToUserset": {
                            "tupleset": { "relation": "team" },
                            "computedUserset": { "relation": "member" },
                        } },
                    ] } },
                },
                "metadata": { "relations": {
                    "team": { "directly_related_user_types": [{ "type": "team" }] },
                    "owner": { "directly_related_user_types": [
                        { "type": "user" }, { "type": "team", "relation": "member" },
                    ] },
                    "reader": { "directly_related_user_types": [{ "type": "user" }] },
                } },
            })
        );
        assert_eq!(
            model.json()["type_definitions"][0],
            json!({ "type": "user" })
        );
    }

    /// A line, and what its refusal says.
    const REFUSED: &[(&str, &str)] = &[
        (
            "    define a: owner and team",
            "`owner and team` is no name",
        ),
        (
            "    define a: owner but not team",
            "`owner but not team` is no name",
        ),
        (
            "    define a: (owner or owner) or team",
            "`(owner` is no name",
        ),
        ("    define a: [user:*]", "`user:*` is no name"),
        (
            "    define a: [user with soon]",
            "`user with soon` is no name",
        ),
        ("    define a: [nobody]", "there is no type nobody"),
        (
            "    define a: [team#captain]",
            "there is no relation team#captain",
        ),
        ("    define a: [user, user]", "`user` is there already"),
        ("    define a: [user,team]", "`user,team` is no name"),
        ("    define a: []", "`` is no name"),
        ("    define a: [user", "is no list of types"),
        ("    define a: owner or [user]", "stands first"),
        ("    define a: owner or owner", "`owner` is there already"),
        ("    define a: nothing", "there is no relation doc#nothing"),
        ("    define a: a", "a means itself"),
        (
            "    define a: captain from team",
            "there is no relation team#captain",
        ),
        (
            "    define a: member from nothing",
            "there is no relation doc#nothing",
        ),
        (
            "    define a: member from owner",
            "owner must name objects alone",
        ),
        ("    define a: x from y from z", "is no name"),
        ("    define a: ", "needs a name, a colon"),
        ("    define a", "needs a name, a colon"),
        ("    define or: owner", "`or` is no name"),
        ("    define owner: [user]", "owner is defined already"),
        ("    define A: owner", "`A` is no name"),
        ("   define a: owner", "not part of the language"),
        ("\tdefine a: owner", "not part of the language"),
        ("  relations", "`relations` is there already"),
        ("type user", "the type user is there already"),
        ("type extend", "`extend` is no name"),
        ("condition soon(x: int) {", "not part of the language"),
        ("extend type user", "not part of the language"),
        (
            "type other\n    define a: [user]",
            "must stand below `relations`",
        ),
        ("type other\n  relations", "`relations` without a `define`"),
        (
            "type other\n  relations\ntype more",
            "`relations` without a `define`",
        ),
    ];

    #[test]
    fn what_is_not_taken_is_refused_with_its_line_and_reason() {
        for (line, reason) in REFUSED {
            let refusal = with(line).unwrap_err();
            assert!(refusal.reason.contains(reason), "{line}: {refusal:?}");
            let at = NEXT + usize::from(line.contains('\n'));
            assert_eq!(refusal.line, at, "{line}: {refusal:?}");
        }
        let circle = with("    define a: b\n    define b: owner or a").unwrap_err();
        assert_eq!(circle.reason, "a means itself");
        let indirect = with("    define a: member from b\n    define b: team").unwrap_err();
        assert_eq!(indirect.reason, "b must be only granted");
    }

    #[test]
    fn the_head_must_be_there() {
        for (source, line) in [
            ("", 1),
            ("type user", 1),
            ("model\ntype user", 2),
            ("\nmodel\n  schema 1.2", 3),
            ("module a\n", 1),
        ] {
            assert_eq!(parse(source).unwrap_err().line, line, "{source}");
        }
    }
}
