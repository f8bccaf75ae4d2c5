//! A load on an NBD server: random or sequential reads or writes, closed (so many at a time) or at a fixed rate of arrivals.
//!
//! ```text
//! load ADDRESS EXPORT read|write|randread|randwrite BYTES DEPTH CONNECTIONS SECONDS [RATE|poll]
//! ```
//!
//! Prints one line of JSON: requests a second, bytes a second, and latency in microseconds. With RATE (requests a second of a
//! connection, Poisson) latency counts from when a request was due, and DEPTH bounds what is in flight. With `poll`
//! it never sleeps: it looks for replies all the time, so that no time to wake it is among the latency. Percentiles are right
//! within one part in 1,000; memory does not grow with the time.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use fairlift_server::client::Client;
use fairlift_server::front::nbd::wire::{self, command, u32_at, u64_at};
use fairlift_server::net::Address;
use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const USAGE: &str =
    "load ADDRESS EXPORT read|write|randread|randwrite BYTES DEPTH CONNECTIONS SECONDS [RATE|poll]";

/// Three digits of each latency, nanoseconds.
const DIGITS: u8 = 3;

#[derive(Clone)]
struct Load {
    address: Address,
    export: String,
    random: bool,
    write: bool,
    bytes: u32,
    depth: usize,
    seconds: f64,
    rate: Option<f64>,
    polls: bool,
}

/// xorshift64: offsets need no more.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From an exponential distribution of mean 1.
    fn exponential(&mut self) -> f64 {
        -(((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64).ln()
    }
}

/// One connection's requests: when each was due, by its cookie.
struct Runner {
    load: Load,
    client: Client,
    random: Random,
    place: u64,
    blocks: u64,
    due: Vec<Instant>,
    free: Vec<usize>,
    out: Vec<u8>,
    payload: Vec<u8>,
    latencies_ns: Histogram<u64>,
}

fn empty() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("so many digits can be kept")
}

/// That one took so long. (A histogram that grows by itself refuses none.)
fn add(latencies_ns: &mut Histogram<u64>, took: Duration) {
    let _ = latencies_ns.record(took.as_nanos() as u64);
}

impl Runner {
    fn new(load: &Load, number: u64) -> std::io::Result<Runner> {
        let client = Client::connect(&load.address, &load.export, false)?;
        client.stream.set_nonblocking(true)?;
        let blocks = client.bytes / u64::from(load.bytes);
        Ok(Runner {
            random: Random(0x9e37_79b9_7f4a_7c15 ^ (number + 1).wrapping_mul(0xd129_42f1)),
            place: blocks / 16 * (number % 16),
            blocks,
            due: vec![Instant::now(); load.depth],
            free: (0..load.depth).collect(),
            out: Vec::new(),
            payload: vec![0xa5; if load.write { load.bytes as usize } else { 0 }],
            latencies_ns: empty(),
            load: load.clone(),
            client,
        })
    }

    fn send(&mut self, due: Instant) {
        let Some(slot) = self.free.pop() else { return };
        let block = if self.load.random { self.random.next() % self.blocks } else { self.place };
        self.place = (self.place + 1) % self.blocks;
        self.due[slot] = due;
        let request = wire::Request {
            flags: 0,
            command: if self.load.write { command::WRITE } else { command::READ },
            cookie: slot as u64,
            offset: block * u64::from(self.load.bytes),
            bytes: self.load.bytes,
        };
        self.out.extend(request.to_bytes());
        self.out.extend(&self.payload);
    }

