//! Traces whose clock counts whole seconds: the arrivals of a second are spread evenly over it.

use super::load::Arrival;

const SECOND_NS: u64 = 1_000_000_000;

/// Holds back the arrivals of a second as long as all stamps so far are whole seconds.
#[derive(Debug, Default)]
pub(super) struct WholeSeconds {
    held: Vec<Arrival>,
    seconds: u64,
    is_finer: bool,
    spread: u64,
}

impl WholeSeconds {
    /// Take an arrival; `add` gets it, or gets it later.
    pub(super) fn take(&mut self, arrival: Arrival, add: &mut impl FnMut(Arrival)) {
        if !self.is_finer && !arrival.at_ns.is_multiple_of(SECOND_NS) {
            self.is_finer = true;
            self.held.drain(..).for_each(&mut *add);
        }
        if self.is_finer {
            return add(arrival);
        }
        if self.held.last().is_some_and(|held| held.at_ns != arrival.at_ns) {
            self.spread_out(add);
        }
        self.held.push(arrival);
    }

    fn spread_out(&mut self, add: &mut impl FnMut(Arrival)) {
        let count = self.held.len() as u64;
        self.seconds += 1;
        for (mut arrival, index) in self.held.drain(..).zip(0u64..) {
            let part_ns = (u128::from(index) * u128::from(SECOND_NS) / u128::from(count.max(1))) as u64;
            self.spread += u64::from(part_ns > 0);
            arrival.at_ns = arrival.at_ns.saturating_add(part_ns);
            add(arrival);
        }
    }

    /// The end of the trace. A single stamp says nothing about the clock's step, unless the format does (`is_coarse`).
    /// Returns how many arrivals were moved.
    pub(super) fn finish(&mut self, is_coarse: bool, add: &mut impl FnMut(Arrival)) -> u64 {
        if self.seconds > 0 || is_coarse {
            self.spread_out(add);
        } else {
            self.held.drain(..).for_each(add);
        }
        self.spread
    }
}
