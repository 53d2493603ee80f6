//! No circle of files that import each other, but for those of a language that nests.
//!
//! `imports.rs` says what an import is and what it does not see.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::hold;
use crate::imports::{Arrows, Imports};
use crate::source::{self, Source};

/// What has no circles.
const ROOMS: [&str; 3] = ["expressions/src", "jobs/src", "src"];

/// Methods of one type, which call each other as the texts that they read contain each other. Each entry holds
/// as long as there is a circle within it.
const ALLOWED: [(&str, &str); 3] = [
    (
        "expressions/src/evaluate",
        "an expression contains expressions",
    ),
    ("expressions/src/parser", "a term contains pipes"),
    ("src/flows/definition", "a task contains lists of tasks"),
];

/// The circles of a room, each with its shortest way round and the other arrows among its files.
fn circles(imports: &Imports, room: &str) -> Vec<String> {
    every_circle(imports, room)
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

/// The same, each with its files.
fn every_circle(imports: &Imports, room: &str) -> Vec<(Vec<String>, String)> {
    let arrows = imports.arrows(room);
    let forth = neighbours(arrows.keys().map(|(from, to)| (from.as_str(), to.as_str())));
    let back = neighbours(arrows.keys().map(|(from, to)| (to.as_str(), from.as_str())));
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for start in forth.keys() {
        let reached = reachable(&forth, start);
        if seen.contains(start) || !reached.contains(start) {
            continue;
        }
        let circle: BTreeSet<&str> = &reached & &reachable(&back, start);
        let files = circle.iter().map(|file| (*file).to_owned()).collect();
        found.push((files, described(&arrows, &circle)));
        seen.extend(circle);
    }
    found
}

/// The files that each file has an arrow to.
type Neighbours<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn neighbours<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Neighbours<'a> {
    let mut all = Neighbours::new();
    for (from, to) in pairs {
        all.entry(from).or_default().insert(to);
    }
    all
}

/// The files that arrows lead to from a file, by one or more.
fn reachable<'a>(neighbours: &Neighbours<'a>, start: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![start];
    while let Some(from) = waiting.pop() {
        for to in neighbours.get(from).into_iter().flatten() {
            if reached.insert(*to) {
                waiting.push(to);
            }
        }
    }
    reached
}

fn described(arrows: &Arrows, circle: &BTreeSet<&str>) -> String {
    let inside: Vec<(&str, &str, &str)> = arrows
        .iter()
        .map(|((from, to), item)| (from.as_str(), to.as_str(), item.as_str()))
        .filter(|(from, to, _)| circle.contains(from) && circle.contains(to))
        .collect();
    let forth = neighbours(inside.iter().map(|(from, to, _)| (*from, *to)));
    let shortest = circle
        .iter()
        .filter_map(|start| way_round(&forth, start))
        .min_by_key(Vec::len)
        .unwrap_or_default();
    let mut text = format!("{} files: ", circle.len());
    for pair in shortest.windows(2) {
        let item = &arrows[&(pair[0].to_owned(), pair[1].to_owned())];
        text += &format!("{} -({item})-> ", pair[0]);
    }
    text += shortest.last().copied().unwrap_or_default();
    for (from, to, item) in inside {
        if !shortest.windows(2).any(|pair| pair == [from, to]) {
            text += &format!("\n    and {from} -({item})-> {to}");
        }
    }
    text
}

/// The shortest way from a file back to it.
fn way_round<'a>(forth: &Neighbours<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        for to in forth.get(at).into_iter().flatten().copied() {
            if to == start {
                let mut way = vec![start, at];
                while way[way.len() - 1] != start {
                    way.push(came_from[way[way.len() - 1]]);
                }
                way.reverse();
                return Some(way);
            }
            came_from.entry(to).or_insert_with(|| {
                waiting.push_back(to);
                at
            });
        }
    }
    None
}

/// The place that allows a circle of these files: all of them are in it.
fn allowance(files: &[String]) -> Option<&'static str> {
    let is_in = |place: &str| {
        files
            .iter()
            .all(|file| file.starts_with(&format!("{place}/")))
    };
    ALLOWED
        .iter()
        .map(|(place, _)| *place)
        .find(|place| is_in(place))
}

/// The circles under `src/x` of these files, as text.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<Source> = files.iter().map(|(p, t)| Source::new(p, t)).collect();
    circles(&Imports::new(&files), "src/x")
}

