//! The modules of the first view, in one file: forty small ones are a third more bytes, and as many requests.
//!
//! Guarantees: each module is evaluated once, after what it imports. Modules that are loaded later take from the file what is in
//! it, so that they share it.
//!
//! It knows the forms in which the console and the client write imports and exports, and refuses any other. Modules do not
//! import each other in a circle, and export nothing that changes (`export let`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The module that the page loads, which becomes the file. It begins what is shown, so it comes last.
const ENTRY: &str = "assets/app.js";
/// The page where most people arrive.
const FIRST_PAGE: &str = "assets/pages/runs.js";
const DEFAULT: &str = "default";

/// Puts the entry, the first page and everything that they import into one file. `modules` are sources by path, below
/// `/console/`.
pub(crate) fn bundle(modules: &mut BTreeMap<String, String>) -> Result<(), String> {
    let mut bundle = Bundle {
        modules,
        begun: Vec::new(),
        done: Vec::new(),
        externals: Vec::new(),
        code: String::new(),
    };
    bundle.add(FIRST_PAGE)?;
    bundle.add(ENTRY)?;
    let is_in_it = |path: &String| bundle.place(path).is_some();
    let later = bundle.modules.iter().filter(|(path, _)| !is_in_it(path));
    let later: BTreeMap<String, String> = later
        .map(|(path, source)| Ok((path.clone(), bundle.loaded_later(path, source)?)))
        .collect::<Result<_, String>>()?;
    let mut whole = String::new();
    for (index, name) in bundle.externals.iter().enumerate() {
        let _ = writeln!(whole, "import * as $e{index} from {name:?};");
    }
    whole.push_str("export const $m = [];\n");
    whole.push_str(&bundle.code);
    *modules = later;
    modules.insert(ENTRY.to_owned(), whole);
    Ok(())
}

struct Bundle<'a> {
    modules: &'a BTreeMap<String, String>,
    /// The modules whose imports are being added.
    begun: Vec<String>,
    /// The paths of the modules in the file, in the order of their evaluation. Each is a block that leaves what it exports in
    /// `$m`, at the module's place.
    done: Vec<String>,
    /// Modules from npm, which are files of their own.
    externals: Vec<String>,
    code: String,
}

impl Bundle<'_> {
    /// Adds a module after what it imports, unless it is there. Answers its place.
    fn add(&mut self, path: &str) -> Result<usize, String> {
        if let Some(index) = self.place(path) {
            return Ok(index);
        }
        if self.begun.iter().any(|begun| begun == path) {
            return Err(format!("{path} imports itself: {}", self.begun.join(", ")));
        }
        self.begun.push(path.to_owned());
        let source = self.modules.get(path);
        let source = source.ok_or_else(|| format!("the console has no module {path}"))?;
        // Each name, and what it is in the block.
        let mut exported = Vec::new();
        let mut body = String::new();
        for part in parts(path, source)? {
            match part {
                Part::Line(line) => {
                    body.push_str(&self.with_addresses(path, line));
                    body.push('\n');
                }
                Part::Declaration(declaration) => {
                    exported.push((
                        declaration.exported_as.to_owned(),
                        declaration.name.to_owned(),
                    ));
                    body.push_str(&self.with_addresses(path, declaration.code));
                    body.push('\n');
                }
                Part::List(statement) => {
                    body.push_str(&self.list(path, &statement, &mut exported)?);
                }
            }
        }
        self.begun.pop();
        let index = self.done.len();
        let all = exported.iter().map(|(name, is)| match name == is {
            true => name.clone(),
            false => format!("{name}: {is}"),
        });
        let all: Vec<String> = all.collect();
        let _ = writeln!(
            self.code,
            "{{\n{body}$m[{index}] = {{ {} }};\n}}",
            all.join(", ")
        );
        self.done.push(path.to_owned());
        Ok(index)
    }

    fn place(&self, path: &str) -> Option<usize> {
        self.done.iter().position(|done| done == path)
    }

    /// A module that is not in the file, with what it takes from there.
    fn loaded_later(&self, path: &str, source: &str) -> Result<String, String> {
        let mut code = String::new();
        let mut takes = false;
        for part in parts(path, source)? {
            match part {
                Part::Line(line) => code.push_str(&self.with_addresses(path, line)),
                Part::Declaration(declaration) => {
                    code.push_str(&self.with_addresses(path, declaration.line));
                }
                Part::List(statement) => {
                    let list = list_of(path, &statement)?;
                    let own = list.from.and_then(|name| resolved(path, name));
                    match own.and_then(|own| self.place(&own)) {
                        // It is evaluated in any case.
                        Some(_) if list.names.is_empty() => {}
                        Some(index) => {
                            takes = true;
                            let export = if list.is_import { "" } else { "export " };
                            let _ =
                                write!(code, "{export}const {{ {} }} = $m[{index}];", list.taken());
                        }
                        None => code.push_str(&statement),
                    }
                }
            }
            code.push('\n');
        }
        match takes {
            true => Ok(format!(
                "import {{ $m }} from \"/console/{ENTRY}\";\n{code}"
            )),
            false => Ok(code),
        }
    }

    /// An `import`, or an `export` of a list: the code in its place.
    fn list(
        &mut self,
        path: &str,
        statement: &str,
        exported: &mut Vec<(String, String)>,
    ) -> Result<String, String> {
        let list = list_of(path, statement)?;
        let from = match list.from {
            Some(name) => Some(self.named(path, name)?),
            None => None,
        };
        let names = list.names.iter();
        match from {
            Some(from) if list.is_import => {
                return Ok(match list.names.is_empty() {
                    true => String::new(),
                    false => format!("const {{ {} }} = {from};\n", list.taken()),
                });
            }
            Some(from) => {
                exported
                    .extend(names.map(|(name, own)| ((*own).to_owned(), format!("{from}.{name}"))));
            }
            None => {
                exported.extend(names.map(|(name, own)| ((*own).to_owned(), (*name).to_owned())));
            }
        }
        Ok(String::new())
    }

    /// What a module's name stands for in the file.
    fn named(&mut self, path: &str, name: &str) -> Result<String, String> {
        if let Some(own) = resolved(path, name) {
            return Ok(format!("$m[{}]", self.add(&own)?));
        }
        let known = self.externals.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.externals.push(name.to_owned());
            self.externals.len() - 1
        });
        Ok(format!("$e{index}"))
    }

    /// A line in which what is loaded later is named by its address, since the line is no longer at that of its module. What
    /// is in the file is there.
    fn with_addresses(&self, path: &str, line: &str) -> String {
        const LOADS: &str = "import(\"";
        let (mut code, mut rest) = (String::new(), line);
        while let Some((before, after)) = rest.split_once(LOADS) {
            code.push_str(before);
            rest = after;
            let named = after.split_once("\")");
            let own = named.and_then(|(name, after)| Some((resolved(path, name)?, after)));
            let Some((own, after)) = own else {
                code.push_str(LOADS);
                continue;
            };
            rest = after;
            let _ = match self.place(&own) {
                Some(index) => write!(code, "Promise.resolve($m[{index}])"),
                None => write!(code, "import(\"/console/{own}\")"),
            };
        }
        code + rest
    }
}

