//! A machine with a disk, as a test plays it: rust-vmm's front end, and a driver of our own.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

use super::support::Host;

pub const MEMORY: usize = 16 << 20;
pub const RING: u16 = 64;
/// A queue's rings, and the place for headers, statuses and data of its requests.
pub const QUEUE_BYTES: u64 = 4 << 20;
pub const AVAILABLE: u64 = 0x4000;
pub const USED: u64 = 0x8000;
pub const HEADERS: u64 = 0x10000;
pub const DATA: u64 = 0x20000;

pub const READ: u32 = 0;
pub const WRITE: u32 = 1;
pub const FLUSH: u32 = 4;
pub const NAME: u32 = 8;
pub const DISCARD: u32 = 11;
pub const ZEROES: u32 = 13;

/// A machine's memory with these seals.
pub fn memory_file(seals: SealFlags) -> File {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let file = File::from(memfd_create("memory", flags).expect("a file"));
    file.set_len(MEMORY as u64).expect("its size");
    fcntl_add_seals(&file, seals).expect("seals");
    file
}

pub fn mapped(file: File) -> GuestMemoryMmap {
    let range = (GuestAddress(0), MEMORY, Some(FileOffset::new(file, 0)));
    GuestMemoryMmap::from_ranges_with_files([range]).expect("memory")
}

/// What a front end tells of such memory.
pub fn region_of(memory: &GuestMemoryMmap) -> VhostUserMemoryRegionInfo {
    let region = memory.iter().next().expect("a region");
    VhostUserMemoryRegionInfo::from_guest_region(region).expect("a region")
}

/// A machine with a disk.
pub struct Machine {
    pub frontend: Frontend,
    pub memory: GuestMemoryMmap,
    pub queues: Vec<Queue>,
}

/// The driver's side of a queue.
pub struct Queue {
    pub base: u64,
    pub kick: EventFd,
    pub call: EventFd,
    pub added: u16,
    pub seen: u16,
}

impl Machine {
    /// Connect to DIR/disk and start `queues` queues.
    pub fn start(host: &Host, queues: usize) -> Machine {
        Machine::start_without(host, queues, 0)
    }

    /// The same with a driver that does not know these features.
    pub fn start_without(host: &Host, queues: usize, unknown: u64) -> Machine {
        let memory = mapped(memory_file(SealFlags::SHRINK));
        let socket = UnixStream::connect(host.dir.join("disk")).expect("it listens");
        let mut frontend = Frontend::from_stream(socket, queues as u64);
        frontend.set_owner().expect("an owner");
        let features = frontend.get_features().expect("features");
        let protocol = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        assert_ne!(features & protocol, 0);
        // Without the index of events: every kick and call is one.
        frontend.set_features(features & !(1 << 29 | unknown)).expect("features");
        let protocol = frontend.get_protocol_features().expect("protocol features");
        frontend
            .set_protocol_features(
                protocol & (VhostUserProtocolFeatures::MQ | VhostUserProtocolFeatures::CONFIG),
            )
            .expect("protocol features");
        let region = region_of(&memory);
        let start = region.userspace_addr;
        frontend.set_mem_table(&[region]).expect("memory");
        let mut machine = Machine { frontend, memory, queues: Vec::new() };
        for at in 0..queues {
            machine.start_queue(at, start);
        }
        machine
    }

    pub fn start_queue(&mut self, at: usize, start: u64) {
        let base = at as u64 * QUEUE_BYTES;
        let (kick, call) =
            (EventFd::new(0).expect("an event"), EventFd::new(libc::EFD_NONBLOCK).expect("an event"));
        let rings = VringConfigData {
            queue_max_size: RING,
            queue_size: RING,
            flags: 0,
            desc_table_addr: start + base,
            used_ring_addr: start + base + USED,
            avail_ring_addr: start + base + AVAILABLE,
            log_addr: None,
        };
        self.memory.write_slice(&vec![0; HEADERS as usize], GuestAddress(base)).expect("rings of nothing");
        self.frontend.set_vring_num(at, RING).expect("a size");
        self.frontend.set_vring_addr(at, &rings).expect("addresses");
        self.frontend.set_vring_base(at, 0).expect("a start");
        self.frontend.set_vring_call(at, &call).expect("a call");
        self.frontend.set_vring_kick(at, &kick).expect("a kick");
        self.frontend.set_vring_enable(at, true).expect("enabled");
        self.queues.push(Queue { base, kick, call, added: 0, seen: 0 });
    }

