//! A row as a picture: how its figures grow, or both sides with their spread. SVG by hand, since it is a handful of lines
//! and rectangles; it follows the reader's dark or light, and says in words what it shows.

use super::row::{Growth, Row, Spread, rounded};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 52.0;
/// Ours first; told apart by dashes and marks as well as by colour.
const DASHES: [&str; 4] = ["", "7 4", "2 4", "9 3 2 3"];

const STYLE: &str = "<style>svg{--ink:#1f2328;--faint:#d0d7de;--c0:#0550ae;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df}\
@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--faint:#3d444d;--c0:#79c0ff;--c1:#ffa657;--c2:#7ee787;--c3:#d2a8ff}}\
text{font:13px system-ui,sans-serif;fill:var(--ink)}.grid{stroke:var(--faint)}</style>";

/// The row's picture, and what it shows in words.
pub(crate) fn plot(row: &Row) -> (String, String) {
    let said = match row.growth.first() {
        Some(growth) => format!("{} over {}: {}", growth.unit, growth.over, in_words(growth)),
        None => sides_in_words(row),
    };
    let body = row.growth.first().map_or_else(|| sides(row), lines);
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\
         {STYLE}{body}</svg>\n",
        escaped(&said)
    );
    (svg, said)
}

fn in_words(growth: &Growth) -> String {
    let line = |line: &super::row::Line| {
        let points = line
            .points
            .iter()
            .map(|(x, y)| format!("{} at {}", rounded(*y), count(*x)));
        format!("{} {}", line.label, points.collect::<Vec<_>>().join(", "))
    };
    growth.lines.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn sides_in_words(row: &Row) -> String {
    let side = |spread: &Spread| {
        format!(
            "{} {} ({} to {})",
            rounded(spread.median),
            row.unit,
            rounded(spread.least),
            rounded(spread.most)
        )
    };
    match &row.baseline {
        Some(baseline) => format!(
            "agent-runtime {}, beside {}",
            side(&row.ours),
            side(baseline)
        ),
        None => format!("agent-runtime {}", side(&row.ours)),
    }
}

/// A count as people write it.
fn count(x: f64) -> String {
    match x {
        x if x >= 1e6 => format!("{} M", x / 1e6),
        x if x >= 1e4 => format!("{} k", x / 1e3),
        x => format!("{x}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, said: &str) {
    let said = escaped(said);
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{said}</text>"
    );
}

/// The next round number at or above.
fn ceiling(most: f64) -> f64 {
    let power = 10_f64.powf(most.max(1e-9).log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|top| *top >= most)
        .unwrap_or(most)
}

/// Grid lines from nothing to `top`, with their figures.
fn grid(out: &mut String, top: f64, unit: &str) {
    for quarter in 0..=4 {
        let part = f64::from(quarter) / 4.0;
        let y = HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
        let end = WIDTH - RIGHT;
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
        text(out, LEFT - 8.0, y + 4.0, "end", &rounded(top * part));
    }
    text(out, LEFT - 8.0, TOP - 16.0, "end", unit);
}

fn lines(growth: &Growth) -> String {
    let points = || growth.lines.iter().flat_map(|line| &line.points);
    let top = ceiling(points().map(|point| point.1).fold(0.0, f64::max));
    let mut places: Vec<f64> = points().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    // Each measured place is as far from the next: they are powers of a number, or few.
    let at = |x: f64| {
        let place = places.iter().position(|place| *place >= x).unwrap_or(0);
        let step = (WIDTH - LEFT - RIGHT - 40.0) / (places.len().max(2) - 1) as f64;
        LEFT + 20.0 + place as f64 * step
    };
    let up = |y: f64| HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM);
    let mut out = String::new();
    grid(&mut out, top, &growth.unit);
    for place in &places {
        text(
            &mut out,
            at(*place),
            HEIGHT - BOTTOM + 20.0,
            "middle",
            &count(*place),
        );
    }
    text(&mut out, WIDTH / 2.0, HEIGHT - 10.0, "middle", &growth.over);
    for (number, line) in growth.lines.iter().enumerate() {
        let dashes = DASHES
            .get(number % DASHES.len())
            .copied()
            .unwrap_or_default();
        let colour = format!("var(--c{})", number % DASHES.len());
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", at(*x), up(*y)))
            .collect();
        let _ = write!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\" points=\"{}\"/>",
            path.join(" ")
        );
        for (x, y) in &line.points {
            let _ = write!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
                at(*x),
                up(*y)
            );
        }
        legend(&mut out, number, &line.label, &colour, dashes);
    }
    out
}

fn legend(out: &mut String, number: usize, label: &str, colour: &str, dashes: &str) {
    let x = LEFT + 20.0 + 180.0 * number as f64;
    let _ = write!(
        out,
        "<line x1=\"{x}\" x2=\"{}\" y1=\"18\" y2=\"18\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>",
        x + 26.0
    );
    text(out, x + 32.0, 22.0, "start", label);
}

fn sides(row: &Row) -> String {
    let mut bars = vec![("agent-runtime", row.ours)];
    if let Some(baseline) = row.baseline {
        bars.push(("baseline", baseline));
    }
    let top = ceiling(bars.iter().map(|bar| bar.1.most).fold(0.0, f64::max));
    let up = |y: f64| HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM);
    let mut out = String::new();
    grid(&mut out, top, &row.unit);
    for (number, (label, spread)) in bars.iter().enumerate() {
        let middle = LEFT + 140.0 + 240.0 * number as f64;
        let (high, low) = (up(spread.median), HEIGHT - BOTTOM);
        let _ = write!(
            out,
            "<rect x=\"{:.1}\" y=\"{high:.1}\" width=\"120\" height=\"{:.1}\" fill=\"var(--c{number})\" opacity=\"0.75\"/>\
             <line x1=\"{middle:.1}\" x2=\"{middle:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--ink)\" stroke-width=\"2\"/>",
            middle - 60.0,
            low - high,
            up(spread.least),
            up(spread.most)
        );
        text(&mut out, middle, HEIGHT - BOTTOM + 20.0, "middle", label);
    }
    out
}
