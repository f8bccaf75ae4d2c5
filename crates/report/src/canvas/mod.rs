//! What figures are drawn on: an SVG or a bitmap, by the same few strokes.

mod bitmap;
mod svg;

use std::sync::Once;

use plotters::style::{FontStyle, IntoFont, RGBColor};

pub(crate) use bitmap::Bitmap;
pub(crate) use svg::{Svg, css};

/// Colours of the schedulers on white paper (at least 4.5:1), in the order of the columns; then that of what is due.
pub(crate) const COLOURS: [RGBColor; 9] = [
    RGBColor(0x00, 0x5f, 0xa8),
    RGBColor(0xb8, 0x46, 0x00),
    RGBColor(0x00, 0x73, 0x50),
    RGBColor(0x9c, 0x3b, 0x7f),
    RGBColor(0x56, 0x50, 0xc8),
    RGBColor(0x7a, 0x5c, 0x00),
    RGBColor(0xb0, 0x20, 0x30),
    RGBColor(0x2f, 0x6f, 0x7f),
    RGBColor(0x50, 0x50, 0x50),
];
/// The same on a dark screen.
pub(crate) const ON_DARK: [RGBColor; 9] = [
    RGBColor(0x6c, 0xb6, 0xff),
    RGBColor(0xff, 0x9b, 0x5e),
    RGBColor(0x4f, 0xd1, 0xa5),
    RGBColor(0xe9, 0x96, 0xd2),
    RGBColor(0xb0, 0xac, 0xff),
    RGBColor(0xdf, 0xc2, 0x5c),
    RGBColor(0xff, 0x8a, 0x8f),
    RGBColor(0x8f, 0xd3, 0xe0),
    RGBColor(0xb8, 0xb8, 0xb8),
];
/// Colour of what is due: no scheduler's.
pub(crate) const DUE: usize = COLOURS.len() - 1;
const INK: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);
const SOFT: RGBColor = RGBColor(0x55, 0x55, 0x55);
const RULE: RGBColor = RGBColor(0xd8, 0xd8, 0xd8);
const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);

/// A dash and the gap behind it, pixels.
const DASH: (f64, f64) = (6.0, 4.0);

/// What something is drawn in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colour {
    Ink,
    Soft,
    Rule,
    /// One of [`COLOURS`].
    Line(usize),
}

impl Colour {
    /// Of a scheduler's column; there are more of these than colours.
    pub(crate) const fn of_column(column: usize) -> Colour {
        Colour::Line(column % DUE)
    }

    const fn on_paper(self) -> RGBColor {
        match self {
            Colour::Ink => INK,
            Colour::Soft => SOFT,
            Colour::Rule => RULE,
            Colour::Line(at) => COLOURS[at % COLOURS.len()],
        }
    }
}

/// How a path is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Stroke {
    /// So many pixels wide.
    Solid(f64),
    Dashed(f64),
}

/// Where a text stands beside its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A text's size in pixels, and whether it is bold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Font {
    pub size: f64,
    pub bold: bool,
}

/// A place, pixels from the upper left corner.
pub(crate) type Place = (f64, f64);

/// A rectangle, pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// What a page's script needs to know of a line to tell its values.
pub(crate) struct Series<'a> {
    pub name: &'a str,
    /// At each stop of the chart; empty where the line has none.
    pub values: &'a [String],
    /// Position of the scheduler's column, so that all figures of a page show or hide it together.
    pub column: usize,
    /// Place of the value at each stop, pixels, for the mark.
    pub places: Vec<Option<Place>>,
}

/// What a figure is drawn on. Coordinates are pixels from the upper left corner.
pub(crate) trait Canvas {
    fn path(&mut self, points: &[Place], stroke: Stroke, colour: Colour);
    /// A polygon; `faint`: what is behind it is seen.
    fn fill(&mut self, points: &[Place], colour: Colour, faint: bool);
    fn dot(&mut self, at: Place, radius: f64, colour: Colour);
    fn text(&mut self, at: Place, anchor: Anchor, font: Font, colour: Colour, text: &str);
    /// What follows belongs to a line, until [`Canvas::end`].
    fn begin(&mut self, _series: &Series<'_>) {}
    /// What follows is the entry of a column in the legend, until [`Canvas::end`].
    fn begin_key(&mut self, _column: usize, _name: &str) {}
    fn end(&mut self) {}

    fn bar(&mut self, area: Area, colour: Colour) {
        let (right, bottom) = (area.right(), area.bottom());
        let corners = [(area.left, area.top), (right, area.top), (right, bottom), (area.left, bottom)];
        self.fill(&corners, colour, false);
    }

    fn line(&mut self, from: Place, to: Place, colour: Colour) {
        self.path(&[from, to], Stroke::Solid(1.0), colour);
    }
}

/// The library's size of a font is from the highest ascent to the lowest descent; ours are ems, as SVG's are. This is the one over
/// the other of our font.
const EM: f64 = 1.164;

/// Width of a text, pixels: in the font of the bitmaps, which is wider than most browsers'.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    load_font();
    // Measured large: the library rounds to whole pixels.
    const MEASURED: f64 = 100.0;
    let extent = ("sans-serif", MEASURED).into_font().box_size(text);
    // Without a measure, a guess that is rather too wide.
    extent.map_or(size * text.chars().count() as f64, |(width, _)| f64::from(width) * EM * size / MEASURED)
}

/// As much of a text as has room.
pub(crate) fn shortened(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let fits = |end: &usize| text_width(&text[..*end], size) + text_width(" …", size) <= width;
    let ends = text.char_indices().map(|(at, _)| at);
    let end = ends.take_while(fits).last().unwrap_or(0);
    format!("{} …", text[..end].trim_end())
}

/// A text in lines of at most `width` pixels, broken at blanks; a longer word has a line of its own.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Have the drawing library use our font as `sans-serif`: it is part of the program, so that text has the same extent on
/// every machine.
pub fn load_font() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let font = include_bytes!("../../font/DejaVuSans-latin.ttf");
        // It fails only for a damaged font, which the tests would see.
        let _ = plotters::style::register_font("sans-serif", FontStyle::Normal, font);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_measured_with_our_font() {
        assert!(text_width("mmmm", 14.0) > text_width("iiii", 14.0));
    }

    #[test]
    fn long_texts_are_cut_or_broken_to_their_width() {
        let long = "none = mq-deadline = kyber = fl-deadline";
        assert!(text_width(&shortened(long, 14.0, 100.0), 14.0) <= 100.0);
        let lines = wrapped(long, 14.0, 120.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| text_width(line, 14.0) <= 120.0), "{lines:?}");
        assert_eq!(lines.join(" "), long);
    }
}
