//! Points in a plane, and the front of those that no other point beats.

use std::fmt::Write as _;

use plotters::style::RGBColor;

use crate::chart::{COLOURS, INK, PAPER, RULE};
use crate::{ticks, unit};

/// Size of the picture and room for its marks and names, pixels.
const SIZE: (f64, f64) = (500.0, 330.0);
const LEFT: f64 = 78.0;
const BOTTOM: f64 = 46.0;
const MARGIN: f64 = 14.0;
/// Radius of a point, pixels.
const DOT: f64 = 3.0;
const FRONT_DOT: f64 = 5.0;

/// A picture of points.
pub struct Scatter {
    /// Names of the axes, with units.
    pub x: String,
    /// The other's.
    pub y: String,
    /// The points.
    pub dots: Vec<Dot>,
}

/// A point.
pub struct Dot {
    /// Where it lies.
    pub x: f64,
    /// Where it lies.
    pub y: f64,
    /// What it is.
    pub label: String,
    /// No other point beats it.
    pub front: bool,
}

impl Scatter {
    /// As SVG; the front's points are joined. Axes are logarithmic where the values differ by more than a factor of 20.
    pub fn svg(&self) -> String {
        let x = Scale::of(self.dots.iter().map(|dot| dot.x), LEFT, SIZE.0 - MARGIN);
        let y = Scale::of(self.dots.iter().map(|dot| dot.y), SIZE.1 - BOTTOM, MARGIN);
        let (ink, rule, front, rest) = (hex(INK), hex(RULE), hex(COLOURS[1]), hex(COLOURS[0]));
        let mut out = format!(
            "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"14\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"{2}\"/>\n",
            SIZE.0,
            SIZE.1,
            hex(PAPER)
        );
        for (place, text) in x.marks() {
            let _ = writeln!(
                out,
                "<path d=\"M{place:.1} {MARGIN}V{}\" stroke=\"{rule}\"/><text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"{ink}\">{text}</text>",
                SIZE.1 - BOTTOM,
                SIZE.1 - BOTTOM + 17.0
            );
        }
        for (place, text) in y.marks() {
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {place:.1}H{}\" stroke=\"{rule}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{ink}\">{text}</text>",
                SIZE.0 - MARGIN,
                LEFT - 6.0,
                place + 5.0
            );
        }
        let middle = |scale: &Scale| (scale.start + scale.end) / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{ink}\">{}</text>",
            middle(&x),
            SIZE.1 - 8.0,
            escaped(&self.x)
        );
        let _ = writeln!(
            out,
            "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\" fill=\"{ink}\">{}</text>",
            middle(&y),
            escaped(&self.y)
        );
        let mut joined: Vec<(f64, f64)> =
            self.dots.iter().filter(|dot| dot.front).map(|dot| (x.place(dot.x), y.place(dot.y))).collect();
        joined.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let path: Vec<String> = joined.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if path.len() > 1 {
            let _ = writeln!(out, "<path d=\"M{}\" fill=\"none\" stroke=\"{front}\"/>", path.join("L"));
        }
        let (behind, before): (Vec<&Dot>, Vec<_>) = self.dots.iter().partition(|dot| !dot.front);
        for dot in behind.into_iter().chain(before) {
            let (colour, radius) = if dot.front { (&front, FRONT_DOT) } else { (&rest, DOT) };
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" fill=\"{colour}\"><title>{}</title></circle>",
                x.place(dot.x),
                y.place(dot.y),
                escaped(&dot.label)
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

/// From values to pixels.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64> + Clone, start: f64, end: f64) -> Scale {
        let min = values.clone().fold(f64::INFINITY, f64::min);
        let max = values.fold(f64::NEG_INFINITY, f64::max);
        let (min, max) = if min <= max { (min, max) } else { (0.0, 1.0) };
        let log = min > 0.0 && max / min > 20.0;
        let (low, high) = if log { (min.log10(), max.log10()) } else { (min, max) };
        let room = if high > low { (high - low) * 0.05 } else { high.abs().max(1.0) * 0.05 };
        Scale { log, low: low - room, high: high + room, start, end }
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)
    }

    /// Where marks are, and their texts.
    fn marks(&self) -> Vec<(f64, String)> {
        let range = (self.low, self.high);
        let marks = if self.log { ticks::logarithmic(range) } else { ticks::linear(range) };
        let value = |mark: f64| if self.log { 10f64.powf(mark) } else { mark };
        marks.into_iter().map(|mark| (self.place(value(mark)), unit::short(value(mark)))).collect()
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_joined_from_left_to_right_and_names_are_escaped() {
        let dot = |x, y, front| Dot { x, y, label: "a<b".into(), front };
        let scatter = Scatter {
            x: "x".into(),
            y: "y".into(),
            dots: vec![dot(3.0, 3.0, true), dot(1.0, 1.0, true), dot(2.0, 1.0, false)],
        };
        let svg = scatter.svg();
        assert_eq!(svg.matches("<circle").count(), 3);
        let path =
            svg.split("fill=\"none\"").next().and_then(|text| text.rsplit("d=\"M").next()).expect("a front");
        let xs: Vec<f64> = path.split('L').filter_map(|p| p.split(' ').next()?.parse().ok()).collect();
        assert!(xs.len() == 2 && xs[0] < xs[1], "{path}");
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn one_point_is_a_picture_too() {
        let dot = Dot { x: 5.0, y: 0.0, label: String::new(), front: true };
        let svg = Scatter { x: String::new(), y: String::new(), dots: vec![dot] }.svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
