//! Fitting a disk: revolution, zones and seek curve.
//!
//! Random reads one at a time within a part of the disk take overhead + seek + half a revolution + transfer. With Lee's curve
//! `t(d) = a·√(d−1) + b·(d−1) + c` the mean seek between two random places within n cylinders is `c + a·(8/15)·√n + b·n/3`, so
//! the means over growing spans are a line in three unknowns: least squares. The revolution is the spread of the times where
//! seeks are shortest: the place under the head is anywhere on the track.

use super::fit::{Fit, Series};
use super::series::{self, SPANS};
use crate::error::Failure;

/// The preset whose parameters stay where nothing was measured.
pub const PRESET: &str = "sata7200-2009";
/// Spindle speeds that are sold, revolutions per minute.
const SPEEDS: [f64; 7] = [4200.0, 5400.0, 5900.0, 7200.0, 10_000.0, 10_500.0, 15_000.0];
/// A measured speed this near one of them is that one.
const SPEED_NEAR: f64 = 0.06;
/// Of the preset, on which cylinders and rates depend.
const HEADS: f64 = 8.0;
const TRACK_SKEW_MS: f64 = 0.72;
const CYLINDER_SKEW_MS: f64 = 0.34;
const MISS_MS: f64 = 0.2;
const LINK_MB_PER_S: f64 = 300.0;
/// Zones in a straight line, from the outermost to the innermost.
const ZONES: u64 = 20;
/// Cylinders to spare: zones are cut at whole sectors per track.
const SPARE: f64 = 1.005;

/// Zones as the model has them.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    cylinders: f64,
    outer: f64,
    inner: f64,
}

impl Geometry {
    /// Which part of the cylinders the first `part` of the sectors lies on.
    fn cylinders_of(&self, part: f64) -> f64 {
        let (outer, fall, mean) = (self.outer, self.outer - self.inner, (self.outer + self.inner) / 2.0);
        if fall < 1e-6 * outer {
            return part;
        }
        (outer - (outer * outer - 2.0 * fall * part * mean).max(0.0).sqrt()) / fall
    }
}

/// Lee's curve: coefficients in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lee {
    a: f64,
    b: f64,
    c: f64,
}

impl Lee {
    /// Shortest, mean and longest seek over so many cylinders, ms.
    fn times(&self, cylinders: f64) -> (f64, f64, f64) {
        let Lee { a, b, c } = *self;
        (
            c,
            c + a * 8.0 / 15.0 * cylinders.sqrt() + b * cylinders / 3.0,
            c + a * cylinders.sqrt() + b * cylinders,
        )
    }
}

/// Fit what the series measured; `bytes` is the target's size.
pub fn fit(series: &Series<'_>, bytes: u64) -> Result<Fit, Failure> {
    let mut fit = Fit::new("disk", PRESET);
    let revolution_ms = revolution(series, &mut fit)?;
    let geometry = geometry(series, bytes, revolution_ms, &mut fit)?;
    let small = series.need(series::SMALL)?;
    let link = (series.fastest() / 1e6 * 1.2).max(LINK_MB_PER_S);
    let transfer_ms = 4096.0 / link / 1e3;
    let hit_ms = (1e3 / small.iops - series.cpu_ns as f64 / 1e6 - transfer_ms).max(0.0);
    seeks(series, &geometry, revolution_ms, &mut fit)?;
    fit.number("overhead", "read_hit_ms", hit_ms, "sequential 4 KiB reads one at a time, less the link");
    fit.number("link", "rate_mb_per_s", link, "the preset's, or a fifth above the largest rate of any job");
    if let Some(one) = series.get(series::WRITE_ONE) {
        let cached = 1e3 / one.iops < revolution_ms / 2.0;
        let word = if cached { "true" } else { "false" };
        fit.word_bare(
            "write_cache",
            "enabled",
            word,
            "single random writes are done before half a revolution",
        );
    } else {
        fit.note(format!("writes were not measured: their parameters are those of {PRESET}"));
    }
    Ok(fit)
}

