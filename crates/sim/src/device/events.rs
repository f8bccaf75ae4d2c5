//! What a model keeps of the future: a queue of events in order of time, and the time it has been busy.

/// Children of a node: four lie in one cache line, and a heap of four has half the levels of a heap of two.
const CHILDREN: usize = 4;
/// A key's bits for the place of the event, and for its number.
const PLACE_BITS: u32 = 28;
const NUMBER_BITS: u32 = 36;

/// Events in order of time; equal times keep the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct Events<T> {
    /// A heap: time, number in the order of adding and place among `whats`, in one integer that is cheap to compare and to move.
    heap: Vec<u128>,
    whats: Vec<T>,
    free: Vec<u32>,
    count: u64,
}

impl<T: Copy> Events<T> {
    /// An empty queue with room for `capacity` events before it allocates.
    pub(super) fn with_capacity(capacity: usize) -> Events<T> {
        let (heap, whats) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Events { heap, whats, free: Vec::with_capacity(capacity), count: 0 }
    }

    /// Add an event.
    #[inline]
    pub(super) fn push(&mut self, at: u64, what: T) {
        let place = match self.free.pop() {
            Some(place) => {
                self.whats[place as usize] = what;
                place
            }
            None => {
                self.whats.push(what);
                self.whats.len() as u32 - 1
            }
        };
        self.count = if self.heap.is_empty() { 0 } else { self.count + 1 };
        debug_assert!(place >> PLACE_BITS == 0 && self.count >> NUMBER_BITS == 0, "no room in the key");
        let key = u128::from(at) << 64 | u128::from(self.count << PLACE_BITS | u64::from(place));
        self.heap.push(key);
        self.rise(key);
    }

    /// When the first event happens.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        self.heap.first().map(|key| (key >> 64) as u64)
    }

    /// Take the first event if it happens at `now` or before.
    #[inline]
    pub(super) fn pop_until(&mut self, now: u64) -> Option<(u64, T)> {
        let first = *self.heap.first()?;
        let at = (first >> 64) as u64;
        if at > now {
            return None;
        }
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sink(last);
        }
        let place = first as u32 & ((1 << PLACE_BITS) - 1);
        self.free.push(place);
        Some((at, self.whats[place as usize]))
    }

    /// The last key rises to its place.
    #[inline]
    fn rise(&mut self, key: u128) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = key;
    }

    /// `key` sinks from the top, which is free, to its place.
    #[inline]
    fn sink(&mut self, key: u128) {
        let mut at = 0;
        loop {
            let first = at * CHILDREN + 1;
            let least = match self.heap.get(first..) {
                Some([a, b, c, d, ..]) => {
                    let (low, high) = (usize::from(b < a), usize::from(d < c));
                    let (left, right) = (*a.min(b), *c.min(d));
                    first + if right < left { 2 + high } else { low }
                }
                Some(few @ [_, ..]) => first + least_of(few),
                _ => break,
            };
            let child = self.heap[least];
            if child >= key {
                break;
            }
            self.heap[at] = child;
            at = least;
        }
        self.heap[at] = key;
    }
}

/// The place of the least of at most three keys, which all differ.
fn least_of(keys: &[u128]) -> usize {
    (1..keys.len()).fold(0, |least, at| if keys[at] < keys[least] { at } else { least })
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

    /// Against the plain definition, with few times and many events, so that most are equal.
    #[test]
    fn they_come_in_order_of_time_and_adding() {
        let mut rng = super::super::rng::Rng::new(3);
        let (mut events, mut plain) = (Events::with_capacity(0), Vec::<(u64, u32)>::new());
        for number in 0..20_000u32 {
            let full = plain.len() > 200 || number > 19_000;
            if full || rng.below(5) < 2 {
                plain.sort();
                let until = plain.first().map_or(0, |(at, _)| *at);
                assert_eq!(until.checked_sub(1).and_then(|before| events.pop_until(before)), None);
                let expected = (!plain.is_empty()).then(|| plain.remove(0));
                assert_eq!(events.pop_until(until), expected);
            } else {
                let at = rng.below(40);
                events.push(at, number);
                plain.push((at, number));
            }
        }
    }

    #[test]
    fn a_rate_is_exact_to_a_nanosecond() {
        assert_eq!(Rate::mb_per_s(400.0).ns(65_536), 163_840);
        assert_eq!(Rate::mb_per_s(3360.0).ns(4096), 1219);
    }
}
