//! vhost-user-blk, with a front end of rust-vmm's and a driver of the test's own.

mod support;

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use support::{Host, Random, eventually};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

const MEMORY: usize = 16 << 20;
const RING: u16 = 64;
/// A queue's rings, and the place for headers, statuses and data of its requests.
const QUEUE_BYTES: u64 = 4 << 20;
const AVAILABLE: u64 = 0x4000;
const USED: u64 = 0x8000;
const HEADERS: u64 = 0x10000;
const DATA: u64 = 0x20000;

const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const NAME: u32 = 8;
const DISCARD: u32 = 11;
const ZEROES: u32 = 13;

/// A machine with a disk.
struct Machine {
    frontend: Frontend,
    memory: GuestMemoryMmap,
    queues: Vec<Queue>,
}

/// The driver's side of a queue.
struct Queue {
    base: u64,
    kick: EventFd,
    call: EventFd,
    added: u16,
    seen: u16,
}

impl Machine {
    /// Connect to DIR/disk and start `queues` queues.
    fn start(host: &Host, queues: usize) -> Machine {
        Machine::start_without(host, queues, 0)
    }

    /// The same with a driver that does not know these features.
    fn start_without(host: &Host, queues: usize, unknown: u64) -> Machine {
        // A file of its own: one that is made anew below a server that still maps it kills that server.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = host.dir.join(format!("memory-{}", COUNT.fetch_add(1, Relaxed)));
        let file =
            File::options().read(true).write(true).create(true).truncate(true).open(path).expect("a file");
        file.set_len(MEMORY as u64).expect("its size");
        let range = (GuestAddress(0), MEMORY, Some(FileOffset::new(file, 0)));
        let memory = GuestMemoryMmap::from_ranges_with_files([range]).expect("memory");
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
        let region = memory.iter().next().expect("a region");
        let start = region.as_ptr() as u64;
        frontend
            .set_mem_table(&[VhostUserMemoryRegionInfo::from_guest_region(region).expect("a region")])
            .expect("memory");
        let mut machine = Machine { frontend, memory, queues: Vec::new() };
        for at in 0..queues {
            machine.start_queue(at, start);
        }
        machine
    }

    fn start_queue(&mut self, at: usize, start: u64) {
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

    fn put<const N: usize>(&self, at: u64, bytes: [u8; N]) {
        self.memory.write_slice(&bytes, GuestAddress(at)).expect("it is memory");
    }

    fn u16_at(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.memory.read_slice(&mut bytes, GuestAddress(at)).expect("it is memory");
        u16::from_le_bytes(bytes)
    }

    /// A descriptor: `flags` 1: another follows, 2: for the device to write.
    fn describe(&self, queue: usize, at: u16, place: u64, len: u32, flags: u16) {
        let to = self.queues[queue].base + u64::from(at) * 16;
        self.put(to, place.to_le_bytes());
        self.put(to + 8, len.to_le_bytes());
        self.put(to + 12, flags.to_le_bytes());
        self.put(to + 14, (at + 1).to_le_bytes());
    }

    /// Where the data of the request in `slot` is.
    fn data_of(&self, queue: usize, slot: u16, step: u64) -> GuestAddress {
        GuestAddress(self.queues[queue].base + DATA + u64::from(slot) * step)
    }

    /// Add a request with `len` bytes of data in two pieces, in the descriptors from 4 x `slot`.
    fn add(&mut self, queue: usize, slot: u16, kind: u32, sector: u64, len: u32, step: u64) {
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

    fn kick(&self, queue: usize) {
        self.queues[queue].kick.write(1).expect("a kick");
    }

    /// Wait for an answer: the request's slot, its status and how many bytes the device wrote.
    fn next(&mut self, queue: usize) -> (u16, u8, u32) {
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
    fn call(&mut self, kind: u32, sector: u64, data: &[u8]) -> (u8, Vec<u8>) {
        let place = self.data_of(0, 0, 0);
        self.memory.write_slice(data, place).expect("it is memory");
        self.add(0, 0, kind, sector, data.len() as u32, 0);
        self.kick(0);
        let (_, status, _) = self.next(0);
        let mut back = vec![0; data.len()];
        self.memory.read_slice(&mut back, place).expect("it is memory");
        (status, back)
    }

    fn config(&mut self) -> Vec<u8> {
        let answer = self
            .frontend
            .get_config(0, 60, VhostUserConfigFlags::empty(), &[0; 60])
            .expect("a configuration");
        answer.1.to_vec()
    }
}

fn host(more: &str) -> Host {
    Host::start(&format!(
        "[[device]]\nname='m'\nram='32M'\n[[export]]\nname='vm'\ndevice='m'\noffset='1M'\nsize='16M'\nvhost_user='DIR/disk'\n{more}\n"
    ))
}

/// A range of a discard or zeroing.
fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
}

#[test]
fn a_machine_reads_what_it_and_a_client_of_nbd_wrote() {
    let host = host("");
    let mut machine = Machine::start(&host, 1);
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at >> 9) as u8).collect();
    assert_eq!(machine.call(WRITE, 64, &data).0, 0);
    assert_eq!(machine.call(FLUSH, 0, &[]).0, 0);
    assert_eq!(machine.call(READ, 64, &vec![9; 1 << 20]), (0, data.clone()));
    let mut client = host.client("vm", true);
    assert!(client.read(64 * 512, 1 << 20).expect("a reply").data == data);
    assert_eq!(client.write(0, 0, &[5; 512]).expect("a reply").error, 0);
    assert_eq!(machine.call(READ, 0, &[0; 512]), (0, vec![5; 512]));
    assert_eq!(machine.call(ZEROES, 0, &range(0, 1, 1)).0, 0);
    assert_eq!(machine.call(READ, 0, &[9; 512]), (0, vec![0; 512]));
    assert_eq!(machine.call(DISCARD, 0, &range(64, 2048, 0)).0, 0);
    assert_eq!(&machine.call(NAME, 0, &[9; 20]).1[..3], b"vm\0");
    host.assert_idle();
}

