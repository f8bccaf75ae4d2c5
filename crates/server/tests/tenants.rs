//! What a tenant may try through its connections to get more than is due to it, beside a victim of three times its weight.
//!
//! The back end serves while both have something to do, so that a crowded machine that does not run one of them proves nothing; what
//! is compared is the device's time as the core bills it.

mod support;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fairlift_core::GroupId;
use fairlift_server::back::ram::Ram;
use fairlift_server::back::{BackEnd, Finisher, Job, Limits};
use fairlift_server::client::Client;
use fairlift_server::device::{Device, Share};
use fairlift_server::exports::{Export, ExportOptions, Exports};
use fairlift_server::front::nbd::Bounds;
use fairlift_server::front::nbd::wire::{Request, command, flag};
use fairlift_server::io::Action;
use fairlift_server::net::Stream;
use fairlift_sim::group::limits::Max;
use support::{Random, eventually};

const BYTES: u64 = 1 << 30;
/// How long the shares are taken.
const WINDOW: Duration = Duration::from_secs(2);

/// Whose requests the back end waits for.
type Guarded = Option<(Arc<Device>, Vec<GroupId>)>;

/// Memory that takes its time: one job after the other, in a thread of its own.
struct Slow {
    ram: Arc<Ram>,
    line: Mutex<Sender<Job>>,
    rest: Mutex<Option<Receiver<Job>>>,
    device: Arc<Mutex<Guarded>>,
}

impl Slow {
    fn new() -> Slow {
        let (line, rest) = channel();
        Slow {
            ram: Arc::new(Ram::new(BYTES)),
            line: Mutex::new(line),
            rest: Mutex::new(Some(rest)),
            device: Arc::default(),
        }
    }
}

/// Do all those have requests in the device or the queue?
fn are_busy(device: &Device, tenants: &[GroupId]) -> bool {
    tenants.iter().all(|group| {
        let (queued, in_device) = device.tenant(*group).depths;
        queued + in_device > 0
    })
}

impl BackEnd for Slow {
    fn limits(&self) -> Limits {
        Limits { write_cache: true, fua: false, queue_depth: 4, ..self.ram.limits() }
    }

    fn attach(&self, finisher: Finisher) {
        let rest = self.rest.lock().expect("no panic").take().expect("attached once");
        let (ram, device) = (self.ram.clone(), self.device.clone());
        thread::spawn(move || {
            for mut job in rest {
                let took = if job.action == Action::Flush { 500 } else { 100 + job.bytes / 512 };
                thread::sleep(Duration::from_micros(took));
                let (busy, until) = (device.lock().expect("no panic").clone(), Instant::now() + WINDOW);
                while busy.as_ref().is_some_and(|(device, all)| !are_busy(device, all))
                    && Instant::now() < until
                {
                    thread::sleep(Duration::from_micros(100));
                }
                let mut done = Vec::new();
                if job.action == Action::Flush {
                    job.result = Ok(());
                    done.push(job);
                } else {
                    ram.start(&mut vec![job], &mut done);
                }
                finisher.finish(&mut done);
            }
        });
    }

    fn start(&self, jobs: &mut Vec<Job>, _: &mut Vec<Job>) {
        let line = self.line.lock().expect("no panic");
        jobs.drain(..).for_each(|job| line.send(job).expect("the thread is there"));
    }
}

/// They run in real time, one after the other: beside each other they would take each other's processor.
static ALONE: Mutex<()> = Mutex::new(());

/// A device with a victim of weight 300 and an attacker of weight 100.
struct Pair {
    device: Arc<Device>,
    exports: Arc<Exports>,
    groups: Vec<GroupId>,
    guarded: Arc<Mutex<Guarded>>,
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<u64>>,
    _alone: MutexGuard<'static, ()>,
}

impl Pair {
    fn new(elevator: &str, limits: &str) -> Pair {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let back = Slow::new();
        let guarded = back.device.clone();
        let device = support::device(Box::new(back), elevator);
        let exports = Arc::new(Exports::default());
        for (name, weight, max) in [("victim", 300, ""), ("attacker", 100, limits)] {
            let max = if max.is_empty() { Max::default() } else { Max::parse(max).expect("limits") };
            let share = Share { weight, max, ..Share::default() };
            let options = ExportOptions { name: name.to_owned(), share, ..ExportOptions::default() };
            exports.add(Export::new(&device, options).expect("an export")).expect("a new one");
        }
        let groups =
            ["victim", "attacker"].map(|name| exports.find(name).expect("it is there").group).to_vec();
        let (stop, threads) = (Arc::default(), Vec::new());
        Pair { device, exports, groups, guarded, stop, threads, _alone: alone }
    }