/// Time of a revolution, ms, from the shortest span.
fn revolution(series: &Series<'_>, fit: &mut Fit) -> Result<f64, Failure> {
    let short = series.need(&format!("{}{}", series::SPAN, SPANS[0]))?;
    let spread_ms = (short.p95_ns - short.p5_ns) / 0.9 / 1e6;
    if spread_ms < 1.0 {
        return Err(Failure::new(format!(
            "random reads within a thousandth of the target differ by {spread_ms:.3} ms: nothing turns there"
        ))
        .help("--model flash fits a drive without moving parts"));
    }
    let measured = 60e3 / spread_ms;
    let nearest = SPEEDS.into_iter().min_by(|x, y| (x - measured).abs().total_cmp(&(y - measured).abs()));
    let rpm = nearest.filter(|speed| (speed / measured - 1.0).abs() < SPEED_NEAR).unwrap_or(measured);
    let source = format!(
        "times within a short span spread over {spread_ms:.2} ms: {measured:.0} rpm, nearest speed sold"
    );
    fit.number("", "rpm", rpm, &source);
    Ok(60e3 / rpm)
}

fn geometry(series: &Series<'_>, bytes: u64, revolution_ms: f64, fit: &mut Fit) -> Result<Geometry, Failure> {
    // What a cylinder's skews cost a sequential stream.
    let cost = 1.0 + TRACK_SKEW_MS / revolution_ms + CYLINDER_SKEW_MS / (HEADS * revolution_ms);
    let per_track = |bandwidth: f64| bandwidth * cost * revolution_ms / 1e3 / 512.0;
    let outer = per_track(series.need(series::SEQUENTIAL)?.bandwidth).round().max(1.0);
    let innermost = series.get(series::INNER).map_or(outer, |inner| per_track(inner.bandwidth).round());
    let inner = innermost.clamp(1.0, outer);
    let sectors = bytes / 512;
    let cylinders = (sectors as f64 * SPARE / (HEADS * (outer + inner) / 2.0)).ceil().max(1.0);
    fit.whole("geometry", "cylinders", cylinders as u64, "so many as the size needs");
    fit.whole("geometry", "sectors", sectors, "the target's size");
    fit.whole("geometry", "zones", ZONES, "usual");
    fit.whole("geometry", "sectors_per_track_outer", outer as u64, "sequential reads at the start");
    fit.whole("geometry", "sectors_per_track_inner", inner as u64, "sequential reads at the end");
    Ok(Geometry { cylinders, outer, inner })
}

fn seeks(series: &Series<'_>, geometry: &Geometry, revolution_ms: f64, fit: &mut Fit) -> Result<(), Failure> {
    let mut points = Vec::new();
    for part in SPANS {
        if let Some(span) = series.get(&format!("{}{part}", series::SPAN)) {
            points.push((geometry.cylinders_of(part as f64 / 1e3) * geometry.cylinders, 1e3 / span.iops));
        }
    }
    points.push((geometry.cylinders, 1e3 / series.need(&format!("{}1", series::RANDOM))?.iops));
    if points.len() < 3 {
        return Err(Failure::new("too few spans: a seek curve needs two of the jobs read-span-N"));
    }
    let fixed_ms = MISS_MS + revolution_ms / 2.0 + series.cpu_ns as f64 / 1e6;
    let lee = lee(&points, fixed_ms);
    let error = |&(n, ms): &(f64, f64)| ((lee.times(n).1 + fixed_ms) / ms).ln().powi(2);
    let rms = (points.iter().map(error).sum::<f64>() / points.len() as f64).sqrt();
    let (min, mean, max) = lee.times(geometry.cylinders);
    fit.word(
        "seek",
        "curve",
        "lee",
        &format!("means over {} spans (rms {:.1} %)", points.len(), rms * 100.0),
    );
    fit.number("seek", "min_ms", min, "shortest, with what a miss costs above the preset's 0.2 ms");
    fit.number("seek", "mean_ms", mean, "over random pairs");
    fit.number("seek", "max_ms", max, "over the whole target");
    Ok(())
}

