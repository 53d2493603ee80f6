//! Which file uses an item that another file defines, as far as the text tells.
//!
//! Paths are resolved as the compiler would: `crate::`, `super::`, `self::`, names that a `use` brings
//! into a file (groups, aliases, globs), and re-exports, which are followed to the file that defines the
//! item. An item is a function, type, trait, constant, static or macro at the level of a module, those in
//! a macro call's braces included. `mod` declarations and re-exports are no use of an item; naming what a
//! re-export brought in, in the same file, is.
//!
//! Methods: `Type::method` and `self.method()` are followed to the `impl` block that defines them. Other
//! calls, `value.method()`, are followed only where one function alone, in both crates, has that name,
//! and the standard library has none.
//!
//! Not seen: fields, methods of several types with one name, trait methods called on a value whose trait
//! is in scope by other means, and what a macro's body makes.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, is_word};

/// How many aliases a path may pass through; more is a circle of aliases.
const ALIASES_MAX: usize = 24;
/// Methods that values of the standard library or of a dependency also have.
const COMMON_METHODS: [&str; 59] = [
    "apply",
    "as_bytes",
    "as_ref",
    "as_str",
    "begin",
    "build",
    "call",
    "clear",
    "close",
    "code",
    "collect",
    "commit",
    "contains",
    "count",
    "end",
    "entries",
    "execute",
    "file_name",
    "filter",
    "find",
    "finish",
    "flatten",
    "flush",
    "get",
    "id",
    "insert",
    "into_inner",
    "is_alive",
    "is_empty",
    "is_open",
    "join",
    "last",
    "len",
    "list",
    "lock",
    "name",
    "new",
    "next",
    "now",
    "ok",
    "open",
    "or",
    "parse",
    "password",
    "path",
    "push",
    "read",
    "read_to_end",
    "remove",
    "reset",
    "reverse",
    "run",
    "send",
    "start",
    "status",
    "take",
    "uri",
    "wait",
    "write",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    Module(usize),
    /// The file that defines it.
    Item(usize),
}

/// A name that a `use` brings into a module.
struct Alias {
    name: String,
    path: Vec<String>,
    reexport: bool,
}

#[derive(Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    aliases: Vec<Alias>,
    globs: Vec<Vec<String>>,
    /// Where it stands in its file's tokens.
    span: (usize, usize),
}

/// An inherent `impl` block: of which type, which methods, where.
struct Impl {
    module: usize,
    path: Vec<String>,
    methods: Vec<String>,
    span: (usize, usize),
}

struct File {
    path: String,
    tokens: Vec<String>,
    /// Tokens of `use` declarations, which are read apart.
    declared: Vec<(usize, usize)>,
    modules: Vec<usize>,
    impls: Vec<Impl>,
}

/// Both crates, read once.
pub(crate) struct Imports {
    files: Vec<File>,
    modules: Vec<Module>,
    roots: BTreeMap<&'static str, usize>,
    macros: BTreeMap<String, usize>,
    /// Methods by name, where one function alone has the name.
    methods: BTreeMap<String, usize>,
    /// Methods by their type's file and name.
    of_types: BTreeMap<(usize, String, String), BTreeSet<usize>>,
}

/// From which file to which, and the first item that makes the arrow.
pub(crate) type Arrows = BTreeMap<(String, String), String>;

