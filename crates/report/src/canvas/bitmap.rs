//! PNG files, by the drawing library.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Anchor, Canvas, Colour, DASH, EM, Font, PAPER, Place, Stroke, load_font};

/// Pixels of a PNG for each of the figure's own.
const SCALE: f64 = 2.0;
/// How much of what lies behind a faint area is hidden.
const FAINT: f64 = 0.2;

/// A bitmap that becomes a file.
pub(crate) struct Bitmap<'a> {
    area: DrawingArea<BitMapBackend<'a>, Shift>,
    /// The first thing that could not be drawn.
    failure: Option<String>,
}

impl<'a> Bitmap<'a> {
    /// `size`: width and height, the figure's own pixels.
    pub(crate) fn new(path: &'a Path, size: (f64, f64)) -> Bitmap<'a> {
        load_font();
        let pixels = ((size.0 * SCALE) as u32, (size.1 * SCALE) as u32);
        let area = BitMapBackend::new(path, pixels).into_drawing_area();
        let failure = area.fill(&PAPER).err().map(|e| e.to_string());
        Bitmap { area, failure }
    }

    /// Write the file.
    pub(crate) fn finish(self) -> Result<(), String> {
        self.failure.map_or_else(|| self.area.present().map_err(|e| e.to_string()), Err)
    }

    fn draw<'e, E>(&mut self, element: &'e E)
    where
        for<'b> &'b E: plotters::element::PointCollection<'b, (i32, i32)>,
        E: plotters::element::Drawable<BitMapBackend<'a>> + 'e,
    {
        if let Err(error) = self.area.draw(element) {
            self.failure.get_or_insert(error.to_string());
        }
    }
}

fn pixel((x, y): Place) -> (i32, i32) {
    ((x * SCALE).round() as i32, (y * SCALE).round() as i32)
}

impl Canvas for Bitmap<'_> {
    fn path(&mut self, points: &[Place], stroke: Stroke, colour: Colour) {
        let (width, dashed) = match stroke {
            Stroke::Solid(width) => (width, false),
            Stroke::Dashed(width) => (width, true),
        };
        let style = colour.on_paper().stroke_width((width * SCALE).round().max(1.0) as u32);
        let pieces = if dashed { dashes(points) } else { vec![points.to_vec()] };
        for piece in pieces.iter().filter(|piece| piece.len() > 1) {
            self.draw(&PathElement::new(piece.iter().copied().map(pixel).collect::<Vec<_>>(), style));
        }
    }

    fn fill(&mut self, points: &[Place], colour: Colour, faint: bool) {
        let colour = colour.on_paper().mix(if faint { FAINT } else { 1.0 });
        self.draw(&Polygon::new(points.iter().copied().map(pixel).collect::<Vec<_>>(), colour.filled()));
    }

    fn dot(&mut self, at: Place, radius: f64, colour: Colour) {
        self.draw(&Circle::new(pixel(at), (radius * SCALE).round() as i32, colour.on_paper().filled()));
    }

    fn text(&mut self, at: Place, anchor: Anchor, font: Font, colour: Colour, text: &str) {
        let side = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = ("sans-serif", font.size * EM * SCALE)
            .into_font()
            .color(&colour.on_paper())
            .pos(Pos::new(side, VPos::Center));
        let (x, y) = pixel(at);
        self.draw(&Text::new(text.to_owned(), (x, y), style.clone()));
        if font.bold {
            // The font has one weight.
            self.draw(&Text::new(text.to_owned(), (x + 1, y), style));
        }
    }
}

/// The dashes along a path.
fn dashes(points: &[Place]) -> Vec<Vec<Place>> {
    let mut pieces = vec![points.first().map(|first| vec![*first]).unwrap_or_default()];
    let (mut is_dash, mut left) = (true, DASH.0);
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            let length = dx.hypot(dy);
            if length <= left {
                left -= length;
                if let Some(piece) = pieces.last_mut().filter(|_| is_dash) {
                    piece.push(to);
                }
                break;
            }
            from = (from.0 + dx * left / length, from.1 + dy * left / length);
            match pieces.last_mut().filter(|_| is_dash) {
                Some(piece) => piece.push(from),
                None => pieces.push(vec![from]),
            }
            is_dash = !is_dash;
            left = if is_dash { DASH.0 } else { DASH.1 };
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_go_on_around_corners() {
        let pieces = dashes(&[(0.0, 0.0), (8.0, 0.0), (8.0, 12.0)]);
        let ends: Vec<(Place, Place)> = pieces.iter().map(|p| (p[0], p[p.len() - 1])).collect();
        assert_eq!(ends, [((0.0, 0.0), (6.0, 0.0)), ((8.0, 2.0), (8.0, 8.0))]);
    }
}
