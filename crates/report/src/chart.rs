//! A line chart, drawn alike as SVG and as PNG.

use std::fmt;
use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ticks;

/// Size of a figure, in its own pixels: three beside each other fill a page, one a telephone.
const SIZE: (u32, u32) = (500, 374);
/// Pixels of a PNG for each of these.
const PNG_SCALE: u32 = 2;
const MARGIN: u32 = 10;
/// Room for the marks' labels and the axis' name, below and on the left.
const LABELS: (u32, u32) = (46, 78);
const LEGEND_LINE: i32 = 20;
/// Width that a legend entry's stroke and gaps take beside its text.
const LEGEND_STROKE: i32 = 26;
const LEGEND_GAP: i32 = 18;
const TEXT: i32 = 14;
/// The lines at the top: what it shows, then of which load, device and kernel.
const HEAD_LINE: i32 = 20;
/// Most marks an axis gets; their number is decided by [`crate::ticks`].
const MARKS_MAX: usize = 40;

/// Colours of the lines, dark enough for white paper (at least 4.5:1). The page names them by number and has lighter
/// ones for a dark screen.
pub(crate) const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x5f, 0xa8),
    RGBColor(0xb8, 0x46, 0x00),
    RGBColor(0x00, 0x73, 0x50),
    RGBColor(0x9c, 0x3b, 0x7f),
    RGBColor(0x56, 0x50, 0xc8),
    RGBColor(0x7a, 0x5c, 0x00),
    RGBColor(0xb0, 0x20, 0x30),
    RGBColor(0x2f, 0x4f, 0x5f),
];
/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);
/// Lines of the grid.
pub(crate) const RULE: RGBColor = RGBColor(0xd8, 0xd8, 0xd8);
pub(crate) const PAPER: RGBColor = WHITE;

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
    pub label: &'static str,
    pub scale: Scale,
    /// How a value is written.
    pub write: fn(f64) -> String,
}

/// A named curve.
pub(crate) struct Line {
    pub label: String,
    pub points: Vec<(f64, f64)>,
    /// Which of [`COLOURS`].
    pub colour: usize,
    /// What should be, rather than what was.
    pub dashed: bool,
}

/// A dash and the gap behind it, pixels.
const DASH: (u32, u32) = (6, 4);

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

/// A line chart.
pub(crate) struct Chart {
    /// What it shows, and of what: figures are passed on without the page around them.
    pub head: [String; 2],
    pub x: Axis,
    pub y: Axis,
    /// Values the y axis shows at least.
    pub y_includes: (f64, f64),
    pub lines: Vec<Line>,
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

fn failed(error: impl fmt::Display) -> DrawError {
    DrawError(error.to_string())
}

impl Chart {
    /// As SVG.
    pub(crate) fn svg(&self) -> Result<String, DrawError> {
        let mut text = String::new();
        self.draw(SVGBackend::with_string(&mut text, SIZE).into_drawing_area(), 1)?;
        Ok(text)
    }

    /// As a PNG file.
    pub(crate) fn png(&self, path: &Path) -> Result<(), DrawError> {
        let size = (SIZE.0 * PNG_SCALE, SIZE.1 * PNG_SCALE);
        self.draw(BitMapBackend::new(path, size).into_drawing_area(), PNG_SCALE)
    }

    /// `scale`: pixels of the area for each of the figure's own.
    fn draw<B: DrawingBackend>(&self, area: DrawingArea<B, Shift>, scale: u32) -> Result<(), DrawError> {
        load_font();
        area.fill(&PAPER).map_err(failed)?;
        let rows = self.legend_rows();
        let legend_height = rows.len() as i32 * LEGEND_LINE + TEXT / 2;
        let (head, rest) = area.split_vertically((2 * HEAD_LINE + TEXT / 4) * scale as i32);
        let plot_height = SIZE.1 as i32 - legend_height - 2 * HEAD_LINE - TEXT / 4;
        let (plot, legend) = rest.split_vertically(plot_height * scale as i32);
        self.draw_head(&head, scale as i32)?;
        self.draw_plot(&plot, scale)?;
        draw_legend(&legend, &rows, scale as i32)?;
        area.present().map_err(failed)
    }