/// Least squares with coefficients that are not negative: the best of all fits with some of them zero.
fn lee(points: &[(f64, f64)], fixed_ms: f64) -> Lee {
    let rows: Vec<([f64; 3], f64)> = points
        .iter()
        .map(|&(n, ms)| ([8.0 / 15.0 * n.sqrt(), n / 3.0, 1.0], ms - fixed_ms))
        // Relative errors: a long seek need not be known better than a short one.
        .map(|(row, value)| (row.map(|x| x / (value + fixed_ms)), value / (value + fixed_ms)))
        .collect();
    let mut best = (f64::INFINITY, Lee { a: 0.0, b: 0.0, c: 0.0 });
    for used in 1..8u32 {
        let used = [used & 1 != 0, used & 2 != 0, used & 4 != 0];
        let Some(x) = least_squares(&rows, used) else { continue };
        if x.iter().any(|&coefficient| coefficient < 0.0) {
            continue;
        }
        let off = |(row, value): &([f64; 3], f64)| {
            (row.iter().zip(&x).map(|(r, c)| r * c).sum::<f64>() - value).powi(2)
        };
        let error: f64 = rows.iter().map(off).sum();
        if error < best.0 {
            best = (error, Lee { a: x[0], b: x[1], c: x[2] });
        }
    }
    best.1
}

/// Solves the normal equations of the columns used; `None` when they do not tell the columns apart.
fn least_squares(rows: &[([f64; 3], f64)], used: [bool; 3]) -> Option<[f64; 3]> {
    // Columns differ by orders of magnitude: each is divided by its length.
    let length = |i: usize| rows.iter().map(|(row, _)| row[i] * row[i]).sum::<f64>().sqrt();
    let scale = [length(0), length(1), length(2)];
    let columns: Vec<usize> = (0..3).filter(|&i| used[i] && scale[i] > 0.0).collect();
    let n = columns.len();
    let mut matrix = vec![vec![0.0; n + 1]; n];
    for (row, value) in rows {
        for (i, &column) in columns.iter().enumerate() {
            let of_column = row[column] / scale[column];
            for (j, &other) in columns.iter().enumerate() {
                matrix[i][j] += of_column * row[other] / scale[other];
            }
            matrix[i][n] += of_column * value;
        }
    }
    // Gauss with the largest pivot.
    for i in 0..n {
        let pivot = (i..n).max_by(|&x, &y| matrix[x][i].abs().total_cmp(&matrix[y][i].abs()))?;
        matrix.swap(i, pivot);
        if matrix[i][i].abs() < 1e-12 {
            return None;
        }
        let row = matrix[i].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = other[i] / row[i];
            other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    let mut solution = [0.0; 3];
    for (i, &column) in columns.iter().enumerate() {
        solution[column] = matrix[i][n] / matrix[i][i] / scale[column];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_over_spans_give_the_curve_back() {
        let wanted = Lee { a: 0.033_623, b: 1.3259e-5, c: 0.8 };
        let points = [150.0, 1500.0, 15_000.0, 153_352.0].map(|n: f64| (n, wanted.times(n).1 + 4.4));
        let found = lee(&points, 4.4);
        assert!((found.a / wanted.a - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.b / wanted.b - 1.0).abs() < 1e-6 && (found.c / wanted.c - 1.0).abs() < 1e-6);
    }

    #[test]
    fn no_coefficient_is_negative() {
        let falling = [(10.0, 9.0), (100.0, 8.0), (1000.0, 7.0)];
        let found = lee(&falling, 4.0);
        assert!(found.a >= 0.0 && found.b >= 0.0 && found.c >= 0.0, "{found:?}");
    }

    #[test]
    fn outer_sectors_lie_on_fewer_cylinders() {
        let even = Geometry { cylinders: 1000.0, outer: 100.0, inner: 100.0 };
        let zoned = Geometry { cylinders: 1000.0, outer: 200.0, inner: 100.0 };
        assert!((even.cylinders_of(0.1) - 0.1).abs() < 1e-9);
        assert!((0.07..0.08).contains(&zoned.cylinders_of(0.1)));
        assert!((zoned.cylinders_of(1.0) - 1.0).abs() < 1e-9);
    }
}
