//! vhost-user-blk: a disk of a virtual machine, over a unix socket and the machine's shared memory (QEMU, cloud-hypervisor).
//!
//! The protocol and the rings are rust-vmm's (`vhost-user-backend`, `virtio-queue`). Each queue has a thread and a [`Port`] of its
//! own, and is a connection of its export like one of NBD.
//!
//! [`Port`]: crate::device::Port

mod chain;
mod memory;
mod queue;
mod request;
mod ring;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost::vhost_user::{self, Listener};
use vhost_user_backend::{VhostUserBackend, VhostUserDaemon, VringRwLock};
use vm_memory::{GuestAddressSpace, GuestMemoryAtomic, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;
use vmm_sys_util::event::{EventConsumer, EventFlag, EventNotifier, new_event_consumer_and_notifier};

use super::nbd::Bounds;
use crate::exports::{Export, VhostOptions};
use crate::log::{Level, log};
use crate::net;
use memory::Guest;
pub use memory::Trust;
use queue::Queue;
use ring::Ring;

/// Most queues of a disk.
pub const QUEUES_MAX: u16 = 16;
/// Most descriptors of a ring; QEMU's default is 128.
const RING_MAX: usize = 1024;
/// How often those who wait look whether they are to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long the requests of a ring that is stopped may take.
const STOP: Duration = Duration::from_secs(30);
/// Sectors of a discard or zeroing at most.
const RANGE_SECTORS_MAX: u32 = 1 << 22;

/// Feature bits of virtio-blk (5.2.3) and of rings (6).
mod feature {
    pub const SEG_MAX: u64 = 1 << 2;
    pub const READ_ONLY: u64 = 1 << 5;
    pub const BLOCK_SIZE: u64 = 1 << 6;
    pub const FLUSH: u64 = 1 << 9;
    pub const QUEUES: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const WRITE_ZEROES: u64 = 1 << 14;
    pub const INDIRECT: u64 = 1 << 28;
    pub const EVENT_INDEX: u64 = 1 << 29;
    pub const VERSION_1: u64 = 1 << 32;
}

fn no_memory() -> GuestMemoryAtomic<GuestMemoryMmap> {
    GuestMemoryAtomic::new(GuestMemoryMmap::new())
}

/// A machine's disk.
struct Disk {
    export: Arc<Export>,
    guest: Guest,
    queues: Vec<Mutex<Queue>>,
    /// What ends each queue's thread.
    exits: Mutex<Vec<Option<(EventConsumer, EventNotifier)>>>,
}

impl Disk {
    fn new(export: &Arc<Export>, queues: u16, trust: Trust, bounds: Bounds) -> Result<Disk, String> {
        let exit = || {
            let pair = new_event_consumer_and_notifier(EventFlag::NONBLOCK | EventFlag::CLOEXEC);
            pair.map(Some).map_err(|error| format!("no file descriptor: {error}"))
        };
        Ok(Disk {
            export: export.clone(),
            guest: Guest::new(trust),
            queues: (0..queues)
                .map(|_| Queue::new(export, bounds).map(Mutex::new))
                .collect::<Result<_, _>>()?,
            exits: Mutex::new((0..queues).map(|_| exit()).collect::<Result<_, _>>()?),
        })
    }

    fn queue(&self, at: usize) -> MutexGuard<'_, Queue> {
        self.queues[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the guest reads as the disk's configuration (5.2.4).
    fn config(&self) -> [u8; 60] {
        let block = self.export.device.back().block_bytes().max(512);
        let mut out = [0; 60];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(self.export.bytes() / 512).to_le_bytes());
        // Header and status take two descriptors of a ring.
        put(12, &126u32.to_le_bytes());
        put(20, &block.to_le_bytes());
        put(34, &(self.queues.len() as u16).to_le_bytes());
        for (at, value) in
            [(36, RANGE_SECTORS_MAX), (40, 1), (44, block / 512), (48, RANGE_SECTORS_MAX), (52, 1)]
        {
            put(at, &value.to_le_bytes());
        }
        put(56, &[1]);
        out
    }
}

impl VhostUserBackend for Disk {
    type Bitmap = ();
    type Vring = VringRwLock;

    fn num_queues(&self) -> usize {
        self.queues.len()
    }

    fn max_queue_size(&self) -> usize {
        RING_MAX
    }

    fn features(&self) -> u64 {
        let writes = if self.export.is_read_only() {
            feature::READ_ONLY
        } else {
            feature::DISCARD | feature::WRITE_ZEROES
        };
        feature::SEG_MAX
            | feature::BLOCK_SIZE
            | feature::FLUSH
            | feature::QUEUES
            | feature::INDIRECT
            | feature::EVENT_INDEX
            | feature::VERSION_1
            | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits()
            | writes
    }

    /// Who does not know of the write cache must not notice it (5.2.5).
    fn acked_features(&self, features: u64) {
        for at in 0..self.queues.len() {
            self.queue(at).writes_through = features & feature::FLUSH == 0;
        }
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
    }

    /// The rings know it.
    fn set_event_idx(&self, _enabled: bool) {}

    fn get_config(&self, offset: u32, size: u32) -> Vec<u8> {
        let config = self.config();
        (offset..offset.saturating_add(size.min(256)))
            .map(|at| config.get(at as usize).copied().unwrap_or(0))
            .collect()
    }

    fn update_memory(&self, memory: GuestMemoryAtomic<GuestMemoryMmap>) -> io::Result<()> {
        // An error ends the connection; rings see checked memory only.
        self.guest.replace(&memory.memory())
    }

    fn queues_per_thread(&self) -> Vec<u64> {
        (0..self.queues.len()).map(|at| 1 << at).collect()
    }

    fn exit_event(&self, thread: usize) -> Option<(EventConsumer, EventNotifier)> {
        self.exits.lock().unwrap_or_else(PoisonError::into_inner).get_mut(thread)?.take()
    }

    /// The ring may go once its requests are answered.
    fn stop_vring(&self, at: u32) -> io::Result<()> {
        let until = Instant::now() + STOP;
        while self.queue(at as usize).len() > 0 {
            if Instant::now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// A thread sees its own ring only; whatever woke it, there may be requests and answers.
    fn handle_event(&self, event: u16, _: EventSet, vrings: &[VringRwLock], thread: usize) -> io::Result<()> {
        let Some(vring) = vrings.first() else { return Ok(()) };
        let mut ring = Ring::new(vring, &self.guest);
        let served = self.queue(thread).serve(&mut ring, usize::from(event) > self.queues.len());
        if let Err(error) = &served {
            let fields = [("export", self.export.options.name.as_str()), ("why", &error.to_string())];
            log(Level::Warn, "ring-is-broken", &fields);
        }
        served
    }
}

/// Where a disk's machine connects.
#[derive(Debug)]
pub struct Socket {
    listener: net::Listener,
    export: Arc<Export>,
    options: VhostOptions,
    bounds: Bounds,
}

impl Socket {
    /// Machines that connect to `listener` get `export`.
    pub fn new(
        listener: net::Listener,
        export: Arc<Export>,
        options: VhostOptions,
        bounds: Bounds,
    ) -> Socket {
        Socket { listener, export, options, bounds }
    }

    /// Where it is.
    pub fn address(&self) -> String {
        self.listener.address()
    }

    /// Serve one machine after the other until `drain` is set or the export is removed.
    pub fn run(&self, drain: &AtomicBool) {
        let ends = || drain.load(Relaxed) || self.export.drain.load(Relaxed);
        let most = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        while !ends() {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            if poll(&mut fds, Some(&most)).is_ok_and(|ready| ready > 0)
                && let Err(why) = self.serve_one(&ends)
            {
                log(Level::Warn, "machine-ended", &[("export", &self.export.options.name), ("why", &why)]);
                std::thread::sleep(LOOK);
            }
        }
    }

    fn serve_one(&self, ends: &impl Fn() -> bool) -> Result<(), String> {
        let disk = Arc::new(Disk::new(&self.export, self.options.queues, self.options.memory, self.bounds)?);
        let daemon = VhostUserDaemon::new("vhost".to_owned(), disk.clone(), no_memory());
        let mut daemon = daemon.map_err(|error| error.to_string())?;
        // Answers wake the queue's thread like the guest's kicks do.
        let number = disk.queues.len() as u64 + 1;
        for (at, thread) in daemon.get_epoll_handlers().iter().enumerate() {
            let answers = disk.queue(at).answers.clone();
            let registered = thread.register_listener(answers.as_fd().as_raw_fd(), EventSet::IN, number);
            registered.map_err(|error| error.to_string())?;
        }
        let listener = self.listener.try_clone_unix().map_err(|error| error.to_string())?;
        daemon.start(&mut Listener::from(listener)).map_err(|error| error.to_string())?;
        self.export.connections.fetch_add(1, Relaxed);
        let handle = daemon.shutdown_handle();
        let machine = std::thread::spawn(move || match daemon.wait() {
            // A machine that is switched off hangs up between two messages.
            Err(vhost_user_backend::Error::HandleRequest(vhost_user::Error::Disconnected)) => Ok(()),
            ended => ended.map_err(|error| error.to_string()),
        });
        while !machine.is_finished() {
            std::thread::sleep(LOOK);
            if ends() && disk.queues.iter().enumerate().all(|(at, _)| disk.queue(at).len() == 0) {
                handle.iter().for_each(|handle| handle.shutdown());
            }
        }
        self.export.connections.fetch_sub(1, Relaxed);
        machine.join().unwrap_or_else(|_| Err("its thread has panicked".to_owned()))
    }
}