    fn draw_head<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: i32,
    ) -> Result<(), DrawError> {
        for (row, (words, size)) in self.head.iter().zip([TEXT + 1, TEXT - 1]).enumerate() {
            let text =
                ("sans-serif", size * scale).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            let place = (2 * MARGIN as i32 * scale, (row as i32 * HEAD_LINE + HEAD_LINE * 3 / 4) * scale);
            let words = shortened(words, SIZE.0 as i32 - 3 * MARGIN as i32);
            area.draw(&Text::new(words, place, text)).map_err(failed)?;
        }
        Ok(())
    }

    fn draw_plot<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
    ) -> Result<(), DrawError> {
        let (x, y) = (self.x_range(), self.y_range());
        let mut chart = ChartBuilder::on(area)
            .margin(MARGIN * scale)
            // The last mark's label is centred on the end of the axis.
            .margin_right(2 * MARGIN * scale)
            .x_label_area_size(LABELS.0 * scale)
            .y_label_area_size(LABELS.1 * scale)
            .build_cartesian_2d(
                Marked { range: x, marks: self.x.marks(x) },
                Marked { range: y, marks: self.y.marks(y) },
            )
            .map_err(failed)?;
        let text = ("sans-serif", TEXT * scale as i32).into_font().color(&INK);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RULE.stroke_width(scale))
            .axis_style(INK.stroke_width(scale))
            .label_style(text.clone())
            .axis_desc_style(text)
            .x_labels(MARKS_MAX)
            .y_labels(MARKS_MAX)
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .x_label_formatter(&|v| self.x.text(*v))
            .y_label_formatter(&|v| self.y.text(*v))
            .draw()
            .map_err(failed)?;
        for (position, line) in self.lines.iter().enumerate() {
            let points = line.points.iter().map(|(px, py)| (self.x.place(*px), self.y.place(*py)));
            let style = line.style(self.width(position) * scale);
            let drawn = if line.dashed {
                let (dash, gap) = (DASH.0 * scale, DASH.1 * scale);
                chart.draw_series(DashedLineSeries::new(points, dash, gap, style)).map(drop)
            } else {
                chart.draw_series(LineSeries::new(points, style)).map(drop)
            };
            drawn.map_err(failed)?;
        }
        Ok(())
    }

    /// Width of a line: later ones are thinner, so that one that lies on another hides nothing.
    fn width(&self, position: usize) -> u32 {
        if self.lines[position].dashed { 2 } else { (self.lines.len() - position + 1).min(5) as u32 }
    }

    fn x_range(&self) -> (f64, f64) {
        let values = self.lines.iter().flat_map(|l| &l.points).map(|(x, _)| self.x.place(*x));
        widened(values)
    }

    fn y_range(&self) -> (f64, f64) {
        let values = self.lines.iter().flat_map(|l| &l.points).map(|(_, y)| self.y.place(*y));
        let (low, high) = self.y_includes;
        let (low, high) = widened(values.chain([self.y.place(low), self.y.place(high)]));
        (low, high + (high - low) * 0.03)
    }

    /// The lines' entries, as many to a row as fit.
    fn legend_rows(&self) -> Vec<Vec<(i32, &Line, u32)>> {
        let mut rows: Vec<Vec<(i32, &Line, u32)>> = vec![Vec::new()];
        let (left, right) = (MARGIN as i32 * 2, SIZE.0 as i32 - MARGIN as i32);
        let mut x = left;
        for (position, line) in self.lines.iter().enumerate() {
            let width = LEGEND_STROKE + text_width(&line.label);
            if x > left && x + width > right {
                rows.push(Vec::new());
                x = left;
            }
            if let Some(row) = rows.last_mut() {
                row.push((x, line, self.width(position)));
            }
            x += width + LEGEND_GAP;
        }
        rows
    }
}

impl Axis {
    /// Where a value lies.
    fn place(&self, value: f64) -> f64 {
        if self.scale == Scale::Logarithmic { value.max(1.0).log10() } else { value }
    }

    fn text(&self, place: f64) -> String {
        (self.write)(if self.scale == Scale::Logarithmic { 10f64.powf(place) } else { place })
    }

