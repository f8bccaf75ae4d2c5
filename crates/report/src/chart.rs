//! A line chart, or one with a panel for each line, drawn alike as SVG and as PNG.

use std::fmt;
use std::path::Path;

use crate::canvas::{
    Anchor, Area, Bitmap, Canvas, Colour, DUE, Font, Place, Series, Stroke, Svg, shortened, text_width,
    wrapped,
};
use crate::ticks;

/// Width of a figure, in its own pixels: two or three beside each other fill a page, one a telephone.
const WIDTH: f64 = 500.0;
/// Height of a plot, and of each of several panels.
const PLOT_HEIGHT: f64 = 250.0;
const PANEL_HEIGHT: f64 = 104.0;
const MARGIN: f64 = 12.0;
pub(crate) const TEXT: f64 = 13.0;
pub(crate) const SMALL: f64 = 12.0;
const LINE: f64 = 18.0;
/// Height of each further line of a panel's title.
const TITLE_LINE: f64 = 14.0;
/// Below a plot: the marks' labels and the axis' name.
const MARKS: f64 = 20.0;
/// Width that a legend entry's stroke and gaps take beside its text.
const KEY_STROKE: f64 = 26.0;
const KEY_GAP: f64 = 16.0;

/// Right of a title the page has a button.
pub(crate) const BUTTON: f64 = 30.0;
/// Bold letters are so much wider than the others.
pub(crate) const WIDER: f64 = 1.12;

pub(crate) const PLAIN: Font = Font { size: TEXT, bold: false };
pub(crate) const BOLD: Font = Font { size: TEXT, bold: true };
pub(crate) const FINE: Font = Font { size: SMALL, bold: false };

/// How values lie along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
    /// Values are numbers of nines: 1 is 90 %, 2 is 99 %.
    Nines,
}

/// What goes along an axis. Values on a logarithmic axis are given as they are.
pub(crate) struct Axis {
    pub label: String,
    pub scale: Scale,
    /// How a value is written.
    pub write: fn(f64) -> String,
}

/// A named curve.
pub(crate) struct Line {
    pub label: String,
    pub points: Vec<(f64, f64)>,
    /// Lowest and highest at each of the points; empty: there is nothing around the line.
    pub band: Vec<(f64, f64)>,
    /// Which of the colours, and which scheduler's column.
    pub colour: usize,
    /// What should be, rather than what was.
    pub dashed: bool,
    /// What it is worth at each of the chart's stops, in words.
    pub values: Vec<String>,
    /// Where the marks of these are, as values; one for each stop.
    pub at: Vec<Option<(f64, f64)>>,
}

/// Places along an axis at which the lines' values can be asked for.
#[derive(Default)]
pub(crate) struct Stops {
    /// They lie on the y axis.
    pub upright: bool,
    /// Value on the axis, and how it is called.
    pub places: Vec<(f64, String)>,
}

/// A line chart.
pub(crate) struct Chart {
    /// What it shows, and of what: figures are passed on without the page around them.
    pub head: [String; 2],
    pub x: Axis,
    pub y: Axis,
    /// Values the y axis shows at least.
    pub y_includes: (f64, f64),
    pub lines: Vec<Line>,
    /// A panel for each line that is not dashed, rather than all in one.
    pub panels: bool,
    pub stops: Stops,
}

/// A figure could not be drawn or written.
#[derive(Debug)]
pub struct DrawError(String);

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DrawError {}

impl DrawError {
    pub(crate) fn of(path: &Path, error: &std::io::Error) -> DrawError {
        DrawError(format!("cannot write '{}': {error}", path.display()))
    }
}

/// Lines that are the same in all points become one with both names: one would hide the other.
pub(crate) fn united(lines: Vec<Line>) -> Vec<Line> {
    let mut apart: Vec<Line> = Vec::new();
    for line in lines {
        match apart.iter_mut().find(|other| other.points == line.points && other.dashed == line.dashed) {
            Some(other) => {
                other.label.push_str(" = ");
                other.label.push_str(&line.label);
            }
            None => apart.push(line),
        }
    }
    apart
}

/// One plot of a chart: where it is and what is in it.
struct Panel<'a> {
    area: Area,
    title: Option<&'a Line>,
    lines: Vec<&'a Line>,
    /// Marks of the y axis are written.
    left: bool,
    /// Marks of the x axis are.
    bottom: bool,
}

