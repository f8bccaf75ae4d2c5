//! Where an axis has its marks: at round values.

/// Round values within a linear range, 1, 2 or 5 times a power of ten apart; about so many.
pub(crate) fn linear((low, high): (f64, f64), about: f64) -> Vec<f64> {
    let rough = (high - low) / about;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(power);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Places (logarithms) of round values within a range of logarithms: 1, 2, 5, 10 ... or 1, 10 ... or fewer. In a range too small
/// for two of these the values of a linear axis, as many as `about`.
pub(crate) fn logarithmic((low, high): (f64, f64), about: f64) -> Vec<f64> {
    let fine: &[f64] = match high - low {
        decades if decades <= 2.5 => &[1.0, 2.0, 5.0],
        decades if decades <= 4.0 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let every = ((high - low) / (2.0 * about)).ceil().max(1.0) as i64;
    let decades = low.floor() as i64..=high.ceil() as i64;
    let places: Vec<f64> = decades
        .filter(|d| d % every == 0)
        .flat_map(|d| fine.iter().map(move |m| d as f64 + m.log10()))
        .filter(|place| (low..=high).contains(place))
        .collect();
    if places.len() > 1 {
        return places;
    }
    linear((10f64.powf(low), 10f64.powf(high)), about)
        .into_iter()
        .filter(|value| *value > 0.0)
        .map(f64::log10)
        .collect()
}

/// Places of 0, 50, 90, 99, 99.9 ... percent, as numbers of nines.
pub(crate) fn nines((_, high): (f64, f64)) -> Vec<f64> {
    let whole = (1..=high.floor().max(0.0) as u32).map(f64::from);
    [0.0, 2f64.log10()].into_iter().chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        assert_eq!(linear((0.0, 31.0), 7.0), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
        assert_eq!(linear((0.0, 1.0), 7.0).len(), 6);
        let values: Vec<f64> =
            logarithmic((3.2, 4.8), 7.0).into_iter().map(|p| 10f64.powf(p).round()).collect();
        assert_eq!(values, [2000.0, 5000.0, 10000.0, 20000.0, 50000.0]);
        let close: Vec<f64> = logarithmic((6.01f64.log10(), 6.99f64.log10()), 4.0)
            .into_iter()
            .map(|p| (10f64.powf(p) * 10.0).round() / 10.0)
            .collect();
        assert_eq!(close, [6.5], "a range without a round value of its own");
        assert_eq!(nines((0.0, 2.3)), [0.0, 2f64.log10(), 1.0, 2.0]);
    }
}
