//! Damaged traces, replayed: whatever can be read of them is done, once, under every timing. Seeds are fixed.

use std::io::Cursor;
use std::sync::Arc;

use fairlift_sim::device::DeviceSpec;
use fairlift_sim::device::rng::Rng;
use fairlift_sim::kernel::{Filesystem, Memory, version};
use fairlift_sim::lab::{Replaying, Setup, run_with};
use fairlift_sim::program::replay::{Loader, Replay, Timing};
use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scheduler::SchedulerSpec;
use fairlift_trace::{Options, TraceReader};

/// Traces of several shapes: all stages with merges and splits, arrivals with answer times, several volumes, flushes.
const SEEDS: [&str; 4] = [
    "\
  8,0    0        1     0.000000000   100  Q   R 2048 + 8 [a]
  8,0    0        2     0.000001000   100  G   R 2048 + 8 [a]
  8,0    0        3     0.000002000   100  P   N [a]
  8,0    0        4     0.000003000   100  Q   R 2056 + 8 [a]
  8,0    0        5     0.000003500   100  M   R 2056 + 8 [a]
  8,0    0        6     0.000004000   100  U   N [a] 1
  8,0    0        7     0.000005000   100  I   R 2048 + 16 [a]
  8,0    0        8     0.000006000   100  D   R 2048 + 16 [a]
  8,0    1        9     0.000007000   200  Q FWS 0 [b]
  8,0    1       10     0.000008000   200  Q  WS 4096 + 256 [b]
  8,0    1       11     0.000008500   200  X  WS 4096 / 4224 [b]
  8,0    1       12     0.000009000   200  D  WS 4096 + 128 [b]
  8,0    1       13     0.000009500   200  D  WS 4224 + 128 [b]
  8,0    0       14     0.000500000     0  C   R 2048 + 16 [0]
  8,0    0       15     0.000600000     0  C  WS 4096 + 128 [0]
  8,0    0       16     0.000700000     0  C  WS 4224 + 128 [0]
  8,0    0       17     0.000800000     0  C FWS 0 [0]
",
    "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,src,1,Write,2517139456,4096,1963\n",
    "time_us,sector,bytes,op,flags,pid,response_us\n0,0,4096,read,,1,300\n100,8,512,write,sync+fua,1,90\n\
     150,0,0,flush,,2,\n400,99999999999,4096,discard,,3,50\n",
    "1538323200,12910952,128,0,1063\n1538323200,6265984,8,1,1071\n1538323201,6265992,8,0,1071\n",
];

fn damage(text: &str, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.below(5) {
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(5) {
            0 => bytes[at] = rng.next_u64() as u8,
            1 => bytes[at] = b'0' + rng.below(10) as u8,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, *b"0123456789.,-RWDQCF \n".get(rng.below(21) as usize).unwrap_or(&b' ')),
            _ => {
                let end = (at + 40).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

fn load(bytes: Vec<u8>) -> Option<Replay> {
    let options = Options { keep_going: true, ..Options::default() };
    let mut reader = TraceReader::from_read("damaged", Cursor::new(bytes), &options).ok()?;
    let mut next = reader.next();
    let mut loader = Loader::new(reader.facts(), Vec::new());
    while let Some(event) = next {
        loader.event(&event.ok()?, reader.names());
        next = reader.next();
    }
    Some(loader.finish(reader.names()))
}

fn replayed(replay: &Arc<Replay>, timing: Timing, scheduler: &str) -> RunResult {
    let device = DeviceSpec::load("null").expect("a preset");
    let setup = Setup {
        scheduler: &SchedulerSpec::parse(scheduler, version::DEFAULT.profile).expect("a scheduler"),
        device: &device,
        rules: version::DEFAULT,
        memory: Memory::default(),
        filesystem: Filesystem::Raw,
        jobs: &[],
        programs: &[],
        groups: &replay.groups(),
        warmup_ns: None,
        seed: 1,
        runtime_ns: None,
        fresh_files: false,
        explain: false,
    };
    let replaying = Replaying { trace: Arc::clone(replay), timing };
    run_with(&setup, Some(&replaying), &mut None, &mut |_| {}).expect("it ends")
}

/// I/Os that ended, each told once to the process that asked for it.
///
/// These are not the block layer's bios: a large I/O is several bios, and a flush is none where the device has nothing to flush
/// and nothing is under way (the queue says that it is done before it becomes one).
fn ended(run: &RunResult) -> u64 {
    run.processes.iter().map(|process| process.ios() + process.sync.count()).sum()
}

#[test]
fn whatever_can_be_read_is_done_once() {
    let mut rng = Rng::new(6);
    let mut rounds = 0;
    for round in 0..2000 {
        let bytes = damage(SEEDS[round % SEEDS.len()], &mut rng);
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let Some(replay) = load(bytes).filter(|replay| replay.ios > 0) else { continue };
        let replay = Arc::new(replay);
        for (timing, scheduler) in [
            (Timing::Open, "cfq"),
            (Timing::Closed, "deadline"),
            (Timing::Asap, "noop"),
            (Timing::Scaled(500_000), "anticipatory"),
        ] {
            let run = replayed(&replay, timing, scheduler);
            assert_eq!(ended(&run), replay.ios, "{timing}: {shown}");
            let asked: u64 = run.processes.iter().map(JobResult::bytes).sum();
            assert_eq!(512 * run.block.sectors.iter().sum::<u64>(), asked, "{timing}: {shown}");
        }
        rounds += 1;
    }
    assert!(rounds > 1000, "{rounds} of 2000 could be read");
}

/// A run took memory for every half second of it once: a trace with a fault in a time stamp lasts for as long as that says.
#[test]
fn a_trace_that_rests_for_centuries_is_replayed() {
    let late = u64::MAX / 1000 - 1000;
    let text = format!("time_us,sector,bytes,op\n0,0,4096,read\n{late},8,4096,write\n");
    let replay = Arc::new(load(text.into_bytes()).expect("a trace"));
    for timing in [Timing::Open, Timing::Closed, Timing::Asap, Timing::Scaled(2_000_000)] {
        let run = replayed(&replay, timing, "cfq");
        assert_eq!(ended(&run), 2, "{timing}");
    }
}
