//! SVG, short enough that a page of many figures is small. Colours are classes: a page has others for a dark screen.

use std::fmt::Write as _;

use plotters::style::RGBColor;

use super::{
    Anchor, COLOURS, Canvas, Colour, DASH, Font, INK, ON_DARK, PAPER, Place, RULE, SOFT, Series, Stroke,
};

/// An SVG figure.
pub(crate) struct Svg {
    size: (f64, f64),
    body: String,
    /// What a page's script needs, as attributes of the root.
    attributes: String,
}

impl Svg {
    /// `size`: width and height, pixels.
    pub(crate) const fn new(size: (f64, f64)) -> Svg {
        Svg { size, body: String::new(), attributes: String::new() }
    }

    /// An attribute of the whole figure.
    pub(crate) fn attribute(&mut self, name: &str, value: &str) {
        let _ = write!(self.attributes, " {name}=\"{}\"", escaped(value));
    }

    /// What follows tells this where the pointer rests on it, until [`Canvas::end`].
    pub(crate) fn begin_titled(&mut self, text: &str) {
        let _ = writeln!(self.body, "<g><title>{}</title>", escaped(text));
    }

    /// As part of a page, which has the colours ([`css`]).
    pub(crate) fn inline(&self) -> String {
        format!(
            "<svg aria-hidden=\"true\" focusable=\"false\"{}{}>\n{}</svg>\n",
            self.view_box(),
            self.attributes,
            self.body
        )
    }

    /// The same, so many pixels wide whatever has room.
    pub(crate) fn inline_of(&self, width: f64) -> String {
        format!(
            "<svg aria-hidden=\"true\" focusable=\"false\" width=\"{}\"{}>\n{}</svg>\n",
            number(width),
            self.view_box(),
            self.body
        )
    }

    /// Level strokes, each from a place so far to the right.
    pub(crate) fn runs(&mut self, runs: impl Iterator<Item = (f64, f64, f64)>, width: f64, colour: &Colour) {
        self.runs_of(runs, width, &class(*colour), &[]);
    }

    /// The same with attributes that the page's script reads.
    pub(crate) fn runs_with(
        &mut self,
        runs: impl Iterator<Item = (f64, f64, f64)>,
        width: f64,
        colour: &Colour,
        attributes: &[(&str, &str)],
    ) {
        self.runs_of(runs, width, &class(*colour), attributes);
    }

    /// The same of a class that the page has.
    pub(crate) fn runs_of(
        &mut self,
        runs: impl Iterator<Item = (f64, f64, f64)>,
        width: f64,
        class: &str,
        attributes: &[(&str, &str)],
    ) {
        // Moves are from the end of the run before: most are short, in letters too. In tenths of a pixel, so that nothing adds up.
        let tenths = |pixels: f64| (pixels * 10.0).round();
        let (mut way, mut end) = (String::new(), (0.0, 0.0));
        for (x, y, length) in runs {
            let (x, y, length) = (tenths(x), tenths(y), tenths(length));
            let by = [x - end.0, y - end.1, length].map(|tenths| number(tenths / 10.0));
            let _ = write!(way, "{}{} {}h{}", if way.is_empty() { 'M' } else { 'm' }, by[0], by[1], by[2]);
            end = (x + length, y);
        }
        if !way.is_empty() {
            let attributes: String =
                attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escaped(value))).collect();
            let _ = writeln!(
                self.body,
                "<path class=\"l {class}\"{attributes} stroke-width=\"{}\" d=\"{way}\"/>",
                number(width)
            );
        }
    }

    /// As a file.
    pub(crate) fn file(&self) -> String {
        let (width, height) = self.size;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\"{}>\n<style>{}{}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n{}</svg>\n",
            self.view_box(),
            SHAPES.replace(".drawn ", ""),
            literal("", &COLOURS, [INK, SOFT, RULE]),
            hex(PAPER),
            self.body
        )
    }

    fn view_box(&self) -> String {
        format!(" viewBox=\"0 0 {} {}\"", number(self.size.0), number(self.size.1))
    }
}

/// The classes' shapes; their colours are in `--c`-free rules of their own, because not every viewer of files knows variables.
const SHAPES: &str = ".drawn text{font-family:system-ui,DejaVu Sans,sans-serif;stroke:none}.drawn .l{fill:none;stroke-linejoin:round}\
.drawn .d{stroke-dasharray:6 4}.drawn .b{fill-opacity:.2;stroke:none}.drawn .f{stroke:none}";

/// Colours and shapes of figures on a page, for light and dark screens and paper.
pub(crate) fn css() -> String {
    let dark = [RGBColor(0xe8, 0xe8, 0xe8), RGBColor(0xb0, 0xb0, 0xb0), RGBColor(0x3a, 0x3f, 0x47)];
    let variables = |colours: &[RGBColor]| {
        colours
            .iter()
            .enumerate()
            .fold(String::new(), |text, (i, colour)| format!("{text}--line-{i}:{};", hex(*colour)))
    };
    format!(
        "{SHAPES}{}:root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}{}}}\n",
        literal(".drawn ", &COLOURS, [INK, SOFT, RULE]),
        variables(&COLOURS),
        variables(&ON_DARK),
        literal(".drawn ", &ON_DARK, dark)
    )
}

