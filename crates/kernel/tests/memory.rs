//! What a queue takes fits into the piece of memory that the module takes for it (`FL_BYTES*` in `kernel/src/elevator.c`), so
//! that making one cannot run out of memory half-way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fairlift_kernel::host::{ELEVATORS, Host, Setup};

struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// One measures at a time.
static MEASURING: Mutex<()> = Mutex::new(());

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // As `fairlift_shim_alloc` places it; what is freed on the way is not used again.
        let start = TAKEN.load(Relaxed).next_multiple_of(layout.align().max(8));
        TAKEN.store(start + layout.size(), Relaxed);
        // SAFETY: the caller's promises are the ones it asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the ones it asks for.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn bytes(
    elevator: &'static str,
    requests_max: u32,
    contexts_max: u32,
    groups_max: u32,
    records_max: u32,
) -> usize {
    let _alone = MEASURING.lock();
    let before = TAKEN.load(Relaxed);
    let setup = Setup {
        elevator,
        profile: "2.6.37",
        requests_max,
        contexts_max,
        groups_max,
        records_max,
        rotational: true,
    };
    drop(Host::new(setup).unwrap());
    TAKEN.load(Relaxed) - before
}

fn reserved(name: &str) -> usize {
    let shim = include_str!("../../../kernel/src/elevator.c");
    let line = shim.lines().find(|l| l.starts_with(&format!("#define {name}\t"))).unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

fn default_of(parameter: &str) -> u32 {
    let shim = include_str!("../../../kernel/src/module.c");
    let (_, value) = shim.split_once(&format!("unsigned int fl_{parameter} = ")).unwrap();
    value.split_once(';').unwrap().0.parse().unwrap()
}

/// With one hardware queue (4,096 tags) and the module's defaults, no more than the tables took before they had a reserve
/// (1,024 contexts, 256 groups); fair, which was not there then, no more than cfq.
#[test]
fn a_disk_costs_no_more_than_before_there_was_a_reserve() {
    for (elevator, most) in
        [("noop", 728), ("deadline", 949), ("anticipatory", 1098), ("cfq", 3859), ("fair", 3859)]
    {
        let wants_contexts = matches!(elevator, "anticipatory" | "cfq" | "fair");
        let contexts = if wants_contexts { default_of("contexts_max") } else { 0 };
        let kib = bytes(elevator, 4096, contexts, default_of("groups_max"), 0).div_ceil(1024);
        println!("{elevator}: {kib} KiB (before: {most})");
        assert!(kib <= most, "{elevator}: {kib} KiB");
    }
}

#[test]
fn every_queue_fits_into_its_piece() {
    for elevator in ELEVATORS {
        for (requests, contexts, groups, records) in
            [(1, 0, 0, 0), (16, 4, 1, 0), (1024, 256, 72, 0), (4096, 64, 1000, 5000), (8192, 1024, 4, 0)]
        {
            let taken = bytes(elevator, requests, contexts, groups, records);
            let per = |name, count: u32| reserved(name) * count as usize;
            let piece = reserved("FL_BYTES")
                + per("FL_BYTES_PER_REQUEST", requests)
                + per("FL_BYTES_PER_CONTEXT", contexts)
                + per("FL_BYTES_PER_GROUP", groups + 1)
                + per("FL_BYTES_PER_RECORD", records);
            assert!(
                taken <= piece,
                "{elevator}, {requests} requests, {contexts} contexts, {groups} groups: {taken} of {piece}"
            );
        }
    }
}

#[test]
fn the_module_reserves_enough() {
    for elevator in ELEVATORS {
        let base = bytes(elevator, 1_000, 100, 10, 0);
        let request = (bytes(elevator, 11_000, 100, 10, 0) - base).div_ceil(10_000);
        let context = (bytes(elevator, 1_000, 1_100, 10, 0) - base).div_ceil(1_000);
        let group = (bytes(elevator, 1_000, 100, 1_010, 0) - base).div_ceil(1_000);
        let record = (bytes(elevator, 1_000, 100, 10, 10_000) - base).div_ceil(10_000);
        assert!(request <= reserved("FL_BYTES_PER_REQUEST"), "{elevator}: {request} per request");
        assert!(context <= reserved("FL_BYTES_PER_CONTEXT"), "{elevator}: {context} per context");
        assert!(group <= reserved("FL_BYTES_PER_GROUP"), "{elevator}: {group} per group");
        assert!(record <= reserved("FL_BYTES_PER_RECORD"), "{elevator}: {record} per record");
    }
}
