//! Power cuts: a back end that does things in any order and keeps, of what was not flushed, any part. What a client was told is on
//! stable storage is there afterwards. `FAIRLIFT_POWER_CUTS` says how many; 300 if it says nothing.

mod support;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use fairlift_core::collections::Id;
use fairlift_server::back::ram::Ram;
use fairlift_server::back::{BackEnd, Finisher, Job, Limits};
use fairlift_server::client::Client;
use fairlift_server::front::nbd::Bounds;
use fairlift_server::front::nbd::wire::{command, flag};
use fairlift_server::io::{Action, Fault};
use fairlift_server::net::Stream;
use support::Random;

/// The disk has so many sectors.
const SECTORS: usize = 64;
/// What a sector holds: a number of the write, written all over it.
type Version = u32;

/// A disk with a cache.
struct Platter {
    stable: [Version; SECTORS],
    /// Versions written and not on stable storage, oldest first.
    cached: Vec<Vec<Version>>,
    waiting: Vec<Job>,
    /// Of each flush that waits, by its request: the last version of each sector when it came. It covers no more.
    covers: HashMap<usize, Vec<Option<Version>>>,
    random: Random,
    off: bool,
}

/// The back end: jobs wait until [`Lossy::go_on`] does one of them.
#[derive(Clone)]
struct Lossy {
    platter: Arc<Mutex<Platter>>,
    came: Arc<Condvar>,
    finisher: Arc<Mutex<Option<Finisher>>>,
    fua: bool,
}

impl Lossy {
    fn new(seed: u64, fua: bool) -> Lossy {
        let platter = Platter {
            stable: [0; SECTORS],
            cached: vec![Vec::new(); SECTORS],
            waiting: Vec::new(),
            covers: HashMap::new(),
            random: Random(seed),
            off: false,
        };
        Lossy { platter: Arc::new(Mutex::new(platter)), came: Arc::default(), finisher: Arc::default(), fua }
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.platter.lock().expect("no panic")
    }

    /// Do one of the jobs that wait, a moment after too few have come to choose among; was there one?
    fn go_on(&self) -> bool {
        let mut platter = self.platter();
        let few = platter.random.below(4) as usize;
        let moment = Duration::from_millis(1);
        let more = |platter: &mut Platter| platter.waiting.len() <= few;
        (platter, _) = self.came.wait_timeout_while(platter, moment, more).expect("no panic");
        if platter.waiting.is_empty() {
            return false;
        }
        let count = platter.waiting.len() as u64;
        let at = platter.random.below(count) as usize;
        let mut job = platter.waiting.swap_remove(at);
        platter.serve(&mut job);
        drop(platter);
        self.finisher.lock().expect("no panic").as_ref().expect("attached").finish(&mut vec![job]);
        true
    }
}

impl Platter {
    fn serve(&mut self, job: &mut Job) {
        if self.off {
            job.result = Err(Fault::Io);
            return;
        }
        match job.action {
            Action::Write => {
                for (_, io) in &job.ios {
                    for (number, data) in io.data.chunks(512).enumerate() {
                        let version = Version::from_be_bytes([data[0], data[1], data[2], data[3]]);
                        let sector = io.offset as usize / 512 + number;
                        if job.fua {
                            self.cached[sector].clear();
                            self.stable[sector] = version;
                        } else {
                            self.cached[sector].push(version);
                        }
                    }
                }
            }
            Action::Flush => {
                let covers = self.covers.remove(&job.request.index()).unwrap_or_default();
                for ((stable, cached), last) in self.stable.iter_mut().zip(&mut self.cached).zip(covers) {
                    if let Some(at) = cached.iter().position(|version| Some(*version) == last) {
                        *stable = cached[at];
                        cached.drain(..=at);
                    }
                }
            }
            _ => job.result = Err(Fault::NotSupported),
        }
    }

    /// The power goes: of each sector something that was on its way to it stays.
    fn cut(&mut self) -> [Version; SECTORS] {
        self.off = true;
        let mut left = self.stable;
        for (sector, cached) in self.cached.iter().enumerate() {
            let kept = self.random.below(cached.len() as u64 + 1) as usize;
            if kept > 0 {
                left[sector] = cached[kept - 1];
            }
        }
        left
    }
}

impl BackEnd for Lossy {
    fn limits(&self) -> Limits {
        Limits { write_cache: true, fua: self.fua, ..Ram::new(SECTORS as u64 * 512).limits() }
    }

    fn attach(&self, finisher: Finisher) {
        *self.finisher.lock().expect("no panic") = Some(finisher);
    }