fn literal(within: &str, colours: &[RGBColor], [ink, soft, rule]: [RGBColor; 3]) -> String {
    let mut text = String::new();
    let lines = colours.iter().enumerate().map(|(i, colour)| (format!("c{i}"), *colour));
    let others = [("ci", ink), ("cs", soft), ("cr", rule)].map(|(name, colour)| (name.to_owned(), colour));
    for (name, colour) in lines.chain(others) {
        let colour = hex(colour);
        let _ = write!(
            text,
            "{within}.l.{name}{{stroke:{colour}}}{within}.f.{name},{within}.b.{name},{within}text.{name}{{fill:{colour}}}"
        );
    }
    text
}

impl Canvas for Svg {
    fn path(&mut self, points: &[Place], stroke: Stroke, colour: Colour) {
        let (width, dashed) = match stroke {
            Stroke::Solid(width) => (width, ""),
            Stroke::Dashed(width) => (width, " d"),
        };
        let width = if width == 1.0 { String::new() } else { format!(" stroke-width=\"{}\"", number(width)) };
        let _ =
            writeln!(self.body, "<path class=\"l{dashed} {}\"{width} d=\"{}\"/>", class(colour), way(points));
    }

    fn fill(&mut self, points: &[Place], colour: Colour, faint: bool) {
        let kind = if faint { "b" } else { "f" };
        let _ = writeln!(self.body, "<path class=\"{kind} {}\" d=\"{}Z\"/>", class(colour), way(points));
    }

    fn dot(&mut self, (x, y): Place, radius: f64, colour: Colour) {
        let (x, y, radius) = (number(x), number(y), number(radius));
        let _ = writeln!(
            self.body,
            "<circle class=\"f {}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>",
            class(colour)
        );
    }

    fn text(&mut self, (x, y): Place, anchor: Anchor, font: Font, colour: Colour, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if font.bold { " font-weight=\"700\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text class=\"{}\" x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}{weight}>{}</text>",
            class(colour),
            number(x),
            // `y` is the text's middle.
            number(y + font.size * 0.35),
            number(font.size),
            escaped(text)
        );
    }

    fn begin(&mut self, series: &Series<'_>) {
        let places: Vec<String> = series
            .places
            .iter()
            .map(|place| place.map_or_else(String::new, |(x, y)| format!("{},{}", number(x), number(y))))
            .collect();
        let _ = writeln!(
            self.body,
            "<g class=\"s\" data-column=\"{}\" data-name=\"{}\" data-values=\"{}\" data-at=\"{}\">",
            series.column,
            escaped(series.name),
            escaped(&series.values.join("|")),
            places.join(" ")
        );
    }

    fn begin_key(&mut self, column: usize, name: &str) {
        let _ =
            writeln!(self.body, "<g class=\"k\" data-column=\"{column}\" data-name=\"{}\">", escaped(name));
    }

    fn end(&mut self) {
        self.body.push_str("</g>\n");
    }
}

fn class(colour: Colour) -> String {
    match colour {
        Colour::Ink => "ci".to_owned(),
        Colour::Soft => "cs".to_owned(),
        Colour::Rule => "cr".to_owned(),
        Colour::Line(at) => format!("c{}", at % COLOURS.len()),
    }
}

/// A path through these points; level and upright pieces are the shortest.
fn way(points: &[Place]) -> String {
    let mut text = String::new();
    let mut last: Option<(String, String)> = None;
    for (x, y) in points {
        let (x, y) = (number(*x), number(*y));
        let _ = match &last {
            None => write!(text, "M{x} {y}"),
            Some((lx, ly)) if *lx == x && *ly == y => Ok(()),
            Some((lx, _)) if *lx == x => write!(text, "V{y}"),
            Some((_, ly)) if *ly == y => write!(text, "H{x}"),
            Some(_) => write!(text, "L{x} {y}"),
        };
        last = Some((x, y));
    }
    text
}

/// A tenth of a pixel is fine enough.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

const _: () = assert!(DASH.0 == 6.0 && DASH.1 == 4.0, "the classes' dashes are the bitmaps'");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_numbers_short() {
        let mut svg = Svg::new((100.0, 50.0));
        let font = Font { size: 14.0, bold: false };
        svg.text((1.04, 2.0), Anchor::Start, font, Colour::Ink, "cfq <a&b>");
        svg.path(
            &[(0.0, 1.0), (5.0, 1.0), (5.0, 3.0), (5.0, 3.0), (6.0, 4.0)],
            Stroke::Dashed(1.0),
            Colour::Line(2),
        );
        let text = svg.file();
        assert!(text.starts_with("<svg xmlns") && text.contains("cfq &lt;a&amp;b&gt;"), "{text}");
        assert!(text.contains("<path class=\"l d c2\" d=\"M0 1H5V3L6 4\"/>"), "{text}");
        assert!(!text.contains("var("), "not every viewer knows variables");
    }
}