#[test]
fn every_error_has_its_status() {
    let host = host("");
    let mut machine = Machine::start(&host, 1);
    let end = (16 << 20) / 512;
    for (what, kind, sector, data, status) in [
        ("a read over the end", READ, end, vec![0; 512], 1),
        ("a read whose end has no number", READ, u64::MAX, vec![0; 512], 1),
        ("a write over the end", WRITE, end - 1, vec![0; 1024], 1),
        ("half a sector", READ, 0, vec![0; 100], 1),
        ("nothing", READ, 0, Vec::new(), 1),
        ("zeroes over the end", ZEROES, 0, range(end, 1, 0), 1),
        ("a discard with the flag of zeroes", DISCARD, 0, range(0, 1, 1), 2),
        ("a flag there is not", ZEROES, 0, range(0, 1, 2), 2),
        ("two ranges", DISCARD, 0, [range(0, 1, 0), range(8, 1, 0)].concat(), 1),
        ("a kind there is not", 77, 0, vec![0; 512], 2),
    ] {
        assert_eq!(machine.call(kind, sector, &data).0, status, "{what}");
    }
    assert_eq!(machine.call(READ, 0, &[1; 512]), (0, vec![0; 512]), "the disk goes on");
}

#[test]
fn a_disk_that_may_not_be_written_says_so() {
    let host = host("read_only=true");
    let mut machine = Machine::start(&host, 1);
    assert_ne!(machine.frontend.get_features().expect("features") & 1 << 5, 0);
    assert_eq!(machine.call(WRITE, 0, &[1; 512]).0, 1);
    assert_eq!(machine.call(READ, 0, &[1; 512]), (0, vec![0; 512]));
}

#[test]
fn a_driver_that_knows_no_flush_has_its_writes_on_stable_storage() {
    let dir = support::folder();
    std::fs::File::create(dir.join("disk.img")).and_then(|file| file.set_len(1 << 20)).expect("a file");
    let host = Host::start_in(
        dir,
        "[[device]]\nname='f'\nfile='DIR/disk.img'\n[[export]]\nname='vm'\ndevice='f'\nvhost_user='DIR/disk'\n",
    );
    for (unknown, durable) in [(0, false), (1 << 9, true)] {
        let trace = host.dir.join("disk.blktrace.0");
        let device = &host.server.devices()[0];
        device.trace(Some(&trace)).expect("a trace");
        let mut machine = Machine::start_without(&host, 1, unknown);
        assert_eq!(machine.call(WRITE, 0, &[7; 4096]).0, 0);
        device.trace(None).expect("its end");
        let options = fairlift_trace::Options::default();
        let reader = fairlift_trace::TraceReader::open(&trace, &options).expect("a trace");
        let mut fua = false;
        for event in reader {
            fua |= event.expect("an event").flags.has(fairlift_trace::Flags::FUA);
        }
        assert_eq!(fua, durable, "without the features {unknown:#x}");
    }
}

