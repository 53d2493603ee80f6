//! The modules of the first view, in one file: forty small ones are a third more bytes, and as many requests.
//!
//! Guarantees: each module is evaluated once, after what it imports. A module that is in the file stays at its own address,
//! where it hands on what the file has, so that pages that are loaded later share it.
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
    let (done, code) = (bundle.done, bundle.code);
    let mut whole = String::new();
    for (index, name) in bundle.externals.iter().enumerate() {
        let _ = writeln!(whole, "import * as $e{index} from {name:?};");
    }
    whole.push_str("export const $m = [];\n");
    whole.push_str(&code);
    for (index, module) in done.into_iter().enumerate() {
        let hands_on = module.at_its_address(index);
        modules.insert(module.path, hands_on);
    }
    modules.insert(ENTRY.to_owned(), whole);
    Ok(())
}

/// A module in the file. There it is a block that leaves what it exports in `$m`, at the module's place.
struct Module {
    path: String,
    /// Each name, and what it is in the block.
    exported: Vec<(String, String)>,
}

impl Module {
    /// What stands at the address of the module itself.
    fn at_its_address(&self, index: usize) -> String {
        let (default, named): (Vec<_>, Vec<_>) = self
            .exported
            .iter()
            .map(|(name, _)| name.as_str())
            .partition(|name| *name == DEFAULT);
        let mut code = format!("import {{ $m }} from \"/console/{ENTRY}\";\n");
        if !named.is_empty() {
            let _ = writeln!(
                code,
                "export const {{ {} }} = $m[{index}];",
                named.join(", ")
            );
        }
        if !default.is_empty() {
            let _ = writeln!(code, "export default $m[{index}].default;");
        }
        code
    }
}

struct Bundle<'a> {
    modules: &'a BTreeMap<String, String>,
    /// The modules whose imports are being added.
    begun: Vec<String>,
    /// In the order of their evaluation.
    done: Vec<Module>,
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
        let mut exported = Vec::new();
        let mut body = String::new();
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if !line.starts_with("import ") && !line.starts_with("export ") {
                body.push_str(&self.with_addresses(path, line));
                body.push('\n');
            } else if let Some(declaration) = Declaration::of(line) {
                exported.push((
                    declaration.exported_as.to_owned(),
                    declaration.name.to_owned(),
                ));
                body.push_str(&self.with_addresses(path, declaration.code));
                body.push('\n');
            } else {
                let mut statement = line.to_owned();
                // A list of names may take several lines.
                while !statement.ends_with(';') {
                    let next = lines.next();
                    let next = next.ok_or_else(|| format!("{path}: {line}: it has no end"))?;
                    statement = format!("{statement} {next}");
                }
                body.push_str(&self.list(path, &statement, &mut exported)?);
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
        self.done.push(Module {
            path: path.to_owned(),
            exported,
        });
        Ok(index)
    }

    fn place(&self, path: &str) -> Option<usize> {
        self.done.iter().position(|done| done.path == path)
    }

    /// An `import`, or an `export` of a list: the code in its place.
    fn list(
        &mut self,
        path: &str,
        statement: &str,
        exported: &mut Vec<(String, String)>,
    ) -> Result<String, String> {
        let list = List::of(statement)
            .ok_or_else(|| format!("{path}: {statement}: no form that build/bundle.rs knows"))?;
        let from = match list.from {
            Some(name) => Some(self.named(path, name)?),
            None => None,
        };
        let names = list.names.iter();
        match from {
            Some(from) if list.is_import => {
                let names = names.map(|(name, own)| match name == own {
                    true => (*name).to_owned(),
                    false => format!("{name}: {own}"),
                });
                let names: Vec<String> = names.collect();
                if names.is_empty() {
                    return Ok(String::new());
                }
                return Ok(format!("const {{ {} }} = {from};\n", names.join(", ")));
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

/// `export const name = …`, `export default function name(…) …` and the like.
struct Declaration<'a> {
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
