//! The device's thread: it waits for the time that the queue or the back end named, or until another thread hands over to it.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use std::{io, thread};

use super::Device;
use crate::clock;

/// Nothing is to come.
pub(super) const NEVER: u64 = u64::MAX;
/// How late a sleeping thread may be woken, nanoseconds: 99 % of the answers of a modelled disk were late by up to 115 us when the
/// thread slept until they were due. Who must not be late wakes so long before, and looks at the clock for the rest.
pub(super) const AHEAD_NS: u64 = 100_000;

#[derive(Debug)]
struct Shared {
    /// When to wake up next; never later than a thread asked for.
    due: AtomicU64,
    /// How long before it the thread wakes up.
    ahead_ns: u64,
    lock: Mutex<bool>,
    earlier: Condvar,
}

/// When the device is to be asked again.
#[derive(Debug)]
pub(super) struct Timer(Arc<Shared>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait for what is due; `false`: no more.
    fn wait(&self) -> bool {
        let mut stopped = self.lock();
        while !*stopped {
            let (due, now) = (self.due.load(SeqCst), clock::now());
            if due <= now {
                self.due.store(NEVER, SeqCst);
                return true;
            }
            stopped = if due == NEVER {
                self.earlier.wait(stopped).unwrap_or_else(PoisonError::into_inner)
            } else if due - now <= self.ahead_ns {
                drop(stopped);
                self.look();
                self.lock()
            } else {
                let left = Duration::from_nanos(due - now - self.ahead_ns);
                self.earlier.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0
            };
        }
        false
    }

    /// Look at the clock until something is due.
    fn look(&self) {
        while clock::now() < self.due.load(SeqCst) {
            std::hint::spin_loop();
        }
    }
}

impl Timer {
    /// One whose thread wakes up that long before something is due.
    pub(super) fn new(ahead_ns: u64) -> Timer {
        let (lock, earlier) = (Mutex::default(), Condvar::new());
        Timer(Arc::new(Shared { due: AtomicU64::new(NEVER), ahead_ns, lock, earlier }))
    }

    /// Start the thread.
    pub(super) fn start(&self, device: Weak<Device>) -> io::Result<()> {
        let shared = self.0.clone();
        thread::Builder::new().name("timer".to_owned()).spawn(move || {
            // Timers may be 50 us late by default, so that the processor sleeps longer; where that cannot be changed they are.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            while shared.wait() {
                match device.upgrade() {
                    Some(device) => device.tick(),
                    None => return,
                }
            }
        })?;
        Ok(())
    }

    /// Wake up at `at`, or before.
    pub(super) fn set(&self, at: u64) {
        if at < self.0.due.load(SeqCst) {
            let guard = self.0.lock();
            if self.0.due.fetch_min(at, SeqCst) > at {
                self.0.earlier.notify_one();
            }
            drop(guard);
        }
    }

    pub(super) fn stop(&self) {
        *self.0.lock() = true;
        self.0.earlier.notify_one();
    }
}