    /// A connection that keeps `depth` requests under way, as `next` makes them, and tells how many were answered.
    fn load(
        &mut self,
        name: &str,
        depth: usize,
        mut next: impl FnMut(&mut Client) -> Request + Send + 'static,
    ) {
        let stream = Stream::Unix(support::connect(&self.exports, Bounds::default()));
        let mut client = Client::over(stream, name, true).expect("the server lets us in");
        let stop = self.stop.clone();
        self.threads.push(thread::spawn(move || {
            let (mut under_way, mut answered) = (0, 0);
            while !stop.load(Relaxed) || under_way > 0 {
                while under_way < depth && !stop.load(Relaxed) {
                    let request = next(&mut client);
                    let bytes = if request.command == command::WRITE { request.bytes as usize } else { 0 };
                    client.send(&request, &vec![1; bytes]).expect("sent");
                    under_way += 1;
                }
                let reply = client.receive(|_| 0).expect("a reply");
                assert_eq!(reply.error, 0);
                (under_way, answered) = (under_way - 1, answered + 1);
            }
            answered
        }));
    }

    /// Random reads of 4 KiB, 16 at a time.
    fn load_victim(&mut self) {
        let mut random = Random(11);
        self.load("victim", 16, move |client| {
            client.request(command::READ, 0, random.below(BYTES >> 12) << 12, 4096)
        });
    }

    /// Of each 1,000 parts of the device's time that both get, the attacker's.
    fn attackers_part(&self) -> u64 {
        let both_busy = || are_busy(&self.device, &self.groups);
        eventually("both are busy", both_busy);
        *self.guarded.lock().expect("no panic") = Some((self.device.clone(), self.groups.clone()));
        let times =
            || self.groups.iter().map(|group| self.device.tenant(*group).stats.time_ns).collect::<Vec<_>>();
        let before = times();
        thread::sleep(WINDOW);
        let after = times();
        *self.guarded.lock().expect("no panic") = None;
        let had: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        had[1] * 1000 / (had[0] + had[1]).max(1)
    }

    /// End the loads; what each had answered.
    fn end(mut self) -> Vec<u64> {
        self.stop.store(true, Relaxed);
        let answered = self.threads.drain(..).map(|thread| thread.join().expect("it ends")).collect();
        eventually("all is answered", || self.device.unfinished() == 0);
        answered
    }
}

/// Turns of 10 ms: some 50 rounds in a window. (fl-cfq with slice_idle=0 counts requests, not time, as the kernel's cfq did.)
const ELEVATORS: [&str; 2] =
    ["fl-deadline:group_slice=10:group_latency=0", "fl-cfq:group_latency=0:slice_sync=10"];

/// The attacker gets its quarter of the device's time, give or take two turns of 100.
fn gets_its_quarter(what: &str, attack: impl Fn(&mut Pair)) {
    for elevator in ELEVATORS {
        let mut pair = Pair::new(elevator, "");
        pair.load_victim();
        attack(&mut pair);
        let part = pair.attackers_part();
        pair.end();
        assert!((230..=270).contains(&part), "{what}, {elevator}: {part} of 1000, and 250 are due");
    }
}

#[test]
fn reading_one_sector_again_and_again_gains_nothing() {
    gets_its_quarter("one sector", |pair| {
        pair.load("attacker", 128, |client| client.request(command::READ, 0, 4096, 512));
    });
}

#[test]
fn many_connections_gain_nothing() {
    gets_its_quarter("24 connections", |pair| {
        for connection in 0..24 {
            let mut random = Random(connection + 1);
            pair.load("attacker", 8, move |client| {
                client.request(command::READ, 0, random.below(BYTES >> 12) << 12, 4096)
            });
        }
    });
}

#[test]
fn large_requests_beside_small_ones_gain_nothing() {
    gets_its_quarter("1 MiB beside 4 KiB", |pair| {
        let mut random = Random(5);
        pair.load("attacker", 8, move |client| {
            client.request(command::READ, 0, random.below(BYTES >> 20) << 20, 1 << 20)
        });
    });
}

