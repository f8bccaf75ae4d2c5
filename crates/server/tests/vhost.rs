//! vhost-user-blk, with a front end of rust-vmm's and a driver of the test's own.

#[path = "support/machine.rs"]
mod machine;
mod support;

use std::os::unix::net::UnixStream;
use std::time::Duration;

use machine::{
    AVAILABLE, DISCARD, FLUSH, Machine, NAME, READ, RING, WRITE, ZEROES, mapped, memory_file, region_of,
};
use rustix::fs::SealFlags;
use support::{Host, Random, eventually};
use vhost::VhostBackend;
use vhost::vhost_user::Frontend;
use vm_memory::Bytes;

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

/// Until the server has hung up.
fn wait_for_end(frontend: &mut Frontend) {
    eventually("the machine is refused", || frontend.get_features().is_err());
}

#[test]
fn memory_that_its_machine_may_shrink_is_refused_and_kills_nobody() {
    let host = host("");
    let seals = [SealFlags::empty(), SealFlags::GROW, SealFlags::GROW | SealFlags::SEAL];
    for seals in seals {
        let file = memory_file(seals);
        let mut frontend = Frontend::from_stream(UnixStream::connect(host.dir.join("disk")).expect("it"), 1);
        frontend.set_owner().expect("an owner");
        let memory = mapped(file.try_clone().expect("a file"));
        frontend.set_mem_table(&[region_of(&memory)]).expect("sent");
        file.set_len(0).expect("its end");
        wait_for_end(&mut frontend);
    }
    // More memory than there is of its file.
    let file = memory_file(SealFlags::SHRINK);
    let memory = mapped(file);
    let mut region = region_of(&memory);
    region.memory_size *= 2;
    let mut frontend = Frontend::from_stream(UnixStream::connect(host.dir.join("disk")).expect("it"), 1);
    frontend.set_owner().expect("an owner");
    frontend.set_mem_table(&[region]).expect("sent");
    wait_for_end(&mut frontend);
    let mut machine = Machine::start(&host, 1);
    assert_eq!(machine.call(READ, 0, &[1; 512]), (0, vec![0; 512]), "others go on");
}

#[test]
fn memory_that_is_swapped_for_a_file_without_bytes_below_running_rings_kills_nobody() {
    let host = host("queues=3");
    let mut other = host.client("vm", true);
    for _ in 0..10 {
        let mut machine = Machine::start(&host, 3);
        for queue in 0..3 {
            for slot in 0..16 {
                machine.add(queue, slot, READ, u64::from(slot) * 8, 4096, 8192);
            }
            machine.kick(queue);
        }
        let file = memory_file(SealFlags::empty());
        let memory = mapped(file.try_clone().expect("a file"));
        let mut region = region_of(&memory);
        region.userspace_addr = region_of(&machine.memory).userspace_addr;
        file.set_len(0).expect("its end");
        machine.frontend.set_mem_table(&[region]).expect("sent");
        for _ in 0..20 {
            (0..3).for_each(|queue| machine.kick(queue));
        }
        assert_eq!(other.read(0, 512).expect("a reply").error, 0);
        wait_for_end(&mut machine.frontend);
    }
    host.assert_idle();
}

#[test]
fn who_trusts_a_machine_may_let_it_bring_any_memory() {
    let host = host("guest_memory='any'");
    let frontend = Frontend::from_stream(UnixStream::connect(host.dir.join("disk")).expect("it"), 1);
    frontend.set_owner().expect("an owner");
    frontend.set_mem_table(&[region_of(&mapped(memory_file(SealFlags::empty())))]).expect("sent");
    assert!(frontend.get_features().is_ok());
}