impl Imports {
    pub(crate) fn new(sources: &[Source]) -> Self {
        let mut all = Self {
            files: Vec::new(),
            modules: Vec::new(),
            roots: BTreeMap::new(),
            macros: BTreeMap::new(),
            methods: BTreeMap::new(),
            of_types: BTreeMap::new(),
        };
        let mut by_path: BTreeMap<(&'static str, Vec<String>), usize> = BTreeMap::new();
        for source in sources.iter().filter(|source| source.is_product()) {
            let Some((krate, path)) = module_path(&source.path) else {
                continue;
            };
            let module = all.read(source);
            by_path.insert((krate, path), module);
        }
        for ((krate, path), module) in &by_path {
            let Some((name, parent)) = path.split_last() else {
                all.roots.insert(krate, *module);
                continue;
            };
            if let Some(parent) = by_path.get(&(*krate, parent.to_vec())) {
                all.modules[*module].parent = Some(*parent);
                all.modules[*parent].children.insert(name.clone(), *module);
            }
        }
        all.find_methods();
        all
    }

    /// The uses of items by the files under `room` of others there.
    pub(crate) fn arrows(&self, room: &str) -> Arrows {
        let inside = |file: &File| {
            file.path == format!("{room}.rs") || file.path.starts_with(&format!("{room}/"))
        };
        let mut arrows = Arrows::new();
        for (index, file) in self
            .files
            .iter()
            .enumerate()
            .filter(|(_, file)| inside(file))
        {
            for (used, item) in self.used_by(index) {
                let other = &self.files[used];
                if used != index && inside(other) {
                    arrows
                        .entry((file.path.clone(), other.path.clone()))
                        .or_insert(item);
                }
            }
        }
        arrows
    }

    /// Adds a file with its modules; gives the file's own module.
    fn read(&mut self, source: &Source) -> usize {
        let index = self.files.len();
        let tokens = without_test_items(tokens(&source.bare));
        let own = self.modules.len();
        let end = tokens.len();
        self.modules.push(Module {
            file: index,
            span: (0, end),
            ..Module::default()
        });
        self.files.push(File {
            path: source.path.clone(),
            tokens,
            declared: Vec::new(),
            modules: vec![own],
            impls: Vec::new(),
        });
        self.items(index, own, 0, end);
        self.uses(index);
        own
    }

    /// The items of a module between two tokens: those of modules and macro calls inside, too.
    fn items(&mut self, file: usize, module: usize, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let tokens = &self.files[file].tokens;
            let word = tokens[at].as_str();
            let next = tokens.get(at + 1).map_or("", String::as_str).to_owned();
            let named = next.chars().all(is_word) && !next.is_empty();
            match word {
                "macro_rules" => {
                    let name = tokens[at + 2].clone();
                    at = closing(tokens, at + 3);
                    self.macros.insert(name, file);
                }
                "mod" if named && tokens.get(at + 2).is_some_and(|t| t == "{") => {
                    let end = closing(tokens, at + 2);
                    let inner = self.modules.len();
                    self.modules.push(Module {
                        file,
                        parent: Some(module),
                        span: (at + 2, end),
                        ..Module::default()
                    });
                    self.modules[module].children.insert(next, inner);
                    self.files[file].modules.push(inner);
                    self.items(file, inner, at + 3, end);
                    at = end;
                }
                "impl" => {
                    let block = inherent(tokens, at, module);
                    at = closing(tokens, opening(tokens, at));
                    self.files[file].impls.extend(block);
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"
                    if named && !["fn", "unsafe", "extern", "async"].contains(&next.as_str()) =>
                {
                    let name = if next == "mut" {
                        tokens[at + 2].clone()
                    } else {
                        next
                    };
                    self.modules[module].items.insert(name);
                    at += 1;
                }
                "!" if ["{", "(", "["].contains(&next.as_str()) => {
                    let end = closing(tokens, at + 1);
                    self.items(file, module, at + 2, end);
                    at = end;
                }
                "{" | "(" | "[" => at = closing(tokens, at),
                _ => {}
            }
            at += 1;
        }
    }

    /// The `use` declarations of a file, those in functions included.
    fn uses(&mut self, file: usize) {
        let mut at = 0;
        while at < self.files[file].tokens.len() {
            let tokens = &self.files[file].tokens;
            let begins = tokens[at] == "use" && tokens.get(at + 1).is_some_and(|t| t != "<");
            if !begins {
                at += 1;
                continue;
            }
            let end = (at..tokens.len())
                .find(|i| tokens[*i] == ";")
                .unwrap_or(tokens.len());
            let before = at.checked_sub(1).map_or("", |i| tokens[i].as_str());
            let reexport = before == "pub"
                || before == ")" && at > 3 && tokens[..at].iter().rev().take(6).any(|t| t == "pub");
            let mut found = Vec::new();
            leaves(&tokens[at + 1..end], &[], &mut found);
            let module = self.module_at(file, at);
            for (path, name) in found {
                match name {
                    Some(name) => self.modules[module].aliases.push(Alias {
                        name,
                        path,
                        reexport,
                    }),
                    None => self.modules[module].globs.push(path),
                }
            }
            self.files[file].declared.push((at, end));
            at = end;
        }
    }

    fn module_at(&self, file: usize, at: usize) -> usize {
        self.files[file]
            .modules
            .iter()
            .copied()
            .filter(|module| {
                self.modules[*module].span.0 <= at && at <= self.modules[*module].span.1
            })
            .min_by_key(|module| self.modules[*module].span.1 - self.modules[*module].span.0)
            .unwrap()
    }

    fn find_methods(&mut self) {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for file in &self.files {
            for pair in file.tokens.windows(2).filter(|pair| pair[0] == "fn") {
                *count.entry(&pair[1]).or_default() += 1;
            }
        }
        let mut methods = BTreeMap::new();
        let mut of_types: BTreeMap<(usize, String, String), BTreeSet<usize>> = BTreeMap::new();
        for (index, file) in self.files.iter().enumerate() {
            for block in &file.impls {
                for method in &block.methods {
                    if count[method.as_str()] == 1 && !COMMON_METHODS.contains(&method.as_str()) {
                        methods.insert(method.clone(), index);
                    }
                    if let Some(Target::Item(home)) = self
                        .resolve(block.module, &block.path, 0)
                        .map(|found| found.0)
                    {
                        let name = block.path[block.path.len() - 1].clone();
                        of_types
                            .entry((home, name, method.clone()))
                            .or_default()
                            .insert(index);
                    }
                }
            }
        }
        self.methods = methods;
        self.of_types = of_types;
    }

    /// What a path leads to from a module, and how many of its names that took.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<(Target, usize)> {
        if depth > ALIASES_MAX || path.is_empty() {
            return None;
        }
        let mut module = from;
        for (at, name) in path.iter().enumerate() {
            let last = at + 1 == path.len();
            let found = match name.as_str() {
                "crate" if at == 0 => Some(Target::Module(self.root_of(from))),
                "self" if at == 0 => Some(Target::Module(module)),
                "super" => self.modules[module].parent.map(Target::Module),
                name => self.lookup(module, name, last, depth).or_else(|| {
                    let root = self.roots.get(name).filter(|_| at == 0);
                    root.map(|root| Target::Module(*root))
                }),
            };
            match found? {
                Target::Module(next) => module = next,
                Target::Item(file) => return Some((Target::Item(file), at + 1)),
            }
        }
        Some((Target::Module(module), path.len()))
    }