/// The values at an axis' ends.
type Range = (f64, f64);

impl Chart {
    /// As an SVG file.
    pub(crate) fn svg(&self) -> String {
        self.drawn().file()
    }

    /// As part of a page.
    pub(crate) fn inline(&self) -> String {
        self.drawn().inline()
    }

    fn drawn(&self) -> Svg {
        let mut svg = Svg::new(self.size());
        let (x, y) = (self.x_range(), self.y_range());
        let panels = self.arranged();
        let place = |value: f64| match self.stops.upright {
            true => self.y.along(value, y, (panels[0].area.height, 0.0)),
            false => self.x.along(value, x, (0.0, panels[0].area.width)),
        };
        let places: Vec<String> =
            self.stops.places.iter().map(|(value, _)| format!("{:.1}", place(*value))).collect();
        let labels: Vec<&str> = self.stops.places.iter().map(|(_, label)| label.as_str()).collect();
        let areas: Vec<String> = panels
            .iter()
            .map(|p| format!("{:.1},{:.1},{:.1},{:.1}", p.area.left, p.area.top, p.area.width, p.area.height))
            .collect();
        if !places.is_empty() {
            svg.attribute("data-stops", &places.join(" "));
            svg.attribute("data-labels", &labels.join("|"));
            svg.attribute("data-areas", &areas.join(" "));
            svg.attribute("data-upright", if self.stops.upright { "1" } else { "0" });
        }
        self.draw(&mut svg);
        svg
    }

    /// As a PNG file.
    pub(crate) fn png(&self, path: &Path) -> Result<(), DrawError> {
        let mut bitmap = Bitmap::new(path, self.size());
        self.draw(&mut bitmap);
        bitmap.finish().map_err(DrawError)
    }

    /// The conditions under the title, in as many lines as they need.
    fn conditions(&self) -> Vec<String> {
        wrapped(&self.head[1], SMALL, WIDTH - 2.0 * MARGIN)
    }

    /// Where the first panel begins, below title, conditions and the vertical axis' label.
    fn top(&self) -> f64 {
        LINE * (2.75 + self.conditions().len() as f64)
    }

    fn size(&self) -> (f64, f64) {
        let bottom = self.arranged().iter().map(|panel| panel.area.bottom()).fold(0.0, f64::max);
        let keys = if self.panels { self.keys_apart() } else { self.keys() };
        (WIDTH, bottom + MARKS + LINE + keys.len() as f64 * LINE + MARGIN)
    }

    fn draw(&self, canvas: &mut impl Canvas) {
        let width = WIDTH - 2.0 * MARGIN;
        canvas.text(
            (MARGIN, LINE * 0.8),
            Anchor::Start,
            BOLD,
            Colour::Ink,
            &shortened(&self.head[0], TEXT * WIDER, width - BUTTON),
        );
        for (at, line) in self.conditions().iter().enumerate() {
            canvas.text((MARGIN, LINE * (1.8 + at as f64)), Anchor::Start, FINE, Colour::Soft, line);
        }
        canvas.text((MARGIN, self.top() - LINE * 0.75), Anchor::Start, FINE, Colour::Soft, &self.y.label);
        let (x, y) = (self.x_range(), self.y_range());
        let panels = self.arranged();
        for panel in &panels {
            self.draw_frame(canvas, panel, x, y);
            for line in &panel.lines {
                self.draw_line(canvas, panel, line, x, y);
            }
        }
        let bottom = panels.iter().map(|panel| panel.area.bottom()).fold(0.0, f64::max) + MARKS;
        canvas.text((WIDTH - MARGIN, bottom + LINE * 0.4), Anchor::End, FINE, Colour::Soft, &self.x.label);
        self.draw_keys(canvas, bottom + LINE);
    }

