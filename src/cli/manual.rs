//! `manual-pages`: writes the manual pages into a directory, for building packages.
//!
//! Guarantees: one page for each command that `--help` shows, generated from the tables that parse
//! the command line. `agent-runtime(1)` comes from the settings table and lists the commands. The
//! same program writes the same bytes.

use super::{Failure, Outcome};
use crate::config::render::{self, roff};
use clap::{Args, Command};
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Arguments of `manual-pages`.
#[derive(Args)]
pub struct Arguments {
    /// The directory to write into; it must exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes every page.
///
/// # Errors
/// A file cannot be written.
pub fn write(arguments: &Arguments, command: Command) -> Outcome {
    // The page of `help` would repeat --help.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let pages = below(&command);
    for page in &pages {
        let text = page_of(page)?;
        file(&arguments.directory, &name(page), &text)?;
    }
    file(
        &arguments.directory,
        &name(&command),
        overview(&pages).as_bytes(),
    )
}

fn file(directory: &Path, name: &str, text: &[u8]) -> Outcome {
    let path = directory.join(format!("{name}.1"));
    std::fs::write(&path, text)
        .map_err(|error| Failure::new(format!("{}: {error}.", path.display())))
}

/// The commands below one that are shown, parents first.
fn below(command: &Command) -> Vec<&Command> {
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .flat_map(|sub| std::iter::once(sub).chain(below(sub)))
        .collect()
}

/// The page's name: agent-runtime-audit-verify.
fn name(command: &Command) -> String {
    let name = command.get_display_name();
    name.unwrap_or_else(|| command.get_name()).to_owned()
}

fn page_of(command: &Command) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    // The title is written here, because the library omits an empty date and shifts the other
    // fields.
    let title = roff(&name(command).to_uppercase());
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH {title} 1 \"\" \"agent\\-runtime {version}\" \"User Commands\"\n")
        .into_bytes();
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(examples(command).into_bytes());
    page.extend(b".SH SEE ALSO\n.BR agent\\-runtime (1)\n");
    Ok(page)
}

/// The text after the options: examples keep their lines, paragraphs are filled to the reader's
/// width.
fn examples(command: &Command) -> String {
    let Some(text) = command.get_after_help() else {
        return String::new();
    };
    let text = text.to_string();
    let text = text.strip_prefix("Examples:\n").unwrap_or(&text);
    let blocks = text.split("\n\n").map(|block| {
        let lines: Vec<String> = block.lines().map(roff).collect();
        let lines = lines.join("\n");
        match block.starts_with(' ') {
            true => format!(".nf\n{lines}\n.fi\n"),
            false => format!(".PP\n{lines}\n"),
        }
    });
    format!(".SH EXAMPLES\n{}", blocks.collect::<String>())
}

/// agent-runtime(1): the settings and the commands.
fn overview(pages: &[&Command]) -> String {
    let mut commands = String::from(".SH COMMANDS\n");
    for page in pages.iter().filter(|page| !page.has_subcommands()) {
        let about = page.get_about().map(ToString::to_string);
        commands.push_str(&format!(
            ".TP\n.BR {} (1)\n{}\n",
            roff(&name(page)),
            roff(&about.unwrap_or_default())
        ));
    }
    let settings = ".SH ENVIRONMENT\n";
    render::manual_page().replacen(settings, &format!("{commands}{settings}"), 1)
}
