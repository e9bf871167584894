//! The plot of how cost grows: a panel for each thing that does, both scales
//! logarithmic, so that a level line is a cost that stays the same.

use std::fmt::Write;

use crate::growth::{Axis, Series};
use crate::report::time;

const PANEL: (f64, f64) = (420.0, 290.0);
/// Room in a panel for its labels: left, right, above, below.
const MARGIN: (f64, f64, f64, f64) = (60.0, 20.0, 30.0, 100.0);
/// To be told apart by those who see colours differently, on white and on black.
const COLOURS: [&str; 4] = ["#0072b2", "#56b4e9", "#d55e00", "#e69f00"];

/// The picture: two panels a row.
pub fn svg(axes: &[Axis]) -> String {
    let (width, height) = (2.0 * PANEL.0, axes.len().div_ceil(2) as f64 * PANEL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (number, axis) in axes.iter().enumerate() {
        let (x, y) = ((number % 2) as f64 * PANEL.0, (number / 2) as f64 * PANEL.1);
        svg += &format!("<g transform=\"translate({x} {y})\">\n{}</g>\n", panel(axis));
    }
    svg + "</svg>\n"
}

/// Where a value is drawn: from its decimal logarithm to a place in the panel.
struct Scale {
    /// Decimal logarithms of the ends.
    from: f64,
    to: f64,
    /// Places of the ends.
    first: f64,
    last: f64,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        let part = (value.log10() - self.from) / (self.to - self.from).max(1.0);
        self.first + part * (self.last - self.first)
    }
}

fn panel(axis: &Axis) -> String {
    let (left, right, above, below) = MARGIN;
    let all = || axis.series.iter().flat_map(|series| series.seconds.iter().copied());
    let least = all().fold(f64::INFINITY, f64::min).log10().floor();
    let most = all().fold(0.0, f64::max).log10().ceil();
    let sizes = || axis.sizes.iter().map(|size| *size as f64);
    let across = Scale {
        from: sizes().fold(f64::INFINITY, f64::min).log10(),
        to: sizes().fold(0.0, f64::max).log10(),
        first: left,
        last: PANEL.0 - right,
    };
    let up = Scale { from: least, to: most, first: PANEL.1 - below, last: above };
    let mut out =
        format!("<text x=\"{left}\" y=\"18\" font-size=\"13\">time by {}</text>\n", axis.name);
    grid(&mut out, axis, &across, &up);
    for (number, (series, colour)) in axis.series.iter().zip(COLOURS).enumerate() {
        line(&mut out, axis, series, colour, &across, &up);
        legend(&mut out, series.name, colour, number);
    }
    out
}

/// A line across for each power of ten of the time, a mark below for each size.
fn grid(out: &mut String, axis: &Axis, across: &Scale, up: &Scale) {
    let mut power = up.from;
    while power <= up.to {
        let (value, x, end) = (10.0_f64.powf(power), across.first, across.last);
        let y = up.place(value);
        // A string takes every write.
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {y:.1}H{end:.1}\" stroke=\"#ccc\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            x - 5.0,
            y + 4.0,
            time(value),
        );
        power += 1.0;
    }
    for size in &axis.sizes {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            across.place(*size as f64),
            up.first + 16.0,
            short(*size),
        );
    }
    let (middle, y) = ((across.first + across.last) / 2.0, up.first + 32.0);
    let _ = writeln!(
        out,
        "<text x=\"{middle:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
        axis.name
    );
}

fn line(out: &mut String, axis: &Axis, series: &Series, colour: &str, across: &Scale, up: &Scale) {
    let points = axis.sizes.iter().zip(&series.seconds);
    let points: Vec<(f64, f64)> =
        points.map(|(size, time)| (across.place(*size as f64), up.place(*time))).collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let _ = writeln!(
        out,
        "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.join("L")
    );
    for (x, y) in points {
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }
}

/// Below the panel, two names a row.
fn legend(out: &mut String, name: &str, colour: &str, number: usize) {
    let x = MARGIN.0 + (number % 2) as f64 * 170.0;
    let y = PANEL.1 - MARGIN.3 + 54.0 + (number / 2) as f64 * 18.0;
    let _ = writeln!(
        out,
        "<path d=\"M{x:.1} {:.1}h18\" stroke=\"{colour}\" stroke-width=\"2\"/>\
         <text x=\"{:.1}\" y=\"{y:.1}\">{name}</text>",
        y - 4.0,
        x + 24.0,
    );
}

/// 1000 as 1 k, 1048576 as 1 Mi.
fn short(size: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1_000_000, "M"), (1 << 20, "Mi"), (1000, "k"), (1024, "Ki")];
    let unit = UNITS.iter().find(|(unit, _)| size >= *unit && size.is_multiple_of(*unit));
    unit.map_or(size.to_string(), |(unit, name)| format!("{} {name}", size / unit))
}