    fn draw_frame(&self, canvas: &mut impl Canvas, panel: &Panel<'_>, x: Range, y: Range) {
        let Area { left, top, .. } = panel.area;
        let (right, bottom) = (panel.area.right(), panel.area.bottom());
        for mark in self.x.marks(x, if self.panels { 3.0 } else { 7.0 }) {
            let at = linear(mark, x, (left, right));
            canvas.line((at, top), (at, bottom), Colour::Rule);
            if panel.bottom {
                let text = self.x.text(mark);
                let half = text_width(&text, SMALL) / 2.0;
                canvas.text(
                    (at.min(WIDTH - MARGIN / 2.0 - half), bottom + MARKS / 2.0),
                    Anchor::Middle,
                    FINE,
                    Colour::Ink,
                    &text,
                );
            }
        }
        for mark in self.y.marks(y, if self.panels { 3.0 } else { 6.0 }) {
            let at = linear(mark, y, (bottom, top));
            canvas.line((left, at), (right, at), Colour::Rule);
            if panel.left {
                canvas.text((left - 6.0, at), Anchor::End, FINE, Colour::Ink, &self.y.text(mark));
            }
        }
        canvas.path(&[(left, top), (left, bottom), (right, bottom)], Stroke::Solid(1.0), Colour::Soft);
        if let Some(line) = panel.title {
            let title = panel_title(line, panel.area.width);
            let font = Font { size: SMALL, bold: true };
            for (row, words) in title.iter().rev().enumerate() {
                let place = (left, top - LINE * 0.45 - row as f64 * TITLE_LINE);
                canvas.text(place, Anchor::Start, font, Colour::of_column(line.colour), words);
            }
        }
    }

    fn draw_line(&self, canvas: &mut impl Canvas, panel: &Panel<'_>, line: &Line, x: Range, y: Range) {
        let at = |(px, py): (f64, f64)| self.place(panel, (px, py), x, y);
        let points: Vec<Place> = line.points.iter().copied().map(at).collect();
        let colour = line.paint();
        canvas.begin(&Series {
            name: &line.label,
            values: &line.values,
            column: line.colour,
            places: line.at.iter().map(|place| place.map(at)).collect(),
        });
        if line.band.len() == line.points.len() && points.len() > 1 {
            let edge = |of: fn(&(f64, f64)) -> f64| {
                line.points.iter().zip(&line.band).map(move |((px, _), band)| (*px, of(band)))
            };
            let outline: Vec<Place> = edge(|band| band.1)
                .chain(edge(|band| band.0).collect::<Vec<_>>().into_iter().rev())
                .map(at)
                .collect();
            canvas.fill(&outline, colour, true);
        }
        let stroke = if line.dashed { Stroke::Dashed(1.5) } else { Stroke::Solid(2.0) };
        canvas.path(&simplified(&points), stroke, colour);
        if points.len() <= FEW {
            points.iter().for_each(|place| canvas.dot(*place, 3.0, colour));
        }
        canvas.end();
    }

    fn place(&self, panel: &Panel<'_>, (px, py): (f64, f64), x: Range, y: Range) -> Place {
        let Area { left, top, .. } = panel.area;
        (self.x.along(px, x, (left, panel.area.right())), self.y.along(py, y, (panel.area.bottom(), top)))
    }