#[test]
fn queues_are_served_side_by_side_and_each_request_once() {
    let host = host("queues=3");
    let mut machine = Machine::start(&host, 3);
    let config = machine.config();
    assert_eq!(u64::from_le_bytes(config[..8].try_into().expect("eight")), (16 << 20) / 512);
    assert_eq!(config[34], 3);
    let mut random = Random(9);
    for round in 0..30u8 {
        // Each queue has its own third of the disk, each slot its own place in it.
        let place =
            |queue: usize, slot: u16| (queue as u64 * 16 + u64::from(slot)) * 64 + u64::from(round % 4) * 8;
        for kind in [WRITE, READ] {
            for queue in 0..3 {
                for slot in 0..16 {
                    let byte = if kind == WRITE { round ^ (queue as u8) << 4 ^ slot as u8 } else { 0 };
                    let data = machine.data_of(queue, slot, 8192);
                    machine.memory.write_slice(&[byte; 4096], data).expect("memory");
                    machine.add(queue, slot, kind, place(queue, slot), 4096, 8192);
                    if random.below(4) == 0 {
                        machine.kick(queue);
                    }
                }
                machine.kick(queue);
            }
            for queue in 0..3 {
                let mut slots: Vec<u16> = (0..16)
                    .map(|_| {
                        let (slot, status, len) = machine.next(queue);
                        assert_eq!((status, len), (0, if kind == READ { 4097 } else { 1 }));
                        slot
                    })
                    .collect();
                slots.sort_unstable();
                assert_eq!(slots, (0..16).collect::<Vec<u16>>(), "each once");
                for slot in (0..16).filter(|_| kind == READ) {
                    let mut back = [0; 4096];
                    machine.memory.read_slice(&mut back, machine.data_of(queue, slot, 8192)).expect("memory");
                    assert_eq!(back, [round ^ (queue as u8) << 4 ^ slot as u8; 4096], "round {round}");
                }
            }
        }
    }
    assert!((0..3).all(|queue| machine.queues[queue].call.read().expect("calls") > 0));
    host.assert_idle();
}

#[test]
fn a_machine_that_goes_makes_room_for_the_next_and_for_the_end() {
    let mut host = host("queues=2");
    for _ in 0..3 {
        let mut machine = Machine::start(&host, 2);
        machine.add(0, 0, READ, 0, 4096, 8192);
        machine.kick(0);
        machine.next(0);
        // What it leaves behind is served to nobody.
        machine.add(1, 0, READ, 0, 4096, 8192);
        machine.kick(1);
        drop(machine);
    }
    let mut machine = Machine::start(&host, 2);
    assert_eq!(machine.call(READ, 0, &[1; 512]), (0, vec![0; 512]));
    let base = machine.frontend.get_vring_base(0).expect("where it is");
    assert_eq!(base, 1, "a ring that is stopped says how far it came");
    // SIGTERM with a machine that stays.
    host.end();
    eventually("nothing is left", || host.server.connections() == 0);
}

#[test]
fn what_is_no_front_end_harms_nobody() {
    use std::io::Write;
    let host = host("");
    let mut random = Random(4);
    for bytes in [1, 12, 100, 4000] {
        let mut socket = UnixStream::connect(host.dir.join("disk")).expect("it listens");
        let garbage: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
        // The server may hang up meanwhile.
        let _ = socket.write_all(&garbage);
    }
    // Rings and descriptors that point anywhere.
    for round in 0..20 {
        let machine = Machine::start(&host, 1);
        for at in 0..u64::from(RING) * 16 / 8 {
            machine.put(at * 8, (random.below(u64::MAX) >> (random.below(8) * 8)).to_le_bytes());
        }
        for at in 0..u64::from(RING) {
            machine.put(
                AVAILABLE + 4 + at * 2,
                (random.below(if round % 2 == 0 { 64 } else { 65_536 }) as u16).to_le_bytes(),
            );
        }
        machine.put(AVAILABLE + 2, 40u16.to_le_bytes());
        machine.kick(0);
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut machine = Machine::start(&host, 1);
    assert_eq!(machine.call(READ, 0, &[1; 512]).0, 0);
    host.assert_idle();
}
