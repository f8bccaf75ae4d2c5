//! What a turn costs: the measure in which groups get their shares.

use super::tunables::Choice;

/// What a group used in one turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// Device time, nanoseconds.
    pub time_ns: u64,
    /// Requests it sent.
    pub requests: u64,
    /// Sectors of these.
    pub sectors: u64,
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

    /// What a turn costs, in nanoseconds of a slice.
    #[inline]
    pub const fn of(self, used: &Used) -> u64 {
        match self {
            Charge::DeviceTime => used.time_ns,
            Charge::Bytes => used.sectors.saturating_mul(SECTOR_NS),
            Charge::Requests => used.requests.saturating_mul(REQUEST_NS),
        }
    }
}
