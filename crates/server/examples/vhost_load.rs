//! A load on a vhost-user-blk server, by the driver of our tests: random reads or writes of 4 KiB on one queue, so many at a time.
//!
//! ```text
//! vhost_load SOCKET randread|randwrite DEPTH SECONDS
//! ```
//!
//! DEPTH is 16 at most. The driver looks for answers all the time, as a guest's poll mode driver does, and kicks unless the server says that it
//! looks itself. Prints one line of JSON, as `load` does.

#[path = "../tests/support/machine.rs"]
mod machine;

/// What the driver of the tests wants to know of a server.
mod support {
    use std::path::PathBuf;

    pub struct Host {
        /// Where the socket `disk` is.
        pub dir: PathBuf,
    }
}

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use machine::{Machine, READ, RING, USED, WRITE};

const BYTES: u32 = 4096;
/// Descriptors of a request.
const DESCRIPTORS: u16 = 4;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((machine, kind, depth, seconds)) = parse(&words) else {
        eprintln!(
            "usage: vhost_load SOCKET randread|randwrite DEPTH SECONDS; the socket's name is `disk`, DEPTH 1 to {}",
            RING / DESCRIPTORS
        );
        std::process::exit(2);
    };
    println!("{}", run(machine, kind, depth, seconds));
}

fn parse(words: &[String]) -> Option<(Machine, u32, u16, f64)> {
    let [socket, kind, depth, seconds] = words else { return None };
    let kind = match kind.as_str() {
        "randread" => READ,
        "randwrite" => WRITE,
        _ => return None,
    };
    let depth = depth.parse().ok().filter(|depth| (1..=RING / DESCRIPTORS).contains(depth))?;
    let seconds = seconds.parse().ok()?;
    let socket = Path::new(socket);
    if let Err(error) = UnixStream::connect(socket) {
        eprintln!("{}: {error}", socket.display());
        std::process::exit(1);
    }
    let dir = socket.parent().filter(|_| socket.ends_with("disk"))?.to_path_buf();
    Some((Machine::start(&support::Host { dir }, 1), kind, depth, seconds))
}

fn run(mut machine: Machine, kind: u32, depth: u16, seconds: f64) -> String {
    let config = machine.config();
    let sectors = u64::from_le_bytes(config[..8].try_into().expect("the capacity is its first field"));
    let blocks = sectors * 512 / u64::from(BYTES);
    let mut latencies_ns = Histogram::<u64>::new(3).expect("three digits can be kept");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut sent = vec![Instant::now(); usize::from(depth)];
    let mut place = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 20) % blocks * u64::from(BYTES / 512)
    };
    for slot in 0..depth {
        machine.add(0, slot, kind, place(), BYTES, u64::from(BYTES));
    }
    machine.kick(0);
    let (start, length) = (Instant::now(), Duration::from_secs_f64(seconds));
    loop {
        let done = machine.u16_at(machine.queues[0].base + USED + 2).wrapping_sub(machine.queues[0].seen);
        if done == 0 {
            if start.elapsed() >= length {
                break;
            }
            std::hint::spin_loop();
            continue;
        }
        let over = start.elapsed() >= length;
        for _ in 0..done {
            let (slot, status, _) = machine.next(0);
            assert_eq!(status, 0, "a good answer");
            let now = Instant::now();
            if !over {
                let _ = latencies_ns.record((now - sent[usize::from(slot)]).as_nanos() as u64);
                sent[usize::from(slot)] = now;
                machine.add(0, slot, kind, place(), BYTES, u64::from(BYTES));
            }
        }
        if over {
            break;
        }
        // Bit 0 of the used ring's flags: no kick is wanted.
        if machine.u16_at(machine.queues[0].base + USED) & 1 == 0 {
            machine.kick(0);
        }
    }
    let at = |part: f64| latencies_ns.value_at_quantile(part) as f64 / 1e3;
    format!(
        "{{\"requests\": {}, \"per_second\": {:.1}, \"p50_us\": {:.1}, \"p99_us\": {:.1}, \"longest_us\": {:.1}}}",
        latencies_ns.len(),
        latencies_ns.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        latencies_ns.max() as f64 / 1e3,
    )
}
