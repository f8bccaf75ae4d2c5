//! Exports: what clients may ask for by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairlift_core::{GroupId, IoPrio};

use crate::device::{Device, Mailbox, Port, PortOptions, Share};
use crate::front::vhost::Trust;
use crate::histogram::Histogram;
use crate::io::{Action, Fault};

/// An export as the user wants it.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// Its name; "" is the one for clients that name none.
    pub name: String,
    /// For people.
    pub description: String,
    /// First byte on the device, a multiple of 512.
    pub offset: u64,
    /// Bytes; `None`: up to the device's end.
    pub bytes: Option<u64>,
    /// Refuse writes?
    pub read_only: bool,
    /// Is each connection a tenant by itself, in a group below the export's?
    pub per_connection: bool,
    /// What it is entitled to.
    pub share: Share,
    /// Where a virtual machine may connect to it as to its disk (vhost-user-blk).
    pub vhost: Option<VhostOptions>,
    /// Which disk of this machine's kernel it is (ublk).
    pub ublk: Option<UblkOptions>,
}

/// A disk of this machine's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UblkOptions {
    /// The N of `/dev/ublkbN`; `None`: one that is free.
    pub number: Option<u32>,
    /// Queues of the disk, and threads for them.
    pub queues: u16,
    /// Does the disk outlive a server that is killed?
    pub recovers: bool,
}

impl UblkOptions {
    /// The disk's number: `any`, or digits.
    ///
    /// # Errors
    /// With what is allowed.
    pub fn parse_number(text: &str) -> Result<Option<u32>, String> {
        // The driver has a minor number for each (drivers/block/ublk_drv.c: UBLK_MINORS).
        let number = text.parse().ok().filter(|number| *number < 1 << 20);
        match text {
            "any" => Ok(None),
            _ => number
                .map(Some)
                .ok_or_else(|| format!("'{text}' is no number of a ublk disk (allowed: any, 0 to 1048575)")),
        }
    }
}

/// A virtual machine's way to an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostOptions {
    /// A unix socket.
    pub path: PathBuf,
    /// Queues of the disk, and threads for them.
    pub queues: u16,
    /// Which memory the machine may bring.
    pub memory: Trust,
}

/// A part of a device under a name, and a tenant of it.
#[derive(Debug)]
pub struct Export {
    /// What was asked for; the share may have changed since: [`Export::share`].
    pub options: ExportOptions,
    /// The device.
    pub device: Arc<Device>,
    /// The tenant's group.
    pub group: GroupId,
    bytes: AtomicU64,
    share: Mutex<Share>,
    /// Connections of it are to end.
    pub drain: AtomicBool,
    /// Connections that are open.
    pub connections: AtomicU32,
    /// Of its bios, from submission to answer.
    pub latency: Arc<Histogram>,
    /// Clients' requests answered, and those that failed.
    pub requests: [AtomicU64; 2],
}

/// Are so many bytes at `offset`, which is in the device, a part of it?
fn fits(device: &Device, offset: u64, bytes: u64) -> Result<(), String> {
    let (whole, block) = (device.back().bytes(), device.back().block_bytes());
    let most = whole.saturating_sub(offset);
    if bytes > most {
        return Err(format!("it ends {} bytes behind the device, which has {whole} bytes", bytes - most));
    }
    if !(offset | bytes).is_multiple_of(block.into()) {
        let text = format!("the device is served in blocks of {block} bytes");
        return Err(format!("{text}, and its offset {offset} or size {bytes} is no multiple"));
    }
    Ok(())
}