    fn start(&self, jobs: &mut Vec<Job>, _: &mut Vec<Job>) {
        let mut platter = self.platter();
        for job in jobs.drain(..) {
            if job.action == Action::Flush {
                let covers = platter.cached.iter().map(|cached| cached.last().copied()).collect();
                platter.covers.insert(job.request.index(), covers);
            }
            platter.waiting.push(job);
        }
        self.came.notify_one();
    }
}

fn connect(back: &Lossy, scheduler: &str) -> Client {
    let (_, exports) = support::exports_on(Box::new(back.clone()), scheduler, false);
    let ours = support::connect(&exports, Bounds::default());
    Client::over(Stream::Unix(ours), "it", true).expect("the server lets us in")
}

/// What the client knows of a sector.
#[derive(Clone, Copy, Default)]
struct Known {
    sent: Version,
    answered: Version,
    /// On stable storage at least this.
    durable: Version,
    busy: bool,
}

/// What is under way.
enum Sent {
    /// A write of sectors.
    Write { first: usize, count: usize, version: Version, fua: bool },
    /// A flush, and what was answered when it was sent.
    Flush(Vec<Version>),
}

/// A client that writes and flushes until the power goes after `steps` steps.
struct Writer {
    client: Client,
    known: [Known; SECTORS],
    sent: HashMap<u64, Sent>,
    version: Version,
    random: Random,
}

impl Writer {
    fn send(&mut self) {
        if self.random.below(6) == 0 {
            let request = self.client.request(command::FLUSH, 0, 0, 0);
            self.client.send(&request, &[]).expect("sent");
            let answered = self.known.iter().map(|known| known.answered).collect();
            self.sent.insert(request.cookie, Sent::Flush(answered));
            return;
        }
        let count = 1 + self.random.below(4) as usize;
        let first = self.random.below((SECTORS - count) as u64) as usize;
        // Two writes of one place at a time may end in either order, and prove nothing.
        if self.known[first..first + count].iter().any(|known| known.busy) {
            return;
        }
        self.version += 1;
        for known in &mut self.known[first..first + count] {
            (known.busy, known.sent) = (true, self.version);
        }
        let fua = self.random.below(5) == 0;
        let data = self.version.to_be_bytes().repeat(count * 128);
        let flags = if fua { flag::FUA } else { 0 };
        let request = self.client.request(command::WRITE, flags, first as u64 * 512, count as u32 * 512);
        self.client.send(&request, &data).expect("sent");
        self.sent.insert(request.cookie, Sent::Write { first, count, version: self.version, fua });
    }

    /// Take one answer.
    fn receive(&mut self) {
        let reply = self.client.receive(|_| 0).expect("a reply");
        assert_eq!(reply.error, 0);
        match self.sent.remove(&reply.cookie).expect("each once") {
            Sent::Write { first, count, version, fua } => {
                for known in &mut self.known[first..first + count] {
                    (known.busy, known.answered) = (false, version);
                    known.durable = if fua { version } else { known.durable };
                }
            }
            Sent::Flush(answered) => {
                for (known, answered) in self.known.iter_mut().zip(answered) {
                    known.durable = known.durable.max(answered);
                }
            }
        }
    }
}

fn power_cut(round: u64) {
    let scheduler = ["none", "fl-deadline", "fl-cfq", "fair", "bfq"][round as usize % 5];
    let back = Lossy::new(round + 1, round.is_multiple_of(2));
    let random = Random(round.wrapping_mul(0x9e37_79b9) + 1);
    let client = connect(&back, scheduler);
    let mut writer =
        Writer { client, known: [Known::default(); SECTORS], sent: HashMap::new(), version: 0, random };
    let stop = Arc::new(AtomicBool::new(false));
    let (works, over) = (back.clone(), stop.clone());
    let worker = std::thread::spawn(move || {
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            works.go_on();
        }
    });
    let steps = 5 + writer.random.below(60);
    for _ in 0..steps {
        writer.send();
        while writer.sent.len() > 12 {
            writer.receive();
        }
        if writer.random.below(3) == 0 && !writer.sent.is_empty() {
            writer.receive();
        }
    }
    let left = back.platter().cut();
    for (sector, (known, left)) in writer.known.iter().zip(left).enumerate() {
        assert!(
            (known.durable..=known.sent).contains(&left),
            "round {round}, {scheduler}: sector {sector} has version {left}; {} was flushed, {} sent",
            known.durable,
            known.sent
        );
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    worker.join().expect("no panic");
    // What still waits fails, so that the connection's thread ends.
    while back.go_on() {}
}

#[test]
fn nothing_that_was_flushed_is_lost() {
    let rounds = std::env::var("FAIRLIFT_POWER_CUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    (0..rounds).for_each(power_cut);
}
