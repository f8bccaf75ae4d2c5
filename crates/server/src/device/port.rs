//! A port: one connection's way into a device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fairlift_core::{GroupId, IoPrio};

use super::Device;
use crate::histogram::Histogram;
use crate::io::Ios;

/// Where answers go.
pub trait Mailbox: Send + Sync {
    /// These are done; takes all of them. Called by whichever thread combines: it must neither block nor submit.
    fn deliver(&self, ios: &mut Ios);
}

/// A way into a device for one io context. Ends when it is dropped; what is in flight then is served, and its answers are dropped.
#[derive(Debug)]
pub struct Port {
    pub(super) device: Arc<Device>,
    id: u32,
    /// Is its thread the device's watcher?
    pub(super) watches: bool,
    /// Kept by the machine.
    part_sectors_max: Arc<AtomicU32>,
}

/// Who comes in.
#[derive(Clone, Debug)]
pub struct PortOptions<'a> {
    /// The export, for traces.
    pub export: &'a str,
    /// Its tenant.
    pub group: GroupId,
    /// Is this port a tenant by itself, in a group below that?
    pub own: bool,
    /// Its priority among others of its group.
    pub ioprio: IoPrio,
    /// Where the time from submission to answer is counted.
    pub latency: Arc<Histogram>,
}

impl Device {
    /// A way in. Answers go to `mailbox`.
    pub fn open(self: &Arc<Device>, options: PortOptions<'_>, mailbox: Arc<dyn Mailbox>) -> Port {
        let part_sectors_max = Arc::new(AtomicU32::new(u32::MAX));
        let id = self.change(|machine, _| machine.open_port(options, mailbox, part_sectors_max.clone()));
        Port { device: self.clone(), id, watches: false, part_sectors_max }
    }
}

impl Port {
    /// The largest bio that the elevator wanted of this port when it sent one last, bytes
    /// ([`fairlift_core::queue::RequestQueue::bio_sectors_max`]).
    pub fn part_bytes_max(&self) -> u32 {
        self.part_sectors_max.load(Ordering::Relaxed).saturating_mul(512)
    }

    /// Submit `ios` in their order. Each comes back to the mailbox once, maybe before this returns.
    pub fn submit(&self, ios: &mut Ios) {
        self.device.submit(self.id, ios);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.stop_watching();
        self.device.change(|machine, now| machine.close_port(self.id, now));
    }
}