    fn root_of(&self, mut module: usize) -> usize {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }

    /// A name in a module. The last name of a path is an item rather than a module, others not.
    fn lookup(&self, module: usize, name: &str, last: bool, depth: usize) -> Option<Target> {
        let place = &self.modules[module];
        let child = place.children.get(name).map(|child| Target::Module(*child));
        if child.is_some() && !last {
            return child;
        }
        if place.items.contains(name) {
            return Some(Target::Item(place.file));
        }
        let aliased = place
            .aliases
            .iter()
            .filter(|alias| alias.name == name)
            .filter_map(|alias| self.resolve(module, &alias.path, depth + 1))
            .map(|found| found.0)
            .next();
        aliased.or(child).or_else(|| {
            place
                .globs
                .iter()
                .find_map(|path| match self.resolve(module, path, depth + 1) {
                    Some((Target::Module(other), _)) if other != module => {
                        self.lookup(other, name, last, depth + 1)
                    }
                    _ => None,
                })
        })
    }

    /// The items of other files that a file uses: their file and the words that use them.
    fn used_by(&self, index: usize) -> Vec<(usize, String)> {
        let file = &self.files[index];
        let mut used = Vec::new();
        for module in &file.modules {
            let place = &self.modules[*module];
            let plain = place
                .aliases
                .iter()
                .filter(|alias| !alias.reexport)
                .map(|alias| &alias.path);
            for path in plain.chain(&place.globs) {
                self.add_path(*module, path, &mut used);
            }
        }
        let mut at = 0;
        while at < file.tokens.len() {
            if let Some((_, end)) = file.declared.iter().find(|(from, _)| *from == at) {
                at = *end;
                continue;
            }
            at = self.use_at(index, at, &mut used);
        }
        used
    }

