//! Points in a plane, and the front of those that no other point beats.

use crate::canvas::{Anchor, Area, Canvas, Colour, Font, Place, Stroke, Svg};
use crate::chart::{BOLD, FINE, SMALL};
use crate::document::Drawing;
use crate::{ticks, unit};

/// Size of the picture and room for its marks and names, pixels.
const SIZE: (f64, f64) = (500.0, 350.0);
const LEFT: f64 = 70.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 46.0;
const MARGIN: f64 = 14.0;
/// Radius of a point, pixels.
const DOT: f64 = 3.0;
const FRONT_DOT: f64 = 5.0;
/// Colours of the points, and of those on the front.
const REST: Colour = Colour::Line(0);
const FRONT: Colour = Colour::Line(1);

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
    /// As a picture; the front's points are joined. Axes are logarithmic where the values differ by more than a factor of 20.
    pub fn drawing(&self, name: String, title: String, caption: String) -> Drawing {
        let mut svg = Svg::new(SIZE);
        self.draw(&mut svg, &title);
        Drawing { svg: svg.file(), inline: svg.inline(), name, title, caption }
    }

    fn draw(&self, svg: &mut Svg, title: &str) {
        let area =
            Area { left: LEFT, top: TOP, width: SIZE.0 - LEFT - MARGIN, height: SIZE.1 - TOP - BOTTOM };
        let x = Scale::of(self.dots.iter().map(|dot| dot.x), area.left, area.right());
        let y = Scale::of(self.dots.iter().map(|dot| dot.y), area.bottom(), area.top);
        svg.text((MARGIN, 14.0), Anchor::Start, BOLD, Colour::Ink, title);
        svg.text((MARGIN, 34.0), Anchor::Start, FINE, Colour::Soft, &self.y);
        svg.text((SIZE.0 - MARGIN, SIZE.1 - 12.0), Anchor::End, FINE, Colour::Soft, &self.x);
        for (place, text) in x.marks() {
            svg.line((place, area.top), (place, area.bottom()), Colour::Rule);
            svg.text((place, area.bottom() + SMALL), Anchor::Middle, FINE, Colour::Ink, &text);
        }
        for (place, text) in y.marks() {
            svg.line((area.left, place), (area.right(), place), Colour::Rule);
            svg.text(
                (area.left - 6.0, place),
                Anchor::End,
                Font { size: SMALL, bold: false },
                Colour::Ink,
                &text,
            );
        }
        let place = |dot: &Dot| (x.place(dot.x), y.place(dot.y));
        let mut joined: Vec<Place> = self.dots.iter().filter(|dot| dot.front).map(place).collect();
        joined.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        if joined.len() > 1 {
            svg.path(&joined, Stroke::Solid(1.5), FRONT);
        }
        let (behind, before): (Vec<&Dot>, Vec<_>) = self.dots.iter().partition(|dot| !dot.front);
        for dot in behind.into_iter().chain(before) {
            let (colour, radius) = if dot.front { (FRONT, FRONT_DOT) } else { (REST, DOT) };
            let told = format!(
                "{}: {} {}, {} {}",
                dot.label,
                self.x,
                unit::short(dot.x),
                self.y,
                unit::short(dot.y)
            );
            svg.begin_titled(&told);
            svg.dot(place(dot), radius, colour);
            svg.end();
        }
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
        let marks = if self.log { ticks::logarithmic(range, 6.0) } else { ticks::linear(range, 6.0) };
        let value = |mark: f64| if self.log { 10f64.powf(mark) } else { mark };
        marks.into_iter().map(|mark| (self.place(value(mark)), unit::short(value(mark)))).collect()
    }
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
        let svg = scatter.drawing(String::new(), String::new(), String::new()).inline;
        assert_eq!(svg.matches("<circle").count(), 3);
        let path = svg.split("l c1\" stroke-width=\"1.5\" d=\"M").nth(1).expect("a front");
        let path = &path[..path.find('"').expect("its end")];
        let xs: Vec<f64> = path.split('L').filter_map(|p| p.split(' ').next()?.parse().ok()).collect();
        assert!(xs.len() == 2 && xs[0] < xs[1], "{path}");
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn one_point_is_a_picture_too() {
        let dot = Dot { x: 5.0, y: 0.0, label: String::new(), front: true };
        let scatter = Scatter { x: String::new(), y: String::new(), dots: vec![dot] };
        let svg = scatter.drawing(String::new(), String::new(), String::new()).svg;
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
