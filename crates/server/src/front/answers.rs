//! Where a device leaves a front end's answers, and what wakes the thread that waits for them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::device::Mailbox;
use crate::io::Ios;

/// A mailbox that one thread empties.
#[derive(Debug)]
pub(super) struct Answers {
    ios: Mutex<Ios>,
    asleep: AtomicBool,
    event: OwnedFd,
}

impl Answers {
    /// # Errors
    /// A sentence: there is no file descriptor left.
    pub(super) fn new() -> Result<Answers, String> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let event = event.map_err(|error| format!("no file descriptor: {error}"))?;
        Ok(Answers { ios: Mutex::default(), asleep: AtomicBool::new(false), event })
    }

    fn ios(&self) -> MutexGuard<'_, Ios> {
        self.ios.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there.
    pub(super) fn take(&self) -> Ios {
        std::mem::take(&mut *self.ios())
    }

    /// From now on the next answer wakes the thread that waits for the file descriptor; is there nothing yet?
    pub(super) fn sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        self.ios().is_empty()
    }

    /// Answers need wake no thread any more; `came`: the file descriptor has woken this thread.
    pub(super) fn wake(&self, came: bool) {
        self.asleep.store(false, Ordering::SeqCst);
        if came {
            let mut count = [0; 8];
            // Somebody else cannot have read it; if nothing is there it is zero already.
            let _ = rustix::io::read(&self.event, &mut count);
        }
    }
}

impl AsFd for Answers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Mailbox for Answers {
    fn deliver(&self, ios: &mut Ios) {
        self.ios().append(ios);
        if self.asleep.swap(false, Ordering::SeqCst) {
            // Full means that it is about to wake.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }
}