#[test]
#[allow(clippy::print_stdout, reason = "tests/show/house reads these lines")]
fn circles_of_files_that_import_each_other() {
    let imports = Imports::new(&source::repository());
    let (mut faults, mut used) = (Vec::new(), BTreeSet::new());
    for room in ROOMS {
        assert!(
            imports.arrows(room).len() > 1,
            "{room} holds no imports: has it moved?"
        );
        let (allowed, wrong): (Vec<_>, Vec<_>) = every_circle(&imports, room)
            .into_iter()
            .partition(|(files, _)| allowance(files).is_some());
        println!("circles {room} {}", wrong.len());
        for (_, circle) in &wrong {
            println!("  {circle}");
        }
        used.extend(allowed.iter().filter_map(|(files, _)| allowance(files)));
        faults.extend(wrong.into_iter().map(|(_, circle)| circle));
    }
    for (place, _) in ALLOWED.iter().filter(|(place, _)| !used.contains(place)) {
        faults.push(format!("{place} has no circle: take it out of ALLOWED"));
    }
    hold(
        &faults,
        "These files import each other. Move what both need to a file below both, or pass in what the \
         lower one needs.",
    );
}

#[test]
fn circles_are_found_through_every_kind_of_path() {
    let one = "src/x/a.rs -(B)-> src/x/b.rs -(A)-> src/x/a.rs";
    let ways: [(&str, &str); 9] = [
        ("use crate::x::b::B;", "use crate::x::a::A;"),
        ("use super::b::{self, B};", "fn f() -> super::a::A { g() }"),
        (
            "use crate::x::{b::{B as Other}, c};",
            "use super::a; type T = a::A;",
        ),
        ("use super::B;", "use crate::x::a::A;"),
        ("use super::*; type T = B;", "use crate::{x::A};"),
        (
            "fn f(b: crate::x::b::B) {}",
            "fn f() { let a = self::up::A; } mod up { use super::super::a::A; }",
        ),
        ("use super::b::B;", "fn f() { use super::a::A; }"),
        ("pub use super::b::B; type T = B;", "use super::a::A;"),
        (
            "use super::b::B;",
            "use super::a::A;\n#[cfg(test)]\nuse super::a::C;",
        ),
    ];
    for (a, b) in ways {
        let a = format!("{a} pub struct A;");
        let b = format!("{b} pub struct B;");
        let room = "mod a; mod b; pub use a::A; pub use b::B;";
        let files = [
            ("src/lib.rs", "mod x;"),
            ("src/x/mod.rs", room),
            ("src/x/a.rs", a.as_str()),
            ("src/x/b.rs", b.as_str()),
        ];
        assert_eq!(found(&files), [format!("2 files: {one}")], "{a} | {b}");
    }
}

#[test]
fn circles_are_not_made_by_declarations_and_reexports() {
    let files = [
        ("src/lib.rs", "mod x; mod y;"),
        (
            "src/x/mod.rs",
            "mod a; pub mod b; pub use a::A; pub(crate) use b::B; pub struct X;",
        ),
        ("src/x/a.rs", "use super::X; pub struct A; // super::b::B"),
        (
            "src/x/b.rs",
            "use super::{A, X}; pub struct B; fn f() { \"super::a\"; }",
        ),
        ("src/y.rs", "use crate::x::A; pub struct Y;"),
    ];
    assert_eq!(found(&files), [""; 0]);
}

#[test]
fn circles_are_found_through_methods_and_macros() {
    let files = [
        ("src/lib.rs", "mod x;"),
        (
            "src/x/mod.rs",
            "mod a; mod b; mod c; mod d;\nmacro_rules! sum { () => {} }",
        ),
        (
            "src/x/a.rs",
            "pub struct A; impl A { fn f(&self) { self.in_b(); Self::len(); } }",
        ),
        (
            "src/x/b.rs",
            "use super::a::A; impl A { fn in_b(&self) {} fn len() {} }",
        ),
        (
            "src/x/c.rs",
            "pub struct C; impl C { fn new_c() {} } fn f(d: u8) { d.only_here(); d.len(); }",
        ),
        (
            "src/x/d.rs",
            "use super::c::C; struct D; impl D { fn only_here(&self) {} }",
        ),
    ];
    assert_eq!(
        found(&files),
        [
            "2 files: src/x/a.rs -(A::in_b)-> src/x/b.rs -(A)-> src/x/a.rs",
            "2 files: src/x/c.rs -(.only_here())-> src/x/d.rs -(C)-> src/x/c.rs",
        ]
    );
}
