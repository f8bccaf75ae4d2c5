//! Two distributions as a picture.

use std::path::Path;

use fairlift_sim::validate::Measured;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Run, percentile, sorted_ms};
use crate::error::Failure;

const SIZE: (u32, u32) = (800, 480);
/// Points a curve is drawn with at most.
const POINTS: usize = 1000;
/// The slowest part of the requests is left off: it would squeeze all others together.
const SHOWN_PERCENT: f64 = 99.9;
const MEASURED: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);
const SIMULATED: [RGBColor; 4] = [
    RGBColor(0xb8, 0x46, 0x00),
    RGBColor(0x00, 0x5f, 0xa8),
    RGBColor(0x00, 0x73, 0x50),
    RGBColor(0x9c, 0x3b, 0x7f),
];

/// Say that a file cannot be drawn before anything is computed.
pub fn check(path: &Path) -> Result<(), Failure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg" | "png") => Ok(()),
        _ => Err(Failure::new(format!("'{}' must end in .svg or .png", path.display())).at("--plot")),
    }
}

/// Draw the cumulative distributions to an SVG or PNG file.
pub fn draw(path: &Path, requests: &[Measured], runs: &[Run]) -> Result<(), Failure> {
    fairlift_report::load_font();
    let fail = |what: String| Failure::new(format!("cannot draw '{}': {what}", path.display())).at("--plot");
    if path.extension().is_some_and(|ending| ending == "png") {
        return chart(&BitMapBackend::new(path, SIZE).into_drawing_area(), requests, runs).map_err(fail);
    }
    chart(&SVGBackend::new(path, SIZE).into_drawing_area(), requests, runs).map_err(fail)
}

fn chart<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    requests: &[Measured],
    runs: &[Run],
) -> Result<(), String> {
    let text = |error: DrawingAreaErrorKind<B::ErrorType>| error.to_string();
    let measured = sorted_ms(requests.iter().map(|request| request.response_ns));
    let mut curves = vec![("measured".to_owned(), measured, MEASURED)];
    for (index, run) in runs.iter().enumerate() {
        let label = format!("{} (rms {:.3} ms)", run.device, run.score.rms_ms);
        let simulated = sorted_ms(run.simulated_ns.iter().copied());
        curves.push((label, simulated, SIMULATED[index % SIMULATED.len()]));
    }
    let longest = curves.iter().map(|(_, times, _)| percentile(times, SHOWN_PERCENT)).fold(0.0, f64::max);
    area.fill(&WHITE).map_err(text)?;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..longest, 0.0..100.0)
        .map_err(text)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("response time, ms")
        .y_desc("requests, %")
        .draw()
        .map_err(text)?;
    for (label, times, colour) in curves {
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points(&times, longest), style))
            .map_err(text)?
            .label(label)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()
        .map_err(text)?;
    area.present().map_err(text)
}

/// The cumulative distribution of sorted times, in percent.
fn points(times: &[f64], longest: f64) -> Vec<(f64, f64)> {
    (0..=POINTS)
        .map(|index| {
            let at = longest * index as f64 / POINTS as f64;
            (at, times.partition_point(|&ms| ms <= at) as f64 / times.len() as f64 * 100.0)
        })
        .collect()
}
