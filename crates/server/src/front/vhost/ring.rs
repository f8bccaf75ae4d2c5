//! A queue's ring in the guest's memory. The library's own methods for it would use memory that was not checked yet ([`Guest`]).

use std::io;
use std::ops::Deref;

use vhost_user_backend::{VringRwLock, VringT};
use virtio_queue::{QueueOwnedT, QueueT};

use super::chain::{Chain, Spare};
use super::memory::Guest;

/// A ring.
pub(super) struct Ring<'a> {
    pub(super) vring: &'a VringRwLock,
    pub(super) guest: &'a Guest,
}

fn broken<E: std::fmt::Display>(error: E) -> io::Error {
    io::Error::other(error.to_string())
}

impl Ring<'_> {
    /// May requests be taken from it?
    pub(super) fn is_running(&self) -> bool {
        let state = self.vring.get_ref();
        state.is_enabled() && state.get_queue().ready()
    }

    /// The next request. A ring that was stopped meanwhile has none.
    pub(super) fn next(&self, spare: impl FnOnce() -> Spare) -> Option<Chain> {
        let memory = self.guest.memory();
        let next = self.vring.get_mut().get_queue_mut().iter(memory.clone()).ok()?.next();
        Some(Chain::new(next?, memory, spare()))
    }

    /// The guest need not tell of new requests.
    pub(super) fn disable_notification(&self) -> io::Result<()> {
        let (memory, mut state) = (self.guest.memory(), self.vring.get_mut());
        state.get_queue_mut().disable_notification(memory.deref()).map_err(broken)
    }

    /// It has to tell of them; are there some already?
    pub(super) fn enable_notification(&self) -> io::Result<bool> {
        let (memory, mut state) = (self.guest.memory(), self.vring.get_mut());
        state.get_queue_mut().enable_notification(memory.deref()).map_err(broken)
    }

    /// The guest has its chain back, of which `len` bytes were written. [`Ring::notify`] tells it.
    pub(super) fn push(&self, chain: &Chain, len: u32) -> io::Result<()> {
        let (memory, mut state) = (self.guest.memory(), self.vring.get_mut());
        state.get_queue_mut().add_used(memory.deref(), chain.head(), len).map_err(broken)
    }

    /// Tell the guest of the chains it has back, unless it looks for them itself.
    pub(super) fn notify(&self) -> io::Result<()> {
        let (memory, mut state) = (self.guest.memory(), self.vring.get_mut());
        if state.get_queue_mut().needs_notification(memory.deref()).map_err(broken)? {
            state.signal_used_queue()?;
        }
        Ok(())
    }
}
