//! Chains of descriptors that a machine has tampered with: 4,000 of them, `FAIRLIFT_STREAMS` times as many, of machines with up to
//! 400 each. The server survives, writes nothing outside of what a chain gives it, and a client of NBD is served meanwhile. `FAIRLIFT_SEED`
//! chooses others.

#[path = "support/machine.rs"]
mod machine;
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use machine::{
    AVAILABLE, DATA, DISCARD, FLUSH, HEADERS, Machine, NAME, QUEUE_BYTES, READ, RING, USED, WRITE, ZEROES,
};
use support::{Host, Random, eventually, number};
use vm_memory::{Bytes, GuestAddress};

/// Chains of a machine.
const CHAINS: u64 = 400;
/// Chains at a time.
const BATCH: u16 = 8;
/// A ring that returns nothing for so long is broken.
const STALL: Duration = Duration::from_millis(500);
/// Memory that no chain names: what is there stays.
const GUARD: u64 = 2 * QUEUE_BYTES;

/// A chain of a request, in the descriptors from 8 x `slot`, and what somebody makes of it.
fn chain(machine: &mut Machine, random: &mut Random, slot: u16) {
    let base = machine.queues[0].base;
    let (head, header) = (slot * 8, base + HEADERS + u64::from(slot) * 64);
    let kinds = [READ, READ, WRITE, WRITE, FLUSH, NAME, DISCARD, ZEROES];
    let kind = kinds[random.below(8) as usize];
    machine.put(header, kind.to_le_bytes());
    machine.put(header + 4, [0; 4]);
    machine.put(header + 8, random.below(40_000).to_le_bytes());
    let data = base + DATA + u64::from(slot) * 65_536;
    let writes = if matches!(kind, READ | NAME) { 2 } else { 0 };
    if matches!(kind, DISCARD | ZEROES) {
        machine.put(data, random.below(40_000).to_le_bytes());
        machine.put(data + 8, (random.below(1 << 14) as u32).to_le_bytes());
        machine.put(data + 12, (random.below(3) as u32).to_le_bytes());
    }
    let pieces = match kind {
        FLUSH => 0,
        NAME | DISCARD | ZEROES => 1,
        _ => 1 + random.below(5) as u16,
    };
    machine.describe(0, head, header, 16, 1);
    for piece in 0..pieces {
        let len = match kind {
            NAME => 20,
            DISCARD | ZEROES => 16,
            _ => 512 * (1 + random.below(16) as u32),
        };
        machine.describe(0, head + 1 + piece, data + u64::from(piece) * 8192, len, 1 | writes);
    }
    machine.describe(0, head + 1 + pieces, header + 16, 1, 2);
    for _ in 0..random.below(4) {
        let descriptor = base + u64::from(head + random.below(u64::from(pieces) + 2) as u16) * 16;
        match random.below(6) {
            // An address, inside of what chains may name, or outside of all memory.
            0 => machine.put(descriptor, (base + HEADERS + random.below(0x10_0000)).to_le_bytes()),
            1 => machine.put(descriptor, (1 << 40 | random.below(u64::MAX >> 24) << 24).to_le_bytes()),
            2 => {
                let lengths = [0, 1, 15, 16, 17, 511, 513, 65_536, 32 << 20, u32::MAX];
                let len = lengths[random.below(10) as usize];
                // A long one ends outside of all memory, so that nothing of it is written.
                machine.put(descriptor + 8, len.to_le_bytes());
                if len > 65_536 {
                    machine.put(descriptor, (u64::MAX - 4096).to_le_bytes());
                }
            }
            3 => {
                // A table in the data of other requests (4) breaks most rings.
                let most = if random.below(16) == 0 { 8 } else { 4 };
                machine.put(descriptor + 12, (random.below(most) as u16).to_le_bytes());
            }
            4 => machine.put(descriptor + 14, (random.below(u64::from(RING) + 2) as u16).to_le_bytes()),
            _ => machine.put(header + random.below(16), [random.below(256) as u8]),
        }
    }
    let queue = &mut machine.queues[0];
    let (added, base) = (queue.added, queue.base);
    queue.added = added.wrapping_add(1);
    machine.put(base + AVAILABLE + 4 + u64::from(added % RING) * 2, head.to_le_bytes());
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    machine.put(base + AVAILABLE + 2, added.wrapping_add(1).to_le_bytes());
}

/// A machine's life: how many chains it sent, and how many came back. It ends early when its ring is broken.
fn live(host: &Host, random: &mut Random) -> (u64, u64) {
    let mut machine = Machine::start(host, 1);
    let guard: Vec<u8> = (0..65_536u32).map(|at| (at >> 4) as u8).collect();
    machine.memory.write_slice(&guard, GuestAddress(GUARD)).expect("it is memory");
    for _ in 0..CHAINS / u64::from(BATCH) {
        (0..BATCH).for_each(|slot| chain(&mut machine, random, slot));
        machine.kick(0);
        let (used, added) = (machine.queues[0].base + USED + 2, machine.queues[0].added);
        let (mut came, mut since) = (machine.u16_at(used), Instant::now());
        while came != added && since.elapsed() < STALL {
            thread::sleep(Duration::from_micros(50));
            let now = machine.u16_at(used);
            if now != came {
                (came, since) = (now, Instant::now());
            }
        }
        if came != added {
            break;
        }
    }
    let mut back = vec![0; guard.len()];
    machine.memory.read_slice(&mut back, GuestAddress(GUARD)).expect("it is memory");
    assert!(back == guard, "the server wrote where no chain leads");
    let queue = &machine.queues[0];
    (u64::from(queue.added), u64::from(machine.u16_at(queue.base + USED + 2)))
}

#[test]
fn chains_that_were_tampered_with_harm_nobody() {
    let due = 4_000 * number("FAIRLIFT_STREAMS").unwrap_or(1);
    let seed = number("FAIRLIFT_SEED").unwrap_or(1);
    let host = Host::start(
        "[[device]]\nname='m'\nram='32M'\n[[export]]\nname='vm'\ndevice='m'\nsize='16M'\nvhost_user='DIR/disk'\n[[export]]\nname='other'\ndevice='m'\noffset='16M'\n",
    );
    let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut machines, mut sent, mut returned) = (0, 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = host.client("other", true);
            let mut round = 0u64;
            while !stop.load(Relaxed) {
                let (offset, data) = (round % 64 * 4096, [round as u8; 4096]);
                assert_eq!(client.write(0, offset, &data).expect("a reply").error, 0);
                assert!(client.read(offset, 4096).expect("a reply").data == data, "what was written is read");
                served.fetch_add(1, Relaxed);
                round += 1;
            }
        });
        let lives = scope.spawn(|| {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            while sent < due {
                let count = served.load(Relaxed);
                let (more, came) = live(&host, &mut random);
                (machines, sent, returned) = (machines + 1, sent + more, returned + came);
                eventually("the other tenant is served", || served.load(Relaxed) > count);
            }
        });
        let ended = lives.join();
        stop.store(true, Relaxed);
        assert!(ended.is_ok(), "FAIRLIFT_SEED={seed}");
    });
    assert!(returned > sent / 2, "{returned} of {sent} came back: these are no chains");
    let mut machine = Machine::start(&host, 1);
    assert_eq!(machine.call(READ, 0, &[1; 512]).0, 0);
    drop(machine);
    host.assert_idle();
    println!(
        "{sent} chains of {machines} machines, {returned} came back, {} requests of the other tenant",
        2 * served.load(Relaxed)
    );
}
