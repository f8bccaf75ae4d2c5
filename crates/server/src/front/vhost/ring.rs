//! A queue's ring in the guest's memory. The library's own methods for it would use memory that was not checked yet ([`Guest`]).

use std::io;
use std::ops::Deref;

use vhost_user_backend::{VringRwLock, VringT};
use virtio_queue::{QueueOwnedT, QueueT};

use super::memory::Guest;
use super::request::Chain;

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
    pub(super) fn next(&self) -> Option<Chain> {
        let mut state = self.vring.get_mut();
        let mut chains = state.get_queue_mut().iter(self.guest.memory()).ok()?;
        chains.next()
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

    /// The guest has its chain back, of which `len` bytes were written.
    pub(super) fn push(&self, chain: &Chain, len: u32) -> io::Result<()> {
        let (memory, mut state) = (self.guest.memory(), self.vring.get_mut());
        let queue = state.get_queue_mut();
        queue.add_used(memory.deref(), chain.head_index(), len).map_err(broken)?;
        if queue.needs_notification(memory.deref()).map_err(broken)? {
            state.signal_used_queue()?;
        }
        Ok(())
    }
}
