//! A queue's ring in the guest's memory. The library's own methods for it would use memory that was not checked yet ([`Guest`]).

use std::io;
use std::ops::Deref;

use vhost_user_backend::{VringRwLock, VringT};
use virtio_queue::{QueueOwnedT, QueueT};

use super::chain::{Chain, Spare};
use super::memory::{Guest, Memory};

/// A ring.
pub(super) struct Ring<'a> {
    vring: &'a VringRwLock,
    guest: &'a Guest,
    /// The guest's memory when this thread looked last: requests that are taken in together are all in it.
    memory: Memory,
}

fn broken<E: std::fmt::Display>(error: E) -> io::Error {
    io::Error::other(error.to_string())
}

impl<'a> Ring<'a> {
    pub(super) fn new(vring: &'a VringRwLock, guest: &'a Guest) -> Ring<'a> {
        Ring { vring, guest, memory: guest.memory() }
    }

    /// Use the memory that the machine has now.
    pub(super) fn look_again(&mut self) {
        self.memory = self.guest.memory();
    }

    /// May requests be taken from it?
    pub(super) fn is_running(&self) -> bool {
        let state = self.vring.get_ref();
        state.is_enabled() && state.get_queue().ready()
    }

    /// The next request. A ring that was stopped meanwhile has none.
    pub(super) fn next(&self, spare: impl FnOnce() -> Spare) -> Option<Chain> {
        let next = self.vring.get_mut().get_queue_mut().iter(self.memory.clone()).ok()?.next();
        Some(Chain::new(next?, self.memory.clone(), spare()))
    }

    /// The guest need not tell of new requests.
    pub(super) fn disable_notification(&self) -> io::Result<()> {
        let mut state = self.vring.get_mut();
        state.get_queue_mut().disable_notification(self.memory.deref()).map_err(broken)
    }

    /// It has to tell of them; are there some already?
    pub(super) fn enable_notification(&self) -> io::Result<bool> {
        let mut state = self.vring.get_mut();
        state.get_queue_mut().enable_notification(self.memory.deref()).map_err(broken)
    }

    /// The guest has its chain back, of which `len` bytes were written. [`Ring::notify`] tells it.
    pub(super) fn push(&self, chain: &Chain, len: u32) -> io::Result<()> {
        let mut state = self.vring.get_mut();
        state.get_queue_mut().add_used(self.memory.deref(), chain.head(), len).map_err(broken)
    }

    /// Tell the guest of the chains it has back, unless it looks for them itself.
    pub(super) fn notify(&self) -> io::Result<()> {
        let mut state = self.vring.get_mut();
        if state.get_queue_mut().needs_notification(self.memory.deref()).map_err(broken)? {
            state.signal_used_queue()?;
        }
        Ok(())
    }
}