    fn add_path(&self, module: usize, path: &[String], used: &mut Vec<(usize, String)>) {
        let Some((Target::Item(home), taken)) = self.resolve(module, path, 0) else {
            return;
        };
        let name = &path[taken - 1];
        used.push((home, name.clone()));
        if let Some(method) = path.get(taken) {
            self.add_method(home, name, method, used);
        }
    }

    fn add_method(&self, home: usize, kind: &str, method: &str, used: &mut Vec<(usize, String)>) {
        let key = (home, kind.to_owned(), method.to_owned());
        for other in self.of_types.get(&key).into_iter().flatten() {
            used.push((*other, format!("{kind}::{method}")));
        }
    }

    /// The use that a token begins, if it begins one; gives the token to go on from.
    fn use_at(&self, index: usize, at: usize, used: &mut Vec<(usize, String)>) -> usize {
        let tokens = &self.files[index].tokens;
        let word = &tokens[at];
        let token = |i: usize| tokens.get(i).map_or("", String::as_str);
        let before = at.checked_sub(1).map_or("", token);
        let dotted = before == "." && (at < 2 || token(at - 2) != ".");
        if !word.chars().all(is_word) || before == "::" || before == "'" {
            return at + 1;
        }
        if dotted {
            if token(at + 1) == "(" || token(at + 1) == "::" {
                self.call_at(index, at, used);
            }
            return at + 1;
        }
        if token(at + 1) == "!" {
            if let Some(home) = self.macros.get(word) {
                used.push((*home, format!("{word}!")));
            }
            return at + 1;
        }
        let mut path = vec![word.clone()];
        let mut end = at + 1;
        while token(end) == "::" && token(end + 1).chars().next().is_some_and(is_word) {
            path.push(token(end + 1).to_owned());
            end += 2;
        }
        let module = self.module_at(index, at);
        if path.len() > 1 && word == "Self" {
            if let Some((home, kind)) = self.type_of_self(index, at) {
                self.add_method(home, &kind, &path[1], used);
            }
        } else if path.len() > 1 || self.may_be_named_alone(module, word, token(at + 1)) {
            self.add_path(module, &path, used);
        }
        end
    }

    /// Whether a word on its own can be an item: not a variable or field of the same name.
    fn may_be_named_alone(&self, module: usize, word: &str, next: &str) -> bool {
        let place = &self.modules[module];
        let known = !place.globs.is_empty() || place.aliases.iter().any(|alias| alias.name == word);
        let capital = word.chars().next().is_some_and(char::is_uppercase);
        known && (capital || next == "(")
    }

    fn call_at(&self, index: usize, at: usize, used: &mut Vec<(usize, String)>) {
        let tokens = &self.files[index].tokens;
        let method = &tokens[at];
        if at > 1
            && tokens[at - 2] == "self"
            && let Some((home, kind)) = self.type_of_self(index, at)
        {
            self.add_method(home, &kind, method, used);
        } else if let Some(home) = self.methods.get(method) {
            used.push((*home, format!(".{method}()")));
        }
    }

    /// The type of the `impl` block that a token stands in.
    fn type_of_self(&self, index: usize, at: usize) -> Option<(usize, String)> {
        let file = &self.files[index];
        let block = file
            .impls
            .iter()
            .find(|block| block.span.0 <= at && at <= block.span.1)?;
        match self.resolve(block.module, &block.path, 0)? {
            (Target::Item(home), taken) => Some((home, block.path[taken - 1].clone())),
            _ => None,
        }
    }
}

/// The crate and the module that a file of the product is; programs of their own are none.
fn module_path(path: &str) -> Option<(&'static str, Vec<String>)> {
    let (krate, inner) = [
        ("jobs", "jobs/src/"),
        ("expressions", "expressions/src/"),
        ("agent_runtime", "src/"),
    ]
    .iter()
    .find_map(|(krate, place)| Some((*krate, path.strip_prefix(place)?)))?;
    let mut parts: Vec<String> = inner
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    match parts.last().map(String::as_str) {
        Some("main") => return None,
        Some("mod" | "lib") => {
            parts.pop();
        }
        _ => {}
    }
    Some((krate, parts))
}

