//! The files of the console, as `src/http/console.rs` serves them: ours, the TypeScript client's, and those from npm. The
//! modules of the first view are one file (`bundle.rs`), its styles another one, and all other styles a third.
//!
//! Guarantees: a file from npm has the digest that `static/console/parts.txt` names, or the build fails. The digest of the
//! import map in the page's policy is that of the page that is served. The same files make the same build.
//!
//! Comments and indentation, a third of what is sent, stay in the source; in that of diff, too, which comes from npm with them.
//!
//! Those from npm are in `static/console/node_modules`. Without them a release build fails, and any other one has a page in
//! place of the console that says what to run.

use crate::{bundle, directory, read, write};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use zopfli::{Format, Options};

/// The package whose files are not made small by who publishes it, and have no notice in them.
const WITH_COMMENTS: &str = "diff/";

const SETUP: &str = "tests/setup/console files";

/// The page where the files from npm are missing.
const MISSING: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>agent-runtime</title>\n\
    <h1>This build has no console</h1>\n<p>The files that it takes from npm were missing. Run \
    <code>tests/setup/console files</code>, and build again.</p>\n";

/// A file that is served, below `/console/`.
struct File {
    path: String,
    content: Vec<u8>,
}

pub(crate) fn embed() -> Result<(), String> {
    let (page, mut files) = page_and_files()?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let policy = policy(&page);
    let page = File {
        path: String::new(),
        content: page.into_bytes(),
    };
    let out = directory("OUT_DIR")?;
    let folder = out.join("console");
    std::fs::create_dir_all(&folder).map_err(|cause| format!("{}: {cause}", folder.display()))?;
    let mut code = format!(
        "/// The policy of the page.\n\
         pub const POLICY: &str = {policy:?};\n\
         /// Changes with any of the files.\n\
         pub const BUILD: &str = {:?};\n\
         static PAGE: File = {};\n\
         static FILES: [(&str, File); {}] = [\n",
        build(&page, &files),
        embedded(&folder, "page", &page)?,
        files.len(),
    );
    for (index, file) in files.iter().enumerate() {
        let embedded = embedded(&folder, &index.to_string(), file)?;
        let _ = writeln!(code, "    ({:?}, {embedded}),", file.path);
    }
    code.push_str("];\n");
    write(&out.join("console.rs"), code.as_bytes())
}

/// The page, and every other file.
fn page_and_files() -> Result<(String, Vec<File>), String> {
    let package = directory("CARGO_MANIFEST_DIR")?;
    let console = package.join("static/console");
    let mut page = text(read_watched(&console.join("index.html"))?)?;
    let mut files = Vec::new();
    for (folder, prefix) in [
        ("static/console", "assets"),
        ("static/console/components", "assets/components"),
        ("static/console/pages", "assets/pages"),
        ("static/console/style", "assets/style"),
        ("clients/typescript/src", "client"),
    ] {
        take(&package.join(folder), prefix, &mut files)?;
    }
    if let Err(fault) = take_parts(&console, &mut files) {
        if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
            return Err(fault);
        }
        println!("cargo::warning={fault}");
        return Ok((MISSING.to_owned(), Vec::new()));
    }
    let mut files = with_bundle(files)?;
    for (attribute, whole) in [
        ("href", "assets/style/first.css"),
        ("data-later", "assets/style/later.css"),
    ] {
        page = with_one_style(&page, attribute, whole, &mut files)?;
    }
    Ok((page, files))
}

/// The same with the modules of the first view in one file.
fn with_bundle(files: Vec<File>) -> Result<Vec<File>, String> {
    let is_ours = |file: &File| has_ending(&file.path, "js") && !file.path.starts_with("parts/");
    let (ours, mut others): (Vec<_>, Vec<_>) = files.into_iter().partition(is_ours);
    let mut modules = BTreeMap::new();
    for file in ours {
        modules.insert(file.path, text(file.content)?);
    }
    bundle::bundle(&mut modules)?;
    others.extend(modules.into_iter().map(|(path, source)| File {
        path,
        content: source.into_bytes(),
    }));
    Ok(others)
}

/// The style sheets that the page names by this attribute, in their order, as one; the page then names that one.
fn with_one_style(
    page: &str,
    attribute: &str,
    whole: &str,
    files: &mut Vec<File>,
) -> Result<String, String> {
    let before = format!("<link rel=\"stylesheet\" {attribute}=\"/console/");
    let mut left = String::new();
    let mut style = Vec::new();
    for line in page.lines() {
        let named = line.strip_prefix(&before);
        let Some(path) = named.and_then(|rest| rest.strip_suffix("\">")) else {
            left.push_str(line);
            left.push('\n');
            continue;
        };
        if style.is_empty() {
            let _ = writeln!(left, "{before}{whole}\">");
        }
        let at = files.iter().position(|file| file.path == path);
        let at =
            at.ok_or_else(|| format!("static/console/index.html names {path}: no such file"))?;
        style.extend(files.swap_remove(at).content);
    }
    files.push(File {
        path: whole.to_owned(),
        content: style,
    });
    Ok(left)
}

