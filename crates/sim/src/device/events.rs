//! What a model keeps of the future: a queue of events in order of time, and the time it has been busy.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events in order of time; equal times keep the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct Events<T> {
    heap: BinaryHeap<Entry<T>>,
    count: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    // Reversed: the standard heap has its greatest element on top.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> Events<T> {
    /// An empty queue with room for `capacity` events before it allocates.
    pub(super) fn with_capacity(capacity: usize) -> Events<T> {
        Events { heap: BinaryHeap::with_capacity(capacity), count: 0 }
    }

    /// Add an event.
    #[inline]
    pub(super) fn push(&mut self, at: u64, what: T) {
        self.count += 1;
        self.heap.push(Entry { at, number: self.count, what });
    }

    /// When the first event happens.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Take the first event if it happens at `now` or before.
    #[inline]
    pub(super) fn pop_until(&mut self, now: u64) -> Option<(u64, T)> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }
}

/// Adds up the time a device has been busy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyClock {
    total_ns: u64,
    since: u64,
    busy: bool,
}

impl BusyClock {
    /// From `now` on the device is busy or not.
    #[inline]
    pub(super) fn set(&mut self, busy: bool, now: u64) {
        if self.busy {
            self.total_ns += now.saturating_sub(self.since);
        }
        self.since = self.since.max(now);
        self.busy = busy;
    }

    /// Busy nanoseconds up to the last [`set`](Self::set).
    #[inline]
    pub(super) fn total_ns(&self) -> u64 {
        self.total_ns
    }
}

/// Nanoseconds that `bytes` take at `bytes_per_s`, in integers: rate kept as nanoseconds per byte with 32
/// fractional bits, exact to a nanosecond for transfers up to 4 GiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    ns_per_byte_32: u64,
}

impl Rate {
    /// From megabytes (10^6) per second; the spec reader has checked that it is positive.
    pub(super) fn mb_per_s(rate: f64) -> Rate {
        Rate { ns_per_byte_32: (1000.0 / rate * 4_294_967_296.0) as u64 }
    }

    /// Bytes moved in `ns` nanoseconds.
    pub(super) fn bytes(self, ns: u64) -> u64 {
        u64::try_from((u128::from(ns) << 32) / u128::from(self.ns_per_byte_32.max(1))).unwrap_or(u64::MAX)
    }

    /// Time for `bytes`, nanoseconds.
    #[inline]
    pub(super) fn ns(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.ns_per_byte_32)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut events = Events::with_capacity(4);
        for (at, what) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            events.push(at, what);
        }
        let mut order = String::new();
        while let Some((_, what)) = events.pop_until(5) {
            order.push(what);
        }
        assert_eq!(order, "bdac");
        assert_eq!(events.next_at(), None);
    }

    #[test]
    fn a_rate_is_exact_to_a_nanosecond() {
        assert_eq!(Rate::mb_per_s(400.0).ns(65_536), 163_840);
        assert_eq!(Rate::mb_per_s(3360.0).ns(4096), 1219);
    }
}