    /// Places with a mark.
    fn marks(&self, range: (f64, f64)) -> Vec<f64> {
        match self.scale {
            Scale::Linear => ticks::linear(range),
            Scale::Logarithmic => ticks::logarithmic(range),
            Scale::Nines => ticks::nines(range),
        }
    }
}

impl Line {
    fn style(&self, width: u32) -> ShapeStyle {
        COLOURS[self.colour % COLOURS.len()].stroke_width(width)
    }
}

/// A range with the places of its marks.
struct Marked {
    range: (f64, f64),
    marks: Vec<f64>,
}

impl Ranged for Marked {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        let part = (value - self.range.0) / (self.range.1 - self.range.0);
        low + (part * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.0..self.range.1
    }
}

/// Marks are written by the axis' own words; the library asks for this where it has none.
impl ValueFormatter<f64> for Marked {
    fn format(value: &f64) -> String {
        crate::unit::short(*value)
    }
}

fn draw_legend<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    rows: &[Vec<(i32, &Line, u32)>],
    scale: i32,
) -> Result<(), DrawError> {
    let text = ("sans-serif", TEXT * scale).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (row, entries) in rows.iter().enumerate() {
        let y = (row as i32 * LEGEND_LINE + LEGEND_LINE / 2) * scale;
        for (x, line, width) in entries {
            let (from, to) = (*x, x + LEGEND_STROKE - 8);
            let (dash, step) = match line.dashed {
                true => (DASH.0 as i32, (DASH.0 + DASH.1) as usize),
                false => (to - from, (to - from) as usize),
            };
            for left in (from..to).step_by(step) {
                let stroke = [(left * scale, y), ((left + dash).min(to) * scale, y)];
                area.draw(&PathElement::new(stroke, line.style(width * scale as u32))).map_err(failed)?;
            }
            let place = ((x + LEGEND_STROKE - 2) * scale, y);
            area.draw(&Text::new(line.label.clone(), place, text.clone())).map_err(failed)?;
        }
    }
    Ok(())
}

/// A range around the values that has an extent even when they are all the same, or none.
fn widened(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    match (low.is_finite(), low < high) {
        (false, _) => (0.0, 1.0),
        (true, true) => (low, high),
        (true, false) => (low - 0.5, low + 0.5),
    }
}

/// As much of a line as has room.
fn shortened(text: &str, width: i32) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let fits = |end: &usize| text_width(&text[..*end]) + text_width(" …") <= width;
    let ends = text.char_indices().map(|(at, _)| at);
    let end = ends.take_while(fits).last().unwrap_or(0);
    format!("{} …", text[..end].trim_end())
}

fn text_width(text: &str) -> i32 {
    load_font();
    let size = ("sans-serif", TEXT).into_font().box_size(text);
    // Without a measure, a guess that is rather too wide.
    size.map_or(TEXT * text.chars().count() as i32, |(width, _)| width as i32)
}

/// Have the drawing library use our font as `sans-serif`: it is part of the program, so that text has the same extent on
/// every machine.
pub fn load_font() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let font = include_bytes!("../font/DejaVuSans-latin.ttf");
        // It fails only for a damaged font, which the tests would see.
        let _ = plotters::style::register_font("sans-serif", FontStyle::Normal, font);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            head: ["Latency: a".into(), "x".repeat(200)],
            x: Axis { label: "time", scale: Scale::Logarithmic, write: crate::unit::time },
            y: Axis { label: "share", scale: Scale::Linear, write: crate::unit::short },
            y_includes: (0.0, 1.0),
            lines: [false, true]
                .map(|dashed| Line { label: "cfq <a&b>".into(), points: points.clone(), colour: 0, dashed })
                .into(),
        }
    }

    #[test]
    fn text_is_measured_with_our_font() {
        assert!(text_width("mmmm") > text_width("iiii"));
    }

    #[test]
    fn a_chart_is_drawn_with_any_number_of_points() {
        for points in [vec![], vec![(5.0, 0.5)], vec![(0.0, 0.0), (1e9, 1.0)]] {
            let svg = chart(points).svg().unwrap();
            assert!(svg.contains("cfq &lt;a&amp;b&gt;"), "names are text, not markup");
            assert!(svg.contains("Latency: a") && svg.contains(" …") && !svg.contains(&"x".repeat(100)));
        }
    }
}
