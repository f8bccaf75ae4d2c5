//! Who looks when a back end that depends on a clock has something due.
//!
//! The device's timer thread would do, but each answer would then wait for two threads to be woken: the timer's and the
//! client's. So the thread of a connection looks itself: it asks the back end whenever it comes by, sleeps no longer than
//! until [`AHEAD_NS`] before the next answer, and looks at the clock all the time from then on. One thread of a device does that at
//! a time, the *watcher*; others are woken by their answers. Where no connection watches, the timer thread does.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use super::timer::{AHEAD_NS, NEVER};
use super::{Device, Port};
use crate::clock;

/// The watcher comes by before it sleeps again.
const AWAKE: u64 = 0;

/// When a device's watcher looks next.
#[derive(Debug)]
pub(super) struct Watch {
    /// [`NEVER`]: there is no watcher.
    looks_at: AtomicU64,
}

/// How long a thread may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Not at all: come back at once.
    No,
    /// At most so long.
    For(Duration),
    /// Until it is woken.
    Any,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { looks_at: AtomicU64::new(NEVER) }
    }
}

impl Device {
    /// The back end has something due at `at`: a thread will look then.
    pub(super) fn expect(&self, at: u64) {
        // What was added to the back end before this is seen by a watcher that goes to sleep later.
        if at < self.watch.looks_at.load(SeqCst) {
            self.timer.set(at);
        }
    }

    /// Let the timer look for what is left.
    fn unwatch(&self) {
        self.watch.looks_at.store(NEVER, SeqCst);
        if let Some(at) = self.back.next_event() {
            self.expect(at);
        }
    }
}

impl Port {
    /// Do what is due on the device, if its back end depends on a clock and no other thread watches. To be called between any two
    /// sleeps.
    pub fn watch(&mut self) {
        if !self.device.is_timed || !self.is_watcher() {
            return;
        }
        if self.device.back.next_event().is_some_and(|at| at <= clock::now()) {
            self.device.tick();
        }
    }

    fn is_watcher(&mut self) -> bool {
        let looks_at = &self.device.watch.looks_at;
        if self.watches {
            looks_at.store(AWAKE, SeqCst);
        } else {
            self.watches = looks_at.compare_exchange(NEVER, AWAKE, SeqCst, SeqCst).is_ok();
        }
        self.watches
    }

    /// How long the caller may sleep without being late. What it is answered wakes it, and so does what its client sends.
    pub fn sleep(&mut self) -> Sleep {
        if !self.watches {
            return Sleep::Any;
        }
        loop {
            let Some(at) = self.device.back.next_event() else {
                self.stop_watching();
                return Sleep::Any;
            };
            let (wake, now) = (at.saturating_sub(AHEAD_NS), clock::now());
            if wake <= now {
                self.device.watch.looks_at.store(AWAKE, SeqCst);
                return Sleep::No;
            }
            self.device.watch.looks_at.store(wake, SeqCst);
            // Another thread may have made something due earlier, and relied on this one.
            if self.device.back.next_event() == Some(at) {
                return Sleep::For(Duration::from_nanos(wake - now));
            }
        }
    }

    /// As [`Port::sleep`], for a thread that cannot sleep for a given time.
    pub fn may_sleep(&mut self) -> bool {
        match self.sleep() {
            Sleep::No => false,
            Sleep::Any => true,
            Sleep::For(_) => {
                self.stop_watching();
                true
            }
        }
    }

    /// Its thread does not come by any more: another one looks from now on.
    pub fn stop_watching(&mut self) {
        if std::mem::take(&mut self.watches) {
            self.device.unwatch();
        }
    }
}