/// Takes what browsers load of a folder.
fn take(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<(), String> {
    watch(folder);
    let entries = std::fs::read_dir(folder);
    for entry in entries.map_err(|cause| format!("{}: {cause}", folder.display()))? {
        let path = entry.map_err(|cause| cause.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let content = if has_ending(&name, "js") || has_ending(&name, "css") {
            bare(&text(read_watched(&path)?)?).into_bytes()
        } else if has_ending(&name, "svg") {
            read_watched(&path)?
        } else {
            continue;
        };
        files.push(File {
            path: format!("{prefix}/{name}"),
            content,
        });
    }
    Ok(())
}

/// The source without indentation, without comments that begin a line, and without types within one; a text over several
/// lines stays as it is. Every browser test runs what comes of it.
fn bare(source: &str) -> String {
    let (mut code, mut in_comment, mut in_text) = (String::new(), false, false);
    for line in source.lines() {
        let line = match in_text {
            true => line.to_owned(),
            false => without_comments(line.trim_start(), &mut in_comment),
        };
        if line.is_empty() && !in_text {
            continue;
        }
        let ticks = line.matches('`').count() - line.matches("\\`").count();
        in_text ^= ticks % 2 == 1;
        code.push_str(&line);
        code.push('\n');
    }
    code
}

/// What a line has beside its comments: those that it begins with, and types of what it says.
fn without_comments(mut line: &str, in_comment: &mut bool) -> String {
    while *in_comment || line.starts_with("/*") {
        let end = line.split_once("*/");
        *in_comment = end.is_none();
        let Some((_, after)) = end else {
            return String::new();
        };
        line = after.trim_start();
    }
    if line.starts_with("//") {
        return String::new();
    }
    let mut code = String::new();
    while let Some((before, comment)) = line.split_once("/** @") {
        let Some((_, after)) = comment.split_once("*/") else {
            break;
        };
        code.push_str(before);
        line = after.trim_start();
    }
    code + line
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|own| own == ending)
}

/// Takes the files from npm. Each line of the list is a digest and a path, as `sha256sum` writes it.
fn take_parts(console: &Path, files: &mut Vec<File>) -> Result<(), String> {
    let folder = console.join("node_modules");
    watch(&folder.join(".version"));
    for line in text(read_watched(&console.join("parts.txt"))?)?.lines() {
        let (digest, path) = line
            .split_once("  ")
            .ok_or_else(|| format!("static/console/parts.txt: {line:?} is no digest and path"))?;
        let content = read(&folder.join(path))
            .map_err(|fault| format!("the console needs {fault}. Run: {SETUP}"))?;
        if hex(&Sha256::digest(&content)) != digest {
            return Err(format!(
                "{path} is not the file that static/console/parts.txt names. Run: {SETUP}"
            ));
        }
        files.push(File {
            path: format!("parts/{path}"),
            content: match path.starts_with(WITH_COMMENTS) {
                true => bare(&text(content)?).into_bytes(),
                false => content,
            },
        });
    }
    Ok(())
}

/// The page's policy: nothing from elsewhere, no script in the page but its import map, no text that becomes a script.
fn policy(page: &str) -> String {
    let map = page
        .split_once("<script type=\"importmap\">")
        .and_then(|(_, rest)| rest.split_once("</script>"))
        .map(|(map, _)| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(map))));
    let map = map.unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'{map}; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_watched(file: &Path) -> Result<Vec<u8>, String> {
    watch(file);
    read(file)
}

/// The build is made again when it changes.
fn watch(file: &Path) {
    println!("cargo::rerun-if-changed={}", file.display());
}

fn text(content: Vec<u8>) -> Result<String, String> {
    String::from_utf8(content).map_err(|cause| cause.to_string())
}

/// Changes with any of the files.
fn build(page: &File, files: &[File]) -> String {
    let mut all = Sha256::new();
    for file in std::iter::once(page).chain(files) {
        all.update(file.path.as_bytes());
        all.update(Sha256::digest(&file.content));
    }
    hex(&all.finalize()[..4])
}

/// Writes the file, and it compressed, beside the code that includes both: that code. Packing is done once and may take its
/// time: it takes 2.6 % more off than what packs while it answers.
fn embedded(out: &Path, name: &str, file: &File) -> Result<String, String> {
    let mut packed = Vec::new();
    let content = file.content.as_slice();
    zopfli::compress(Options::default(), Format::Gzip, content, &mut packed)
        .map_err(|cause| format!("{}: {cause}", file.path))?;
    write(&out.join(name), &file.content)?;
    write(&out.join(format!("{name}.gz")), &packed)?;
    let ending = Path::new(&file.path).extension();
    let content_type = match ending.and_then(|ending| ending.to_str()) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    };
    let digest = hex(&Sha256::digest(&file.content)[..16]);
    Ok(format!(
        "File {{ content_type: {content_type:?}, plain: include_bytes!(\"console/{name}\"), \
         gzip: include_bytes!(\"console/{name}.gz\"), digest: {digest:?} }}"
    ))
}
