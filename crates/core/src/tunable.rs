//! Tunables: names, units, ranges and defaults as the kernel's `queue/iosched/` files have them.
//!
//! An elevator lists its tunables ([`crate::Elevator::tunables`]) and hands out the place where each value is
//! kept; parsing, range checks and unit conversion are here, once. The command line, sysfs and the docs print
//! the same list.

/// What a tunable's number means to a person, and how it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Shown in milliseconds, stored in nanoseconds.
    Milliseconds,
    /// Shown in microseconds, stored in nanoseconds.
    Microseconds,
    /// Nanoseconds, stored as such.
    Nanoseconds,
    /// A number of requests.
    Requests,
    /// KiB, stored as such.
    Kibibytes,
    /// A plain number.
    Number,
    /// 0 or 1.
    Switch,
    /// One of these words; stored as its position.
    Choice(&'static [&'static str]),
}

/// One tunable. `min`, `max` and `default` are in the shown unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunable {
    /// The kernel's name.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
    /// Default.
    pub default: u64,
    /// What it does, in one line.
    pub about: &'static str,
}

/// Why a value was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetError {
    /// The elevator has no such tunable.
    Unknown,
    /// Not a number (or not one of the words).
    Malformed(&'static Tunable),
    /// Outside `min..=max`.
    OutOfRange(&'static Tunable),
}

impl Unit {
    /// Stored units in one shown unit.
    pub const fn scale(self) -> u64 {
        match self {
            Unit::Milliseconds => crate::MS,
            Unit::Microseconds => 1_000,
            _ => 1,
        }
    }

    /// The unit's short name; empty for plain numbers and words.
    pub const fn label(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
            Unit::Requests => "requests",
            Unit::Kibibytes => "KiB",
            Unit::Number | Unit::Switch | Unit::Choice(_) => "",
        }
    }
}

impl Tunable {
    /// A tunable in the shown unit.
    pub const fn new(
        name: &'static str,
        unit: Unit,
        range: (u64, u64),
        default: u64,
        about: &'static str,
    ) -> Tunable {
        assert!(range.0 <= default && default <= range.1, "the default is in range");
        Tunable { name, unit, min: range.0, max: range.1, default, about }
    }

    /// The default as it is stored.
    pub const fn stored_default(&self) -> u64 {
        self.default * self.unit.scale()
    }

    /// `text` as it is stored.
    ///
    /// # Errors
    /// [`SetError::Malformed`] or [`SetError::OutOfRange`].
    pub fn parse(&'static self, text: &str) -> Result<u64, SetError> {
        let text = text.trim();
        if let Unit::Choice(words) = self.unit {
            let position = words.iter().position(|w| *w == text);
            return position.map(|p| p as u64).ok_or(SetError::Malformed(self));
        }
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(SetError::Malformed(self));
        }
        let value: u64 = text.parse().map_err(|_| SetError::OutOfRange(self))?;
        if value < self.min || value > self.max {
            return Err(SetError::OutOfRange(self));
        }
        value.checked_mul(self.unit.scale()).ok_or(SetError::OutOfRange(self))
    }
}

/// The entry called `name` in a list of tunables.
pub fn find(list: &'static [Tunable], name: &str) -> Option<&'static Tunable> {
    list.iter().find(|t| t.name == name)
}
