//! No circle of files that import each other in the rooms that everything later builds on.
//!
//! `imports.rs` says what an import is and what it does not see.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::hold;
use crate::imports::{Arrows, Imports};
use crate::source::{self, Source};

/// The rooms without circles.
const ROOMS: [&str; 6] = [
    "jobs/src/runner",
    "src/authz",
    "src/http",
    "src/http/door",
    "src/runtime",
    "src/store",
];

/// The circles of a room, each with its shortest way round and the other arrows among its files.
fn circles(imports: &Imports, room: &str) -> Vec<String> {
    let arrows = imports.arrows(room);
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for start in arrows.keys().map(|(from, _)| from.as_str()) {
        let reached = reachable(&arrows, start);
        if seen.contains(start) || !reached.contains(start) {
            continue;
        }
        let circle: BTreeSet<&str> = reached
            .into_iter()
            .filter(|other| reachable(&arrows, other).contains(start))
            .collect();
        found.push(described(&arrows, &circle));
        seen.extend(circle);
    }
    found
}

/// The files that a file's imports lead to, by one arrow or more.
fn reachable<'a>(arrows: &'a Arrows, start: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = VecDeque::from([start.to_owned()]);
    while let Some(from) = waiting.pop_front() {
        for (_, to) in arrows.keys().filter(|(other, _)| *other == from) {
            if reached.insert(to.as_str()) {
                waiting.push_back(to.clone());
            }
        }
    }
    reached
}

fn described(arrows: &Arrows, circle: &BTreeSet<&str>) -> String {
    let shortest = circle
        .iter()
        .filter_map(|start| way_round(arrows, circle, start))
        .min_by_key(Vec::len)
        .unwrap_or_default();
    let mut text = format!("{} files: ", circle.len());
    for pair in shortest.windows(2) {
        let item = &arrows[&(pair[0].to_owned(), pair[1].to_owned())];
        text += &format!("{} -({item})-> ", pair[0]);
    }
    text += shortest.last().copied().unwrap_or_default();
    for ((from, to), item) in arrows {
        let inside = circle.contains(from.as_str()) && circle.contains(to.as_str());
        if inside && !shortest.windows(2).any(|pair| pair == [from, to]) {
            text += &format!("\n    and {from} -({item})-> {to}");
        }
    }
    text
}

/// The shortest way from a file back to it.
fn way_round<'a>(
    arrows: &'a Arrows,
    circle: &BTreeSet<&str>,
    start: &'a str,
) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        for (_, to) in arrows.keys().filter(|(from, _)| from == at) {
            if to == start {
                let mut way = vec![start, at];
                while way[way.len() - 1] != start {
                    way.push(came_from[way[way.len() - 1]]);
                }
                way.reverse();
                return Some(way);
            }
            if circle.contains(to.as_str()) && !came_from.contains_key(to.as_str()) {
                came_from.insert(to, at);
                waiting.push_back(to);
            }
        }
    }
    None
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
    let mut faults = Vec::new();
    for room in ROOMS {
        assert!(
            imports.arrows(room).len() > 1,
            "{room} holds no imports: has it moved?"
        );
        let circles = circles(&imports, room);
        println!("circles {room} {}", circles.len());
        for circle in &circles {
            println!("  {circle}");
        }
        faults.extend(circles);
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