fn tokens(bare: &str) -> Vec<String> {
    let chars: Vec<char> = bare.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let end = if is_word(chars[at]) {
            (at..chars.len())
                .find(|i| !is_word(chars[*i]))
                .unwrap_or(chars.len())
        } else if chars[at] == ':' && chars.get(at + 1) == Some(&':') {
            at + 2
        } else {
            at + 1
        };
        if !chars[at].is_whitespace() {
            found.push(chars[at..end].iter().collect());
        }
        at = end;
    }
    found
}

/// What stands under `#[cfg(test)]` is no part of the product.
fn without_test_items(tokens: Vec<String>) -> Vec<String> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].iter().take(mark.len()).eq(mark) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += mark.len();
        while at < tokens.len() && tokens[at] != ";" && tokens[at] != "{" {
            at = if tokens[at] == "(" || tokens[at] == "[" {
                closing(&tokens, at) + 1
            } else {
                at + 1
            };
        }
        at = if tokens.get(at).is_some_and(|t| t == "{") {
            closing(&tokens, at) + 1
        } else {
            at + 1
        };
    }
    kept
}

/// The token that closes the bracket at `at`.
fn closing(tokens: &[String], at: usize) -> usize {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len()
}

/// The brace that opens a block's body.
fn opening(tokens: &[String], at: usize) -> usize {
    (at..tokens.len())
        .find(|i| tokens[*i] == "{")
        .unwrap_or(tokens.len())
}

/// The inherent `impl` block that begins here; none for a trait's.
fn inherent(tokens: &[String], at: usize, module: usize) -> Option<Impl> {
    let open = opening(tokens, at);
    let head = &tokens[at + 1..open];
    let is_of_trait = head
        .iter()
        .zip(head.iter().skip(1))
        .any(|(word, next)| word == "for" && next != "<");
    if is_of_trait {
        return None;
    }
    let begins = if head.first().is_some_and(|t| t == "<") {
        after_angles(head)
    } else {
        0
    };
    let path = head[begins..]
        .iter()
        .take_while(|t| t.chars().all(is_word) || *t == "::")
        .filter(|t| *t != "::")
        .take_while(|t| *t != "where")
        .cloned()
        .collect::<Vec<String>>();
    let end = closing(tokens, open);
    let mut methods = Vec::new();
    let mut i = open + 1;
    while i < end {
        match tokens[i].as_str() {
            "fn" => methods.push(tokens[i + 1].clone()),
            "{" | "(" | "[" => i = closing(tokens, i),
            _ => {}
        }
        i += 1;
    }
    (!path.is_empty()).then_some(Impl {
        module,
        path,
        methods,
        span: (at, end),
    })
}

fn after_angles(head: &[String]) -> usize {
    let mut depth = 0_usize;
    for (i, token) in head.iter().enumerate() {
        match token.as_str() {
            "<" => depth += 1,
            ">" if i > 0 && head[i - 1] != "-" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    head.len()
}

/// The paths of a `use` tree with the names they bring in; a glob brings in none of its own.
fn leaves(tree: &[String], prefix: &[String], found: &mut Vec<(Vec<String>, Option<String>)>) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while at < tree.len() {
        match tree[at].as_str() {
            "::" => {}
            "{" => {
                let end = closing(tree, at);
                for part in parts(&tree[at + 1..end.min(tree.len())]) {
                    leaves(part, &path, found);
                }
                return;
            }
            "*" => {
                found.push((path, None));
                return;
            }
            "as" => {
                found.push((path, tree.get(at + 1).cloned()));
                return;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    if let Some(name) = path.last().cloned() {
        found.push((path, Some(name)));
    }
}

/// A group's parts, between the commas of its own level.
fn parts(group: &[String]) -> Vec<&[String]> {
    let mut found = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < group.len() {
        match group[at].as_str() {
            "{" => at = closing(group, at),
            "," => {
                found.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if from < group.len() {
        found.push(&group[from..]);
    }
    found
}