    /// The panels, in rows of two, or the one plot.
    fn arranged(&self) -> Vec<Panel<'_>> {
        let marks = self.y.marks(self.y_range(), if self.panels { 3.0 } else { 6.0 });
        let labels = marks.iter().map(|mark| text_width(&self.y.text(*mark), SMALL)).fold(0.0, f64::max);
        let left = MARGIN + labels + 6.0;
        let top = self.top();
        let width = WIDTH - left - MARGIN - 6.0;
        if !self.panels {
            let area = Area { left, top, width, height: PLOT_HEIGHT };
            return vec![Panel {
                area,
                title: None,
                lines: self.lines.iter().collect(),
                left: true,
                bottom: true,
            }];
        }
        let own: Vec<&Line> = self.lines.iter().filter(|line| !line.dashed).collect();
        let width = (width - KEY_GAP) / 2.0;
        let titles = own.iter().map(|line| panel_title(line, width).len()).max().unwrap_or(1);
        let title = LINE * 1.1 + (titles.max(1) - 1) as f64 * TITLE_LINE;
        let panel = |(at, line): (usize, &&'_ Line)| {
            let (row, column) = ((at / 2) as f64, (at % 2) as f64);
            let area = Area {
                left: left + column * (width + KEY_GAP),
                top: top + title - LINE * 0.5 + row * (PANEL_HEIGHT + title + LINE * 0.4),
                width,
                height: PANEL_HEIGHT,
            };
            let beside = self
                .lines
                .iter()
                .filter(|other| other.dashed && (other.colour == DUE || other.colour == line.colour));
            Panel {
                area,
                title: None,
                lines: beside.collect(),
                left: at % 2 == 0,
                bottom: at + 2 >= own.len(),
            }
        };
        let mut panels: Vec<Panel<'_>> = own.iter().enumerate().map(panel).collect();
        for (panel, line) in panels.iter_mut().zip(&own) {
            panel.title = Some(line);
            panel.lines.push(line);
        }
        panels
    }

    fn x_range(&self) -> Range {
        widened(self.lines.iter().flat_map(|l| &l.points).map(|(x, _)| self.x.place(*x)))
    }

    fn y_range(&self) -> Range {
        let values = self
            .lines
            .iter()
            .flat_map(|l| l.points.iter().map(|(_, y)| *y).chain(l.band.iter().flat_map(|b| [b.0, b.1])));
        let (low, high) = self.y_includes;
        let values = values
            .map(|y| self.y.place(y))
            .chain([low, high].into_iter().filter(|v| !v.is_nan()).map(|v| self.y.place(v)));
        let (low, high) = widened(values);
        (low, high + (high - low) * 0.03)
    }

    /// The lines' entries, as many to a row as fit.
    fn keys(&self) -> Vec<Vec<(f64, &Line, String)>> {
        rows_of(self.lines.iter())
    }

    /// Of a chart of panels, whose titles are the names: what the dashed lines are.
    fn keys_apart(&self) -> Vec<Vec<(f64, &Line, String)>> {
        rows_of(self.lines.iter().filter(|line| line.dashed && line.colour == DUE))
    }

    fn draw_keys(&self, canvas: &mut impl Canvas, top: f64) {
        let rows = if self.panels { self.keys_apart() } else { self.keys() };
        for (row, keys) in rows.iter().enumerate() {
            let y = top + row as f64 * LINE + LINE / 2.0;
            for (x, line, label) in keys {
                canvas.begin_key(line.colour, &line.label);
                let stroke = if line.dashed { Stroke::Dashed(1.5) } else { Stroke::Solid(3.0) };
                canvas.path(&[(*x, y), (x + KEY_STROKE - 8.0, y)], stroke, line.paint());
                canvas.text((x + KEY_STROKE - 2.0, y), Anchor::Start, FINE, Colour::Ink, label);
                canvas.end();
            }
        }
    }
}

/// Lines of so few points get dots.
const FEW: usize = 12;

fn rows_of<'a>(lines: impl Iterator<Item = &'a Line>) -> Vec<Vec<(f64, &'a Line, String)>> {
    let (left, right) = (MARGIN, WIDTH - MARGIN);
    let mut rows: Vec<Vec<(f64, &Line, String)>> = Vec::new();
    let mut x = right;
    for line in lines {
        let label = shortened(&line.label, SMALL, right - left - KEY_STROKE);
        let width = KEY_STROKE + text_width(&label, SMALL);
        if rows.is_empty() || x + width > right {
            rows.push(Vec::new());
            x = left;
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, line, label));
        }
        x += width + KEY_GAP;
    }
    rows
}

impl Axis {
    /// Where a value lies.
    fn place(&self, value: f64) -> f64 {
        if self.scale == Scale::Logarithmic { value.max(1e-9).log10() } else { value }
    }

    /// Where a value lies between two pixels.
    fn along(&self, value: f64, range: Range, pixels: Range) -> f64 {
        linear(self.place(value), range, pixels)
    }

    fn text(&self, place: f64) -> String {
        (self.write)(if self.scale == Scale::Logarithmic { 10f64.powf(place) } else { place })
    }

    /// Places with a mark, about so many.
    fn marks(&self, range: Range, about: f64) -> Vec<f64> {
        match self.scale {
            Scale::Linear => ticks::linear(range, about),
            Scale::Logarithmic => ticks::logarithmic(range, about),
            Scale::Nines => ticks::nines(range),
        }
    }
}

impl Line {
    const fn paint(&self) -> Colour {
        if self.colour == DUE && self.dashed { Colour::Line(DUE) } else { Colour::of_column(self.colour) }
    }
}