    pub fn put<const N: usize>(&self, at: u64, bytes: [u8; N]) {
        self.memory.write_slice(&bytes, GuestAddress(at)).expect("it is memory");
    }

    pub fn u16_at(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.memory.read_slice(&mut bytes, GuestAddress(at)).expect("it is memory");
        u16::from_le_bytes(bytes)
    }

    /// A descriptor: `flags` 1: another follows, 2: for the device to write.
    pub fn describe(&self, queue: usize, at: u16, place: u64, len: u32, flags: u16) {
        let to = self.queues[queue].base + u64::from(at) * 16;
        self.put(to, place.to_le_bytes());
        self.put(to + 8, len.to_le_bytes());
        self.put(to + 12, flags.to_le_bytes());
        self.put(to + 14, (at + 1).to_le_bytes());
    }

    /// Where the data of the request in `slot` is.
    pub fn data_of(&self, queue: usize, slot: u16, step: u64) -> GuestAddress {
        GuestAddress(self.queues[queue].base + DATA + u64::from(slot) * step)
    }

    /// Add a request with `len` bytes of data in two pieces, in the descriptors from 4 x `slot`.
    pub fn add(&mut self, queue: usize, slot: u16, kind: u32, sector: u64, len: u32, step: u64) {
        let base = self.queues[queue].base;
        let header = base + HEADERS + u64::from(slot) * 32;
        let (data, head) = (self.data_of(queue, slot, step).0, slot * 4);
        self.put(header, kind.to_le_bytes());
        self.put(header + 8, sector.to_le_bytes());
        self.put(header + 16, [0xff]);
        let writes = if matches!(kind, READ | NAME) { 2 } else { 0 };
        self.describe(queue, head, header, 16, 1);
        let half = len / 2;
        if len > 0 {
            self.describe(queue, head + 1, data, half, 1 | writes);
            self.describe(queue, head + 2, data + u64::from(half), len - half, 1 | writes);
            self.describe(queue, head + 3, header + 16, 1, 2);
        } else {
            self.describe(queue, head + 1, header + 16, 1, 2);
        }
        let added = self.queues[queue].added;
        self.put(base + AVAILABLE + 4 + u64::from(added % RING) * 2, head.to_le_bytes());
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.put(base + AVAILABLE + 2, (added + 1).to_le_bytes());
        self.queues[queue].added = added + 1;
    }

    pub fn kick(&self, queue: usize) {
        self.queues[queue].kick.write(1).expect("a kick");
    }

    /// Wait for an answer: the request's slot, its status and how many bytes the device wrote.
    pub fn next(&mut self, queue: usize) -> (u16, u8, u32) {
        let (base, seen) = (self.queues[queue].base, self.queues[queue].seen);
        let until = Instant::now() + Duration::from_secs(60);
        while self.u16_at(base + USED + 2) == seen {
            assert!(Instant::now() < until, "no answer");
            std::thread::sleep(Duration::from_micros(50));
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let mut used = [0; 8];
        self.memory
            .read_slice(&mut used, GuestAddress(base + USED + 4 + u64::from(seen % RING) * 8))
            .expect("memory");
        self.queues[queue].seen = seen + 1;
        let slot = u16::from_le_bytes([used[0], used[1]]) / 4;
        let mut status = [0];
        self.memory
            .read_slice(&mut status, GuestAddress(base + HEADERS + u64::from(slot) * 32 + 16))
            .expect("memory");
        (slot, status[0], u32::from_le_bytes([used[4], used[5], used[6], used[7]]))
    }

    /// One request on queue 0, alone; its status, and what was read.
    pub fn call(&mut self, kind: u32, sector: u64, data: &[u8]) -> (u8, Vec<u8>) {
        let place = self.data_of(0, 0, 0);
        self.memory.write_slice(data, place).expect("it is memory");
        self.add(0, 0, kind, sector, data.len() as u32, 0);
        self.kick(0);
        let (_, status, _) = self.next(0);
        let mut back = vec![0; data.len()];
        self.memory.read_slice(&mut back, place).expect("it is memory");
        (status, back)
    }

    pub fn config(&mut self) -> Vec<u8> {
        let answer = self
            .frontend
            .get_config(0, 60, VhostUserConfigFlags::empty(), &[0; 60])
            .expect("a configuration");
        answer.1.to_vec()
    }
}
