//! Sessions of NBD that somebody has tampered with: 2,000 of them, `FAIRLIFT_STREAMS` times as many. The server survives, its
//! memory stays within what it promises, and a client of another export is served meanwhile. `FAIRLIFT_SEED` chooses others.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use fairlift_server::back::ram::Ram;
use fairlift_server::client::{Client, go_data};
use fairlift_server::exports::{Export, ExportOptions, Exports};
use fairlift_server::front::nbd::wire::{HAVE_OPTION, Request, command, flag, option};
use fairlift_server::front::nbd::{Bounds, PAYLOAD_MAX};
use fairlift_server::net::Stream;
use support::{Random, eventually, number};

const BYTES: u64 = 4 << 20;
const BOUNDS: Bounds = Bounds { requests: 16, bytes: 4 << 20 };
/// Sessions at a time.
const THREADS: u64 = 4;
/// What all else takes and the allocator keeps.
const ELSE_BYTES: u64 = 64 << 20;
/// A session that takes longer hangs.
const SESSION: Duration = Duration::from_secs(60);

fn an_option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut out = HAVE_OPTION.to_be_bytes().to_vec();
    out.extend(number.to_be_bytes());
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(data);
    out
}

fn context(queries: &[&str]) -> Vec<u8> {
    let mut out = 2u32.to_be_bytes().to_vec();
    out.extend(b"it");
    out.extend((queries.len() as u32).to_be_bytes());
    for query in queries {
        out.extend((query.len() as u32).to_be_bytes());
        out.extend(query.bytes());
    }
    out
}

/// A session as a client would have it, in its parts: the greeting, options, requests with their payloads.
fn session(random: &mut Random) -> Vec<Vec<u8>> {
    let mut parts = vec![3u32.to_be_bytes().to_vec()];
    for _ in 0..random.below(4) {
        parts.push(match random.below(8) {
            0 => an_option(option::LIST, &[]),
            1 => an_option(option::INFO, &go_data("it")),
            2 => an_option(option::STARTTLS, &[]),
            3 => an_option(option::LIST_META_CONTEXT, &context(&[])),
            4 => an_option(option::SET_META_CONTEXT, &context(&["base:allocation", "base:x"])),
            _ => an_option(option::STRUCTURED_REPLY, &[]),
        });
    }
    parts.push(match random.below(4) {
        0 => an_option(option::EXPORT_NAME, b"it"),
        _ => an_option(option::GO, &go_data("it")),
    });
    for cookie in 0..random.below(24) {
        let commands = [
            command::READ,
            command::WRITE,
            command::FLUSH,
            command::TRIM,
            command::WRITE_ZEROES,
            command::BLOCK_STATUS,
        ];
        let command = commands[random.below(6) as usize];
        let flags = [0, 0, flag::FUA, flag::NO_HOLE, flag::DF, flag::REQ_ONE, flag::FAST_ZERO];
        let most = 1 << (4 + random.below(14));
        let bytes = if command == command::FLUSH { 0 } else { 1 + random.below(most) as u32 };
        let offset = if command == command::FLUSH { 0 } else { random.below(BYTES - u64::from(bytes)) };
        let request = Request { flags: flags[random.below(7) as usize], command, cookie, offset, bytes };
        let mut part = request.to_bytes().to_vec();
        if command == command::WRITE {
            part.resize(part.len() + bytes as usize, cookie as u8);
        }
        parts.push(part);
    }
    parts
}

/// What somebody makes of it: parts doubled, lost and swapped, numbers at their edges, bits turned, the end cut off.
fn tamper(random: &mut Random, mut parts: Vec<Vec<u8>>) -> Vec<u8> {
    for _ in 0..random.below(3) {
        let (a, b) = (random.below(parts.len() as u64) as usize, random.below(parts.len() as u64) as usize);
        match random.below(3) {
            0 => parts.swap(a, b),
            1 => parts.insert(a, parts[b].clone()),
            _ => drop(parts.remove(a)),
        }
        if parts.is_empty() {
            return Vec::new();
        }
    }
    for _ in 0..random.below(6) {
        let at = random.below(parts.len() as u64) as usize;
        let part = &mut parts[at];
        // Headers are more worth than payloads.
        let place = random.below(part.len().clamp(1, 64) as u64) as usize;
        match random.below(5) {
            0 if place < part.len() => part[place] ^= 1 << random.below(8),
            1 if place < part.len() => part[place] = random.below(256) as u8,
            2 if part.len() >= 4 => {
                let edges = [0, 1, 27, 4096, 4097, 65_536, PAYLOAD_MAX, PAYLOAD_MAX + 1, 1 << 31, u32::MAX];
                let place = place.min(part.len() - 4) & !3;
                part[place..place + 4].copy_from_slice(&edges[random.below(10) as usize].to_be_bytes());
            }
            3 => part.truncate(place),
            _ => part.insert(place.min(part.len()), random.below(256) as u8),
        }
    }
    let mut bytes = parts.concat();
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
    }
    bytes
}

