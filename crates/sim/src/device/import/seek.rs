//! Seek curves as DiskSim has them: measured tables, and formulas.

use std::path::Path;

use super::super::spec::{SpecError, shown};
use super::syntax::{Block, Item, number, text_of};

/// Longest seek believed, ms.
const SEEK_MS_MAX: f64 = 10_000.0;
/// Points of a curve that is a formula after its first ten distances.
const POINTS: u32 = 256;

/// The seek curve, as lines of a `[seek]` section.
pub(super) fn lines(mechanics: &Block, cylinders: u64, folder: &Path) -> Result<String, SpecError> {
    let time = |name: &str| mechanics.number(name, 0.0, SEEK_MS_MAX);
    let kind = mechanics.word("Seek type")?;
    Ok(match kind {
        "extracted" => table(&read_table(mechanics, folder)?),
        "constant" => table(&[(1.0, time("Constant seek time")?)]),
        "linear" => {
            // Straight lines between the times for one cylinder, a third of them, and all.
            let third = (cylinders as f64 / 3.0).floor();
            let last = cylinders.saturating_sub(1) as f64;
            let mut points = vec![(1.0, time("Single cylinder seek time")?)];
            points.push((third, time("Average seek time")?));
            points.push((last, time("Full strobe seek time")?));
            points.dedup_by(|next, before| next.0 <= before.0);
            table(&points)
        }
        "curve" => format!(
            "curve = \"lee\"\nmin_ms = {}\nmean_ms = {}\nmax_ms = {}\n",
            time("Single cylinder seek time")?,
            time("Average seek time")?,
            time("Full strobe seek time")?
        ),
        "hpl" => {
            let v = formula(mechanics)?;
            let single = if v[5] >= 0.0 { format!("single_ms = {}\n", v[5]) } else { String::new() };
            format!(
                "curve = \"hp\"\nnear_ms = {}\nnear_root_ms = {}\nknee_cylinders = {}\nfar_ms = {}\nfar_slope_ms = {}\n{single}",
                v[1], v[2], v[0] as u64, v[3], v[4]
            )
        }
        "hplplus10" => table(&ten_and_formula(mechanics, cylinders)?),
        other => {
            let message = format!(
                "\"Seek type\" is \"{}\", but must be extracted, constant, linear, curve, hpl or hplplus10",
                shown(other)
            );
            return Err(mechanics.get("Seek type")?.place.error(message));
        }
    })
}

fn table(points: &[(f64, f64)]) -> String {
    let mut out = String::from("curve = \"table\"\npoints = [");
    for (index, (distance, ms)) in points.iter().enumerate() {
        out.push_str(if index % 6 == 0 { "\n    " } else { " " });
        out.push_str(&format!("[{distance}, {ms}],"));
    }
    out.push_str("\n]\n");
    out
}

/// The six values of Ruemmler and Wilkes' form.
fn formula(mechanics: &Block) -> Result<[f64; 6], SpecError> {
    let name = "HPL seek equation values";
    let list = numbers(mechanics.list(name)?, name, -1.0)?;
    <[f64; 6]>::try_from(list).map_err(|list| {
        mechanics.place.error(format!("\"{name}\" has {} values, but must have 6", list.len()))
    })
}

fn numbers(list: &[Item], name: &str, min: f64) -> Result<Vec<f64>, SpecError> {
    list.iter().map(|item| number(item, name, min, 1e7)).collect()
}

fn ten_and_formula(mechanics: &Block, cylinders: u64) -> Result<Vec<(f64, f64)>, SpecError> {
    let v = formula(mechanics)?;
    let name = "First ten seek times";
    let ten = numbers(mechanics.list(name)?, name, 0.0)?;
    if ten.len() != 10 {
        let message = format!("\"{name}\" has {} values, but must have 10", ten.len());
        return Err(mechanics.place.error(message));
    }
    let mut points: Vec<(f64, f64)> = ten.iter().enumerate().map(|(d, ms)| (d as f64 + 1.0, *ms)).collect();
    // Evenly on a logarithmic scale: the root bends most at its start.
    let (from, to) = (11.0f64, cylinders.saturating_sub(1).max(11) as f64);
    for step in 0..=POINTS {
        let d = (from * (to / from).powf(f64::from(step) / f64::from(POINTS))).round();
        let ms = if d < v[0] { v[1] + v[2] * d.sqrt() } else { v[3] + v[4] * d };
        if points.last().is_some_and(|last| last.0 < d) {
            points.push((d, ms));
        }
    }
    Ok(points)
}

/// `Seek distances measured: N`, then a line `cylinders, ms` each.
fn read_table(mechanics: &Block, folder: &Path) -> Result<Vec<(f64, f64)>, SpecError> {
    let name = mechanics.word("Full seek curve")?;
    let path = folder.join(name);
    let text = text_of(&path).map_err(|error| {
        let place = mechanics.get("Full seek curve").map(|item| item.place.clone());
        let message = format!("seek curve {}: {}", shown(name), error.message);
        place.map_or(error, |place| place.error(message))
    })?;
    let origin = path.to_string_lossy().into_owned();
    let fault =
        |line: usize, message: String| SpecError { origin: origin.clone(), line: Some(line + 1), message };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let expected = "Seek distances measured: N";
    let Some((first, header)) = lines.next() else {
        return Err(fault(0, format!("empty; expected \"{expected}\"")));
    };
    let count =
        header.trim().strip_prefix("Seek distances measured:").and_then(|n| n.trim().parse::<usize>().ok());
    let Some(count) = count else {
        return Err(fault(
            first,
            format!("\"{}\" is out of place; expected \"{expected}\"", shown(header.trim())),
        ));
    };
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (line, text) in lines {
        let mut words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty()).map(str::parse::<f64>);
        let (Some(Ok(distance)), Some(Ok(ms))) = (words.next(), words.next()) else {
            return Err(fault(
                line,
                format!("\"{}\" must be \"cylinders, milliseconds\"", shown(text.trim())),
            ));
        };
        if !(distance >= 1.0 && distance.fract() == 0.0 && (0.0..=SEEK_MS_MAX).contains(&ms)) {
            let message =
                format!("\"{}\": cylinders from 1 on, milliseconds up to {SEEK_MS_MAX}", shown(text.trim()));
            return Err(fault(line, message));
        }
        if points.last().is_some_and(|last| distance <= last.0) {
            return Err(fault(line, format!("{distance} cylinders do not lie behind the line before")));
        }
        points.push((distance, ms));
    }
    if points.len() != count || count == 0 {
        return Err(fault(first, format!("{count} distances are announced, and {} follow", points.len())));
    }
    Ok(points)
}