#[test]
fn writes_that_are_flushed_one_by_one_gain_nothing() {
    gets_its_quarter("FUA writes and flushes", |pair| {
        let mut random = Random(7);
        pair.load("attacker", 32, move |client| match random.below(3) {
            0 => client.request(command::FLUSH, 0, 0, 0),
            _ => client.request(command::WRITE, flag::FUA, random.below(BYTES >> 12) << 12, 4096),
        });
    });
}

#[test]
fn a_limit_holds_whatever_comes_between() {
    let mut pair = Pair::new(ELEVATORS[0], "riops=100 wiops=100");
    pair.load_victim();
    for connection in 0..8 {
        let mut random = Random(connection + 1);
        pair.load("attacker", 16, move |client| match random.below(4) {
            0 => client.request(command::FLUSH, 0, 0, 0),
            1 => client.request(command::TRIM, 0, 4096, 4096),
            2 => client.request(command::READ, 0, random.below(BYTES >> 12) << 12, 4096),
            _ => client.request(command::WRITE, 0, random.below(BYTES >> 12) << 12, 4096),
        });
    }
    let group = pair.groups[1];
    let moved = |pair: &Pair| pair.device.tenant(group).stats.total().sectors;
    eventually("the attacker is served", || moved(&pair) > 0);
    let (start, before) = (Instant::now(), moved(&pair));
    thread::sleep(WINDOW);
    // Reads and writes of 8 sectors, trims count with writes: 200 requests a second, 2 x 20 ms that may be kept, 2 x 2 bios.
    let (most, had) = (200.0 * start.elapsed().as_secs_f64() + 8.0, (moved(&pair) - before) / 8);
    pair.stop.store(true, Relaxed);
    assert!(had as f64 <= most, "{had} requests in {:?}", start.elapsed());
    assert!(had as f64 >= most * 0.8, "{had} requests in {:?}: the limit is not reached", start.elapsed());
}

/// How long the victim waits for each of its reads, sorted, one at a time with some thought between them, beside a deep neighbour.
fn waits_with_goal(elevator: &str, goal_ns: u64) -> Vec<Duration> {
    let mut pair = Pair::new(elevator, "");
    let export = pair.exports.find("victim").expect("it is there");
    export.set_share(Share { goal_ns, ..export.share() }).expect("it may have one");
    let mut random = Random(3);
    pair.load("attacker", 32, move |client| {
        client.request(command::READ, 0, random.below(BYTES >> 16) << 16, 64 << 10)
    });
    let stream = Stream::Unix(support::connect(&pair.exports, Bounds::default()));
    let mut victim = Client::over(stream, "victim", true).expect("the server lets us in");
    let read = |at: u64| {
        thread::sleep(Duration::from_millis(25));
        let begun = Instant::now();
        assert_eq!(victim.read(at << 20, 4096).expect("an answer").error, 0);
        begun.elapsed()
    };
    let mut waits: Vec<Duration> = (0..40).map(read).collect();
    waits.sort();
    let goal = pair.device.tenant(export.group).stats.goal;
    let counted = goal.met + goal.missed_above_due + goal.missed_within_due;
    assert_eq!(counted, if goal_ns > 0 { 40 } else { 0 }, "{elevator}");
    pair.end();
    waits
}

/// Half of its reads are answered in a third of the time: the goal orders, and is not only watched.
#[test]
fn a_goal_brings_the_turn_of_a_tenant_forward() {
    for elevator in ["fl-deadline", "fl-cfq"] {
        let [without, with] = [0, 2_000_000].map(|goal_ns| waits_with_goal(elevator, goal_ns)[20]);
        assert!(
            3 * with < without,
            "{elevator}: half of the reads wait {without:?} without a goal, {with:?} with one"
        );
    }
}

#[test]
fn who_never_reads_stands_in_nobodys_way() {
    let mut pair = Pair::new(ELEVATORS[0], "");
    let stream = Stream::Unix(support::connect(&pair.exports, Bounds::default()));
    let mut deaf = Client::over(stream, "attacker", true).expect("the server lets us in");
    for at in 0..256 {
        let request = deaf.request(command::READ, 0, at << 20, 256 << 10);
        deaf.send(&request, &[]).expect("sent");
    }
    eventually("its requests are served", || pair.device.unfinished() == 0);
    pair.load_victim();
    let before = pair.device.tenant(pair.groups[0]).stats.total().ios;
    eventually("the victim is served", || {
        pair.device.tenant(pair.groups[0]).stats.total().ios > before + 1000
    });
    pair.end();
}
