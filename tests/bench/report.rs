//! The page of figures, `docs/benchmarks.md`: made from the rows that were measured, one JSON file and one picture each in
//! `docs/benchmarks`. What its text says beside the figures stands in `page.md` here.

use super::Outcome;
use super::machine;
use super::peer::source;
use super::plot::plot;
use super::row::{Growth, Row, Spread, rounded};
use std::fmt::Write;
use std::fs;

/// The page's opening; the rows follow.
const OPENING: &str = include_str!("page.md");

/// Keeps what was measured.
pub(crate) fn keep(row: &Row) -> Outcome {
    let directory = source("docs/benchmarks");
    fs::create_dir_all(&directory)?;
    let mut text = serde_json::to_string_pretty(row)?;
    text.push('\n');
    fs::write(directory.join(format!("{}.json", row.name)), text)?;
    Ok(())
}

/// Makes the page and its pictures from all rows that were kept.
pub(crate) fn write() -> Outcome {
    let mut rows = kept()?;
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    let mut page = OPENING.replace("MACHINE", &machine::description());
    page.push_str(
        "\n| row | figure | spread | target | | measured on |\n|---|---|---|---|---|---|\n",
    );
    for row in &rows {
        let unit = row.figure_unit();
        let _ = writeln!(
            page,
            "| [{name}](#{name}) | {}{unit} | {} to {} | {}{unit} | {} | {} |",
            rounded(row.figure.median),
            rounded(row.figure.least),
            rounded(row.figure.most),
            row.target,
            verdict(row),
            row.measured_on,
            name = row.name,
        );
    }
    for row in &rows {
        section(&mut page, row)?;
    }
    fs::write(source("docs/benchmarks.md"), page)?;
    Ok(())
}

fn kept() -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(source("docs/benchmarks"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            rows.push(serde_json::from_str(&fs::read_to_string(path)?)?);
        }
    }
    Ok(rows)
}

fn verdict(row: &Row) -> &'static str {
    if row.is_met() { "met" } else { "**missed**" }
}

fn section(page: &mut String, row: &Row) -> Outcome {
    let (svg, said) = plot(row);
    fs::write(source(&format!("docs/benchmarks/{}.svg", row.name)), svg)?;
    let side = |spread: &Spread| {
        format!(
            "{} {} ({} to {})",
            rounded(spread.median),
            row.unit,
            rounded(spread.least),
            rounded(spread.most)
        )
    };
    let _ = write!(page, "\n## {}\n\n", row.name);
    let _ = writeln!(page, "- Done: {}: {}.", row.work, side(&row.ours));
    match &row.baseline {
        Some(baseline) => {
            let _ = writeln!(page, "- Beside: {}: {}.", row.beside, side(baseline));
        }
        None => {
            let _ = writeln!(page, "- Bound: {}.", row.beside);
        }
    }
    if !row.versions.is_empty() {
        let _ = writeln!(page, "- Versions: {}.", row.versions.join(", "));
    }
    let unit = row.figure_unit();
    let _ = writeln!(
        page,
        "- Figure: {}{unit} ({} to {} over {} rounds), target {}{unit}: {}.",
        rounded(row.figure.median),
        rounded(row.figure.least),
        rounded(row.figure.most),
        row.rounds,
        row.target,
        verdict(row)
    );
    let _ = writeln!(
        page,
        "- The machine: {:.0} % of the processors busy meanwhile, others used at most {:.0} %.{}",
        row.busy * 100.0,
        row.others * 100.0,
        row.limit
            .as_ref()
            .map_or_else(String::new, |limit| format!(" {limit}"))
    );
    let _ = writeln!(page, "- What it does not say: {}", row.says_not);
    let _ = writeln!(
        page,
        "\n![{}](benchmarks/{}.svg)",
        said.replace(['[', ']'], ""),
        row.name
    );
    for growth in row.growth.iter().skip(1) {
        further(page, growth);
    }
    Ok(())
}

/// Growth that the row's picture does not show.
fn further(page: &mut String, growth: &Growth) {
    let _ = writeln!(page, "\n{} over {}:\n", growth.unit, growth.over);
    for line in &growth.lines {
        let points = line
            .points
            .iter()
            .map(|(x, y)| format!("{} at {x}", rounded(*y)));
        let points = points.collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "- {}: {points}.", line.label);
    }
}