/// Send `bytes`, take all that comes, and wait until the server hangs up; some go without reading.
fn play(mut stream: UnixStream, bytes: &[u8], reads: bool) {
    stream.set_nonblocking(true).expect("a socket");
    let (mut sent, mut closed, begun) = (0, false, Instant::now());
    let mut room = [0; 65_536];
    loop {
        let mut idle = true;
        if sent < bytes.len() {
            match stream.write(&bytes[sent..]) {
                Ok(count) => (sent, idle) = (sent + count, false),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => sent = bytes.len(), // it has hung up; what it said is still there
            }
        } else if !closed {
            if !reads {
                return;
            }
            closed = true;
            // It may have hung up.
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        if reads {
            match stream.read(&mut room) {
                Ok(0) => return,
                Ok(_) => idle = false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        } else if idle {
            return; // the server waits for us to read
        }
        if idle {
            thread::sleep(Duration::from_micros(20));
        }
        assert!(begun.elapsed() < SESSION, "the server neither answers nor hangs up");
    }
}

/// A figure of this process's memory, bytes.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(key)).expect("the kernel tells it");
    line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok()).expect("KiB") << 10
}

/// Writes and reads of another export, each checked, until `stop`; how many.
fn bystander(exports: &Arc<Exports>, done: &AtomicU64, stop: &AtomicBool) {
    let stream = Stream::Unix(support::connect(exports, Bounds::default()));
    let mut client = Client::over(stream, "other", true).expect("the server lets us in");
    let mut round = 0;
    while !stop.load(Relaxed) {
        let offset = round % 64 * 4096;
        let data = [round as u8; 4096];
        assert_eq!(client.write(0, offset, &data).expect("a reply").error, 0);
        assert!(client.read(offset, 4096).expect("a reply").data == data, "what was written is read");
        done.fetch_add(1, Relaxed);
        round += 1;
    }
}

#[test]
fn sessions_that_were_tampered_with_harm_nobody() {
    let sessions = 2_000 * number("FAIRLIFT_STREAMS").unwrap_or(1);
    let seed = number("FAIRLIFT_SEED").unwrap_or(1);
    let device = support::device(Box::new(Ram::new(2 * BYTES)), "fl-deadline");
    let exports = Arc::new(Exports::default());
    for (name, offset) in [("it", 0), ("other", BYTES)] {
        let options =
            ExportOptions { name: name.to_owned(), offset, bytes: Some(BYTES), ..ExportOptions::default() };
        exports.add(Export::new(&device, options).expect("an export")).expect("a new one");
    }
    let (stop, served, played) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let before = memory("VmRSS");
    thread::scope(|scope| {
        scope.spawn(|| bystander(&exports, &served, &stop));
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let (exports, played) = (&exports, &played);
                scope.spawn(move || {
                    for at in (worker..sessions).step_by(THREADS as usize) {
                        let mut random = Random((seed << 32 | (at + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                        let parts = session(&mut random);
                        let bytes = tamper(&mut random, parts);
                        let reads = random.below(8) > 0;
                        play(support::connect(exports, BOUNDS), &bytes, reads);
                        played.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        // The bystander is served in every part of it.
        for quarter in 1..=4 {
            let (count, due) = (served.load(Relaxed), sessions * quarter / 4);
            while played.load(Relaxed) < due && workers.iter().any(|worker| !worker.is_finished()) {
                thread::sleep(Duration::from_millis(1));
            }
            eventually("the other tenant is served", || served.load(Relaxed) > count);
        }
        let results: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Relaxed);
        assert!(results.iter().all(Result::is_ok), "a session hangs (FAIRLIFT_SEED={seed})");
    });
    eventually("all is answered", || device.unfinished() == 0);
    let (peak, most) = (memory("VmHWM"), THREADS * (BOUNDS.bytes + 2 * u64::from(PAYLOAD_MAX)) + ELSE_BYTES);
    assert!(peak - before < most, "memory grew by {} bytes, allowed {most}", peak - before);
    println!(
        "{sessions} sessions, {} requests of the other tenant, memory at most {} MiB more",
        2 * served.load(Relaxed),
        (peak - before) >> 20
    );
}