impl Export {
    /// Make it a tenant of `device`.
    ///
    /// # Errors
    /// A sentence.
    pub fn new(device: &Arc<Device>, options: ExportOptions) -> Result<Export, String> {
        let whole = device.back().bytes();
        if !options.offset.is_multiple_of(512) {
            return Err(format!("its offset {} is not a multiple of 512", options.offset));
        }
        let most = whole.checked_sub(options.offset).filter(|most| *most > 0 || whole == 0);
        let most = most
            .ok_or_else(|| format!("its offset {} is behind the device's {whole} bytes", options.offset))?;
        let bytes = options.bytes.unwrap_or(most);
        fits(device, options.offset, bytes)?;
        let group = device.add_tenant(&options.share)?;
        Ok(Export {
            device: device.clone(),
            group,
            bytes: AtomicU64::new(bytes),
            share: Mutex::new(options.share),
            drain: AtomicBool::new(false),
            connections: AtomicU32::new(0),
            latency: Arc::default(),
            requests: [AtomicU64::new(0), AtomicU64::new(0)],
            options,
        })
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Make it end elsewhere on its device. What its clients have sent before is served as it was.
    ///
    /// # Errors
    /// A sentence; nothing changed.
    pub fn resize(&self, bytes: u64) -> Result<(), String> {
        fits(&self.device, self.options.offset, bytes)?;
        self.bytes.store(bytes, Relaxed);
        Ok(())
    }

    /// May it be written?
    pub fn is_read_only(&self) -> bool {
        self.options.read_only || self.device.back().is_read_only()
    }

    /// May a client do that? Of the front ends whose protocols have blocks; NBD has errors of its own.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, action: Action, offset: u64, bytes: u32) -> Result<(), Fault> {
        let writes = !matches!(action, Action::Read | Action::Flush);
        let inside = offset.checked_add(bytes.into()).is_some_and(|end| end <= self.bytes());
        let block = u64::from(self.device.back().block_bytes());
        if !inside || !(offset | u64::from(bytes)).is_multiple_of(block) {
            Err(Fault::Invalid)
        } else if writes && self.is_read_only() {
            Err(Fault::ReadOnly)
        } else {
            Ok(())
        }
    }

    /// A way in for one of its clients.
    pub fn open(&self, mailbox: Arc<dyn Mailbox>) -> Port {
        let options = PortOptions {
            export: &self.options.name,
            group: self.group,
            own: self.options.per_connection,
            ioprio: IoPrio::DEFAULT,
            latency: self.latency.clone(),
        };
        self.device.open(options, mailbox)
    }

    /// What it is entitled to now.
    pub fn share(&self) -> Share {
        *self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Change that.
    ///
    /// # Errors
    /// A sentence; nothing changed.
    pub fn set_share(&self, share: Share) -> Result<(), String> {
        let mut now = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        self.device.set_share(self.group, &share)?;
        *now = share;
        Ok(())
    }

    /// A request of a client was answered.
    pub fn count(&self, failed: bool) {
        self.requests[usize::from(failed)].fetch_add(1, Relaxed);
    }
}

/// All exports, by name.
#[derive(Debug, Default)]
pub struct Exports(Mutex<BTreeMap<String, Arc<Export>>>);

impl Exports {
    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Export>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    ///
    /// # Errors
    /// When there is one of that name.
    pub fn add(&self, export: Export) -> Result<(), String> {
        let name = export.options.name.clone();
        let mut map = self.map();
        if map.contains_key(&name) {
            export.device.remove_tenant(export.group);
            return Err(format!("there is an export '{name}' already"));
        }
        map.insert(name, Arc::new(export));
        Ok(())
    }

    /// Take one away: it takes no new clients, and its connections end when what they sent is answered.
    pub fn remove(&self, name: &str) -> Option<Arc<Export>> {
        let export = self.map().remove(name)?;
        export.drain.store(true, Relaxed);
        export.device.remove_tenant(export.group);
        Some(export)
    }

    /// The one of that name; the only one for a client that names none.
    pub fn find(&self, name: &str) -> Option<Arc<Export>> {
        let map = self.map();
        let only = || map.values().next().filter(|_| name.is_empty() && map.len() == 1);
        map.get(name).or_else(only).cloned()
    }

    /// All, in the order of their names.
    pub fn all(&self) -> Vec<Arc<Export>> {
        self.map().values().cloned().collect()
    }
}
