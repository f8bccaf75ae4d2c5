//! A run in stretches that a figure has room for, each in parts that say how much a value moved within it.

use std::ops::Range;

/// Stretches of a run in a figure.
const WINDOWS_MAX: usize = 24;
/// Parts of a stretch.
const PARTS: usize = 4;

/// A stretch of intervals, and its parts.
pub(crate) struct Window {
    pub whole: Range<usize>,
    pub parts: Vec<Range<usize>>,
}

impl Window {
    /// A value of the stretch with the lowest and the highest of its parts; `None`: there is none.
    pub(crate) fn value(&self, of: impl Fn(Range<usize>) -> Option<f64>) -> Option<(f64, (f64, f64))> {
        let whole = of(self.whole.clone())?;
        let parts = self.parts.iter().filter_map(|part| of(part.clone()));
        Some((whole, parts.fold((whole, whole), |(low, high), value| (low.min(value), high.max(value)))))
    }
}

/// So many intervals, in at most [`WINDOWS_MAX`] stretches of equal length; the last may be shorter.
pub(crate) fn windows(count: usize) -> Vec<Window> {
    let step =
        if count < 2 * WINDOWS_MAX { 1 + usize::from(count >= 16) } else { count.div_ceil(WINDOWS_MAX) };
    let part = step.div_ceil(PARTS).max(1);
    let split = |whole: Range<usize>, step: usize| {
        let end = whole.end;
        whole.step_by(step).map(move |from| from..(from + step).min(end)).collect::<Vec<_>>()
    };
    split(0..count, step)
        .into_iter()
        .map(|whole| Window { parts: split(whole.clone(), part), whole })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_their_parts_leave_nothing_out() {
        for count in [0, 1, 5, 17, 60, 61, 511, 512] {
            let windows = windows(count);
            assert!(windows.len() <= WINDOWS_MAX.max(count.min(15)), "{count}: {}", windows.len());
            let parts: Vec<usize> = windows.iter().flat_map(|w| w.parts.iter().cloned().flatten()).collect();
            assert_eq!(parts, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_band_holds_the_values_of_the_parts() {
        let window = Window { whole: 0..2, parts: vec![0..1, 1..2] };
        let values = [1.0, 5.0];
        let mean = |at: Range<usize>| Some(values[at.clone()].iter().sum::<f64>() / at.len() as f64);
        assert_eq!(window.value(mean), Some((3.0, (1.0, 5.0))));
    }
}