/// What a module consists of.
enum Part<'a> {
    Declaration(Declaration<'a>),
    /// An `import`, or an `export` of a list, in one line.
    List(String),
    /// Any other line.
    Line(&'a str),
}

fn parts<'a>(path: &str, source: &'a str) -> Result<Vec<Part<'a>>, String> {
    let mut parts = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let part = if !line.starts_with("import ") && !line.starts_with("export ") {
            Part::Line(line)
        } else if let Some(declaration) = Declaration::of(line) {
            Part::Declaration(declaration)
        } else {
            let mut statement = line.to_owned();
            // A list of names may take several lines.
            while !statement.ends_with(';') {
                let next = lines.next();
                let next = next.ok_or_else(|| format!("{path}: {line}: it has no end"))?;
                statement = format!("{statement} {next}");
            }
            Part::List(statement)
        };
        parts.push(part);
    }
    Ok(parts)
}

fn list_of<'a>(path: &str, statement: &'a str) -> Result<List<'a>, String> {
    List::of(statement)
        .ok_or_else(|| format!("{path}: {statement}: no form that build/bundle.rs knows"))
}

/// `export const name = …`, `export default function name(…) …` and the like.
struct Declaration<'a> {
    line: &'a str,
    exported_as: &'a str,
    name: &'a str,
    code: &'a str,
}

impl<'a> Declaration<'a> {
    fn of(line: &'a str) -> Option<Self> {
        const FORMS: [&str; 6] = [
            "async function* ",
            "async function ",
            "function* ",
            "function ",
            "class ",
            "const ",
        ];
        let exported = line.strip_prefix("export ")?;
        let default = exported.strip_prefix("default ");
        let code = default.unwrap_or(exported);
        let rest = FORMS.iter().find_map(|form| code.strip_prefix(form))?;
        let is_of_name = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
        let name = &rest[..rest.find(|letter| !is_of_name(letter))?];
        (!name.is_empty()).then_some(Self {
            line,
            exported_as: if default.is_some() { DEFAULT } else { name },
            name,
            code,
        })
    }
}

/// `import "x";`, `import { a, b as c } from "x";`, `export { a, b as c };`, `export { a, b as c } from "x";`.
struct List<'a> {
    is_import: bool,
    /// Each name where it comes from, and where it goes to.
    names: Vec<(&'a str, &'a str)>,
    from: Option<&'a str>,
}

impl<'a> List<'a> {
    fn of(statement: &'a str) -> Option<Self> {
        let (word, rest) = statement.strip_suffix(';')?.split_once(' ')?;
        let is_import = word == "import";
        let (names, from) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}')?,
            None => ("", rest),
        };
        let from = from.strip_prefix(" from ").unwrap_or(from);
        let from = match from {
            "" => None,
            quoted => Some(quoted.strip_prefix('"')?.strip_suffix('"')?),
        };
        let names = names.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        let names: Vec<_> = names
            .map(|name| name.split_once(" as ").unwrap_or((name, name)))
            .collect();
        let is_known = from.is_some() && is_import || !names.is_empty() && !is_import;
        is_known.then_some(Self {
            is_import,
            names,
            from,
        })
    }

    /// The names as a pattern that takes them out of an object.
    fn taken(&self) -> String {
        let names = self.names.iter().map(|(name, own)| match name == own {
            true => (*name).to_owned(),
            false => format!("{name}: {own}"),
        });
        names.collect::<Vec<String>>().join(", ")
    }
}

/// The path of a module of ours; none of one from npm.
fn resolved(path: &str, name: &str) -> Option<String> {
    if let Some(client) = name.strip_prefix("agent-runtime") {
        let file = client.strip_prefix('/').unwrap_or("index.js");
        return Some(format!("client/{file}"));
    }
    if !name.starts_with('.') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
