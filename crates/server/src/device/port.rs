//! A port: one connection's way into a device.

use std::sync::Arc;

use fairlift_core::{GroupId, IoPrio};

use super::Device;
use crate::io::Ios;

/// Where answers go.
pub trait Mailbox: Send + Sync {
    /// These are done; takes all of them. Called by whichever thread combines: it must neither block nor submit.
    fn deliver(&self, ios: &mut Ios);
}

/// A way into a device for one io context. Ends when it is dropped; what is in flight then is served, and its answers are dropped.
#[derive(Debug)]
pub struct Port {
    device: Arc<Device>,
    id: u32,
}

impl Device {
    /// A way in for one of `group`, the tenant of the export of that name, with a group of its own below that if `own` says so.
    pub fn open(
        self: &Arc<Device>,
        export: &str,
        group: GroupId,
        own: bool,
        ioprio: IoPrio,
        mailbox: Arc<dyn Mailbox>,
    ) -> Port {
        let id = self.change(|machine, _| machine.open_port(export, group, own, ioprio, mailbox));
        Port { device: self.clone(), id }
    }
}

impl Port {
    /// Submit `ios` in their order. Each comes back to the mailbox once, maybe before this returns.
    pub fn submit(&self, ios: &mut Ios) {
        self.device.submit(self.id, ios);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.device.change(|machine, now| machine.close_port(self.id, now));
    }
}
