//! What service costs: the measure in which groups get their shares.

use super::tunables::Choice;

/// Service that a group has to pay for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bill {
    /// Time the device was busy for it, nanoseconds.
    pub time_ns: u64,
    /// Of that, time that transferred nothing (flushes, requests that were handed back), nanoseconds.
    pub dry_ns: u64,
    /// Time the device was kept empty for it, nanoseconds.
    pub waited_ns: u64,
    /// Sectors that were transferred (up to 2 TiB a turn; it stops there).
    pub sectors: u32,
    /// Requests that were done.
    pub requests: u32,
}

impl Bill {
    /// Nothing.
    pub const NONE: Bill = Bill { time_ns: 0, dry_ns: 0, waited_ns: 0, sectors: 0, requests: 0 };

    #[inline]
    pub(super) fn add(&mut self, more: &Bill) {
        self.time_ns += more.time_ns;
        self.dry_ns += more.dry_ns;
        self.waited_ns += more.waited_ns;
        self.sectors = self.sectors.saturating_add(more.sectors);
        self.requests = self.requests.saturating_add(more.requests);
    }
}

/// What is shared out by weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Charge {
    /// The device's time: a random reader and a sequential one each get theirs, whatever they make of it.
    #[default]
    DeviceTime,
    /// What is transferred: who seeks gets more of the time.
    Bytes,
    /// The number of requests: for devices to which all requests are equal, and which serve several at once, so that time
    /// cannot be told apart.
    Requests,
}

/// A sector at 100 MB/s, and a request at 10,000 a second: so that a turn costs about as much by any measure, and the
/// deadlines of [`super::fair`], which are reckoned with the length of a slice, make sense.
const SECTOR_NS: u64 = 5_120;
const REQUEST_NS: u64 = 100_000;

impl Charge {
    /// The words of the tunable `charge`, in order.
    pub(super) const WORDS: Choice = &["time", "bytes", "requests"];

    pub(super) const fn from_stored(stored: u64) -> Charge {
        match stored {
            1 => Charge::Bytes,
            2 => Charge::Requests,
            _ => Charge::DeviceTime,
        }
    }

    /// What a bill comes to, in nanoseconds of a slice. A wait costs as much as the device, as fast as it is, would have done
    /// in that time; so does time without a transfer where bytes are charged.
    #[inline]
    pub(super) fn cost_ns(self, bill: &Bill, speed: &Speed) -> u64 {
        match self {
            Charge::DeviceTime => bill.time_ns.saturating_add(bill.waited_ns),
            Charge::Bytes => {
                let dry_ns = bill.waited_ns.saturating_add(bill.dry_ns);
                let lost_ns = speed.sectors_in(dry_ns).saturating_mul(SECTOR_NS);
                (u64::from(bill.sectors) * SECTOR_NS).saturating_add(lost_ns)
            }
            Charge::Requests => {
                let lost_ns = speed.requests_in(bill.waited_ns).saturating_mul(REQUEST_NS);
                (u64::from(bill.requests) * REQUEST_NS).saturating_add(lost_ns)
            }
        }
    }
}

/// How fast the device has been lately: sums over some dozens of requests, the older halved again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    busy_ns: u64,
    sectors: u64,
    requests: u64,
}

/// Requests after which the sums are halved.
const MEMORY: u64 = 64;
/// One that took more than so many times the mean is counted as that: a request that was retried for seconds says nothing of the
/// next ones.
const OUTLIER: u64 = 4;
/// One that took no more than this is none, however fast the others are.
const LEAST_OUTLIER_NS: u64 = crate::MS;

impl Speed {
    /// Nothing was seen yet: a device of [`REQUEST_NS`] a request.
    pub(super) const UNKNOWN: Speed = Speed { busy_ns: 0, sectors: 0, requests: 0 };

    /// A request took `busy_ns` of the device.
    #[inline]
    pub(super) fn learn(&mut self, busy_ns: u64, sectors: u32) {
        self.busy_ns += if busy_ns <= LEAST_OUTLIER_NS { busy_ns } else { busy_ns.min(self.most_ns()) };
        self.sectors += u64::from(sectors);
        self.requests += 1;
        if self.requests >= MEMORY {
            *self = Speed { busy_ns: self.busy_ns / 2, sectors: self.sectors / 2, requests: MEMORY / 2 };
        }
    }

    /// A request that took more counts as this.
    fn most_ns(&self) -> u64 {
        match self.requests {
            0 => crate::SECOND / 10,
            requests => (self.busy_ns / requests * OUTLIER).max(LEAST_OUTLIER_NS),
        }
    }

    /// 0 as long as nothing is known.
    #[inline]
    pub(super) fn time_of(&self, requests: u32) -> u64 {
        self.busy_ns.checked_div(self.requests).unwrap_or(0) * u64::from(requests)
    }

    /// What the bill for so many requests will be, as requests have been lately.
    pub(super) fn estimate(&self, requests: u32) -> Bill {
        if self.requests == 0 {
            return Bill::NONE;
        }
        let sectors = self.sectors / self.requests * u64::from(requests);
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        Bill { time_ns: self.time_of(requests), sectors, requests, ..Bill::NONE }
    }

    fn requests_in(&self, span_ns: u64) -> u64 {
        if self.busy_ns == 0 { span_ns / REQUEST_NS } else { scaled(span_ns, self.requests, self.busy_ns) }
    }

    fn sectors_in(&self, span_ns: u64) -> u64 {
        if self.busy_ns == 0 { span_ns / SECTOR_NS } else { scaled(span_ns, self.sectors, self.busy_ns) }
    }
}

/// `span * part / whole`, saturating, rounded up: a wait is never free.
fn scaled(span: u64, part: u64, whole: u64) -> u64 {
    let exact = (u128::from(span) * u128::from(part)).div_ceil(u128::from(whole));
    u64::try_from(exact).unwrap_or(u64::MAX)
}