    fn run(mut self) -> std::io::Result<Histogram<u64>> {
        let reply = 16 + if self.load.write { 0 } else { self.load.bytes as usize };
        let mut buffer = vec![0; (reply * self.load.depth).max(1 << 20)];
        let (mut filled, start) = (0, Instant::now());
        let end = start + Duration::from_secs_f64(self.load.seconds);
        let mut arrivals: VecDeque<Instant> = VecDeque::new();
        let mut next = start;
        // Afterwards what is under way is waited for.
        while Instant::now() < end || self.free.len() < self.load.depth {
            let now = Instant::now();
            let over = now >= end;
            if over {
                // Nothing new.
            } else if let Some(rate) = self.load.rate {
                while next <= now {
                    arrivals.push_back(next);
                    next += Duration::from_secs_f64(self.random.exponential() / rate);
                }
                while let Some(due) = arrivals.front().copied().filter(|_| !self.free.is_empty()) {
                    arrivals.pop_front();
                    self.send(due);
                }
            } else {
                while !self.free.is_empty() {
                    self.send(now);
                }
            }
            while !self.out.is_empty() {
                match self.client.stream.write(&self.out) {
                    Ok(bytes) => drop(self.out.drain(..bytes)),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            match self.client.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.wait(if over { now + Duration::from_millis(10) } else { next.min(end) })?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let now = Instant::now();
            let mut at = 0;
            while filled - at >= reply {
                assert_eq!(
                    (u32_at(&buffer, at), u32_at(&buffer, at + 4)),
                    (wire::SIMPLE_REPLY, 0),
                    "a good reply"
                );
                let slot = u64_at(&buffer, at + 8) as usize;
                // What comes after the end would count as work of a time that is not counted.
                if !over {
                    add(&mut self.latencies_ns, now - self.due[slot]);
                }
                self.free.push(slot);
                at += reply;
            }
            buffer.copy_within(at..filled, 0);
            filled -= at;
        }
        // What never was answered waited at least so long.
        let now = Instant::now();
        arrivals.iter().for_each(|due| add(&mut self.latencies_ns, now - *due));
        let bye = self.client.request(command::DISCONNECT, 0, 0, 0);
        self.client.stream.set_nonblocking(false)?;
        self.client.send(&bye, &[])?;
        Ok(self.latencies_ns)
    }

    fn wait(&self, until: Instant) -> std::io::Result<()> {
        if self.load.polls {
            std::hint::spin_loop();
            return Ok(());
        }
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, !self.out.is_empty());
        let left = match self.load.rate {
            Some(_) => until.saturating_duration_since(Instant::now()),
            None => Duration::from_millis(100),
        };
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        poll(&mut [PollFd::new(&self.client.stream, wanted)], Some(&left))?;
        Ok(())
    }
}

fn parse(words: &[String]) -> Option<(Load, u64)> {
    let [address, export, kind, bytes, depth, connections, seconds, rest @ ..] = words else { return None };
    let load = Load {
        address: Address::parse(address).ok()?,
        export: export.clone(),
        random: kind.starts_with("rand"),
        write: match kind.trim_start_matches("rand") {
            "read" => false,
            "write" => true,
            _ => return None,
        },
        bytes: bytes.parse().ok()?,
        depth: depth.parse().ok()?,
        seconds: seconds.parse().ok()?,
        rate: rest.first().filter(|word| *word != "poll").map(|rate| rate.parse()).transpose().ok()?,
        polls: rest.first().is_some_and(|word| word == "poll"),
    };
    Some((load, connections.parse().ok()?))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((load, connections)) = parse(&words) else {
        eprintln!("usage: {USAGE}");
        std::process::exit(2);
    };
    let runners: Vec<Runner> = (0..connections)
        .map(|number| {
            Runner::new(&load, number).unwrap_or_else(|error| {
                eprintln!("{}: {error}", load.address);
                std::process::exit(1);
            })
        })
        .collect();
    let threads: Vec<_> = runners.into_iter().map(|runner| std::thread::spawn(|| runner.run())).collect();
    let mut latencies = empty();
    for thread in threads {
        match thread.join().map_err(|_| std::io::Error::other("it panicked")).and_then(|answer| answer) {
            Ok(part) => latencies += part,
            Err(error) => {
                eprintln!("{}: {error}", load.address);
                std::process::exit(1);
            }
        }
    }
    let at = |part: f64| latencies.value_at_quantile(part) as f64 / 1e3;
    let (mean, longest) = (latencies.mean() / 1e3, latencies.max() as f64 / 1e3);
    let per_second = latencies.len() as f64 / load.seconds;
    println!(
        "{{\"requests\": {}, \"per_second\": {per_second:.1}, \"mib_per_second\": {:.2}, \"mean_us\": {mean:.1}, \
         \"p50_us\": {:.1}, \"p99_us\": {:.1}, \"p999_us\": {:.1}, \"longest_us\": {:.1}}}",
        latencies.len(),
        per_second * f64::from(load.bytes) / f64::from(1 << 20),
        at(0.5),
        at(0.99),
        at(0.999),
        longest,
    );
}
