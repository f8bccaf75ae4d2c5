//! What it costs a stream to come back after others: what a turn saves each time it goes on.
//!
//! A *run* is what a stream sends without another flow between. Of a device that serves one after the other it is known what each
//! request cost. From the third of a run on, that is what going on costs, by size; what the first two cost more than that is the
//! price of coming back. (The first two: a drive that read ahead has the first one's data, and seeks for the second.) It is a
//! mean over runs; below a quarter of what the same requests cost going on it may be chance, and counts as nothing. Before it is
//! known: a seek where the device says that seeks cost time, else nothing.

use super::device::SIZES;
use crate::MS;

/// What coming back is taken to cost where seeks cost time, before it is known.
const SEEK_NS: u64 = 5 * MS;
/// A turn lasts so many times what it saves: then a twelfth of the time goes into coming back.
pub(super) const TURN_SAVINGS: u64 = 12;
/// Requests of a run that may pay for coming back.
const FIRST: u8 = 2;

/// The longest cost that counts, nanoseconds (18 minutes).
const COST_MAX_NS: u64 = 1 << 40;

/// The number of a request in its run, from 0.
pub(super) type Step = u8;

#[derive(Clone, Copy, Debug)]
pub(super) struct Returns {
    /// What a read costs that goes on, by size, nanoseconds; 0: not known.
    going_on_ns: [u64; SIZES],
    /// Of the run that goes on: what its first requests cost, and what they would have cost going on.
    run_ns: [u64; 2],
    /// Means of both over runs, nanoseconds; `None`: there was none yet.
    mean_ns: Option<[u64; 2]>,
}

fn mean(old_ns: u64, new_ns: u64) -> u64 {
    (7 * old_ns + new_ns) / 8
}

impl Returns {
    pub(super) const NEW: Returns = Returns { going_on_ns: [0; SIZES], run_ns: [0; 2], mean_ns: None };

    /// What a run saves when it is not interrupted, nanoseconds.
    #[inline]
    pub(super) fn saving_ns(&self, rotational: bool) -> u64 {
        match self.mean_ns {
            None if rotational => SEEK_NS,
            None => 0,
            Some([cost_ns, on_ns]) if 4 * cost_ns < 5 * on_ns => 0,
            Some([cost_ns, on_ns]) => cost_ns - on_ns,
        }
    }

    /// A stream's read is done, the one of this number in its run.
    pub(super) fn done(&mut self, step: Step, size: usize, cost_ns: u64) {
        let cost_ns = cost_ns.min(COST_MAX_NS);
        if step == 0 {
            self.run_over();
        }
        if step >= FIRST {
            let going_on_ns = &mut self.going_on_ns[size];
            *going_on_ns = if *going_on_ns == 0 { cost_ns } else { mean(*going_on_ns, cost_ns) };
        } else if let Some(on_ns) = self.going_on(size) {
            self.run_ns[0] += cost_ns;
            self.run_ns[1] += on_ns;
        }
    }

    /// What a read of this size costs that goes on; by the nearest size of which that is known.
    fn going_on(&self, size: usize) -> Option<u64> {
        let known = |other: &usize| self.going_on_ns[*other] > 0;
        let nearest = (0..SIZES).filter(known).min_by_key(|other| other.abs_diff(size))?;
        let ns = self.going_on_ns[nearest];
        Some(if nearest < size { ns << (size - nearest) } else { ns >> (nearest - size) })
    }

    fn run_over(&mut self) {
        let [cost_ns, on_ns] = core::mem::take(&mut self.run_ns);
        if on_ns > 0 {
            let [old_ns, old_on_ns] = self.mean_ns.unwrap_or([cost_ns, on_ns]);
            self.mean_ns = Some([mean(old_ns, cost_ns), mean(old_on_ns, on_ns)]);
        }
    }
}
