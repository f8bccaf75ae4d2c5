//! Token buckets, kept as the time at which they would be full again (the generic cell rate algorithm).

/// When a command may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pays {
    /// Once the bucket has all its tokens.
    Before,
    /// Once the bucket is not overdrawn; its tokens are owed by those behind it (QEMU).
    After,
}

/// A token bucket; times in nanoseconds with 20 fractional bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    token: u128,
    /// Time to fill it from empty.
    depth: u128,
    full_at: u128,
}

const FRACTION: u32 = 20;

impl Bucket {
    pub(super) fn new(tokens_per_s: f64, tokens: f64) -> Bucket {
        let token = 1e9 / tokens_per_s * (1u64 << FRACTION) as f64;
        Bucket { token: token as u128, depth: (token * tokens) as u128, full_at: 0 }
    }

    /// When `tokens` may go, from `now` on. More tokens than it holds are given when it is full.
    pub(super) fn ready_at(&self, tokens: u64, pays: Pays, now: u64) -> u64 {
        let cost = match pays {
            Pays::Before => (u128::from(tokens) * self.token).min(self.depth),
            Pays::After => 0,
        };
        let at = (self.full_at + cost).saturating_sub(self.depth);
        // Rounded up: never early. Simulated time fits 64 bits with room to spare.
        now.max(((at + ((1 << FRACTION) - 1)) >> FRACTION) as u64)
    }

    pub(super) fn take(&mut self, tokens: u64, now: u64) {
        self.full_at = self.full_at.max(u128::from(now) << FRACTION) + u128::from(tokens) * self.token;
    }
}

/// A bucket of operations and one of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limiter {
    pub(super) operations: Bucket,
    pub(super) bytes: Bucket,
}

impl Limiter {
    pub(super) fn ready_at(&self, cost: Cost, pays: Pays, now: u64) -> u64 {
        let at = self.operations.ready_at(cost.operations, pays, now);
        self.bytes.ready_at(cost.bytes, pays, at)
    }

    pub(super) fn take(&mut self, cost: Cost, now: u64) {
        self.operations.take(cost.operations, now);
        self.bytes.take(cost.bytes, now);
    }
}

/// What a command is charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) operations: u64,
    pub(super) bytes: u64,
}