fn linear(value: f64, (low, high): Range, (from, to): Range) -> f64 {
    from + (value - low) / (high - low) * (to - from)
}

/// A range around the values that has an extent even when they are all the same, or none.
fn widened(values: impl Iterator<Item = f64>) -> Range {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    match (low.is_finite(), low < high) {
        (false, _) => (0.0, 1.0),
        (true, true) => (low, high),
        (true, false) => (low - 0.5, low + 0.5),
    }
}

/// A path without the points that cannot be seen: those nearer than half a pixel to the line between their neighbours
/// (Douglas and Peucker 1973), so that a page of many figures stays small.
fn simplified(points: &[Place]) -> Vec<Place> {
    const UNSEEN: f64 = 0.4;
    let Some(last) = points.len().checked_sub(1).filter(|last| *last > 1) else { return points.to_vec() };
    let mut kept = vec![false; points.len()];
    (kept[0], kept[last]) = (true, true);
    let mut ranges = vec![(0, last)];
    while let Some((from, to)) = ranges.pop() {
        let off = |at: &usize| distance(points[*at], points[from], points[to]);
        let farthest = (from + 1..to).max_by(|a, b| off(a).total_cmp(&off(b)));
        if let Some(at) = farthest.filter(|at| off(at) > UNSEEN) {
            kept[at] = true;
            ranges.extend([(from, at), (at, to)]);
        }
    }
    points.iter().zip(kept).filter(|(_, kept)| *kept).map(|(point, _)| *point).collect()
}

/// Of a place from the line between two others.
fn distance((x, y): Place, (ax, ay): Place, (bx, by): Place) -> f64 {
    let (dx, dy) = (bx - ax, by - ay);
    let length = dx.hypot(dy);
    if length == 0.0 { (x - ax).hypot(y - ay) } else { (dy * (x - ax) - dx * (y - ay)).abs() / length }
}

/// A panel's title, in two lines if it is long.
fn panel_title(line: &Line, width: f64) -> Vec<String> {
    let mut lines = wrapped(&line.label, SMALL * WIDER, width);
    if lines.len() > 2 {
        let rest = lines.split_off(1).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|words| shortened(words, SMALL * WIDER, width)).collect()
}

/// A text in the lines that a label column of so many pixels has room for.
pub(crate) fn label_lines(text: &str, width: f64) -> Vec<String> {
    wrapped(text, TEXT, width).into_iter().map(|line| shortened(&line, TEXT, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, panels: bool) -> Chart {
        let line = |dashed: bool| Line {
            label: "cfq <a&b>".into(),
            points: points.clone(),
            band: points.iter().map(|(_, y)| (y * 0.5, y * 2.0)).collect(),
            colour: 0,
            dashed,
            values: Vec::new(),
            at: Vec::new(),
        };
        Chart {
            head: ["Latency: a".into(), "x".repeat(200)],
            x: Axis { label: "time".into(), scale: Scale::Logarithmic, write: crate::unit::time },
            y: Axis { label: "share".into(), scale: Scale::Linear, write: crate::unit::short },
            y_includes: (0.0, 1.0),
            lines: [false, true].map(line).into(),
            panels,
            stops: Stops::default(),
        }
    }

    #[test]
    fn a_chart_is_drawn_with_any_number_of_points() {
        for points in [vec![], vec![(5.0, 0.5)], vec![(0.0, 0.0), (1e9, 1.0)]] {
            for panels in [false, true] {
                let svg = chart(points.clone(), panels).svg();
                assert!(svg.contains("cfq &lt;a&amp;b&gt;"), "names are text, not markup");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn points_on_a_straight_line_are_left_out() {
        let points: Vec<Place> = (0..100).map(|i| (f64::from(i), if i < 50 { 0.0 } else { 10.0 })).collect();
        assert_eq!(simplified(&points), [(0.0, 0.0), (49.0, 0.0), (50.0, 10.0), (99.0, 10.0)]);
    }

    #[test]
    fn equal_lines_are_one() {
        let chart = chart(vec![(1.0, 2.0)], false);
        let lines = chart.lines.into_iter().map(|line| Line { dashed: false, ..line }).collect();
        let labels: Vec<String> = united(lines).into_iter().map(|line| line.label).collect();
        assert_eq!(labels, ["cfq <a&b> = cfq <a&b>"]);
    }
}
