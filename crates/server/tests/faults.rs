//! What goes wrong stays with whom it happens to: back ends that fail, stand still or are full; clients that die, never read, or
//! send anything.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairlift_server::back::ram::Ram;
use fairlift_server::back::{BackEnd, Finisher, Job, Limits};
use fairlift_server::client::Client;
use fairlift_server::config::ELEVATOR;
use fairlift_server::device::Device;
use fairlift_server::exports::{Export, ExportOptions, Exports};
use fairlift_server::front::nbd::wire::{command, flag};
use fairlift_server::front::nbd::{Bounds, Security, greet, negotiate};
use fairlift_server::io::{Action, Fault};
use fairlift_server::net::Stream;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use support::{Host, eventually};

/// Memory that fails as it is told, and keeps some jobs for itself.
struct Faulty {
    ram: Ram,
    fails: fn(&Job) -> Option<Fault>,
    keeps: fn(&Job) -> bool,
    kept: Arc<Mutex<Vec<Job>>>,
    finisher: Arc<Mutex<Option<Finisher>>>,
}

impl BackEnd for Faulty {
    fn limits(&self) -> Limits {
        Limits { write_cache: true, ..self.ram.limits() }
    }

    fn attach(&self, finisher: Finisher) {
        *self.finisher.lock().expect("no panic") = Some(finisher);
    }

    fn start(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>) {
        for mut job in jobs.drain(..) {
            if (self.keeps)(&job) {
                self.kept.lock().expect("no panic").push(job);
            } else if let Some(fault) = (self.fails)(&job) {
                job.result = Err(fault);
                done.push(job);
            } else {
                self.ram.start(&mut vec![job], done);
            }
        }
    }
}

/// A server of one export "it" on a faulty back end, without a listener.
struct Lab {
    exports: Arc<Exports>,
    device: Arc<Device>,
    kept: Arc<Mutex<Vec<Job>>>,
    finisher: Arc<Mutex<Option<Finisher>>>,
    bounds: Bounds,
}

impl Lab {
    fn new(fails: fn(&Job) -> Option<Fault>, keeps: fn(&Job) -> bool) -> Lab {
        let (kept, finisher) = (Arc::default(), Arc::default());
        let back = Faulty {
            ram: Ram::new(64 << 20),
            fails,
            keeps,
            kept: Arc::clone(&kept),
            finisher: Arc::clone(&finisher),
        };
        let (device, exports) = support::exports_on(Box::new(back), ELEVATOR, true);
        Lab { exports, device, kept, finisher, bounds: Bounds::default() }
    }

    /// A stream to a connection that is served.
    fn stream(&self) -> UnixStream {
        support::connect(&self.exports, self.bounds)
    }

    fn client(&self) -> Client {
        Client::over(Stream::Unix(self.stream()), "it", true).expect("the server lets us in")
    }

    fn give_back(&self) {
        let mut kept = std::mem::take(&mut *self.kept.lock().expect("no panic"));
        self.finisher.lock().expect("no panic").as_ref().expect("attached").finish(&mut kept);
    }
}

fn never(_: &Job) -> bool {
    false
}

#[test]
fn a_failing_back_end_fails_those_requests_and_no_others() {
    let bad_range =
        |job: &Job| (job.offset < 2 << 20 && job.offset + job.bytes > 1 << 20).then_some(Fault::Io);
    let lab = Lab::new(bad_range, never);
    let (mut one, mut two) = (lab.client(), lab.client());
    assert_eq!(one.write(0, 0, &[1; 4096]).expect("a reply").error, 0);
    assert_eq!(one.write(0, 1 << 20, &[1; 4096]).expect("a reply").error, 5);
    assert_eq!(one.read((1 << 20) + 512, 512).expect("a reply").error, 5);
    // A request of several parts, one of which fails.
    assert_eq!(one.read(0, 4 << 20).expect("a reply").error, 5);
    assert_eq!(one.call(command::TRIM, 0, 0, 32 << 20, &[]).expect("a reply").error, 5);
    assert_eq!(two.read(2 << 20, 4096).expect("a reply").data, [0; 4096]);
    assert_eq!(one.read(2 << 20, 4096).expect("a reply").data, [0; 4096]);
    eventually("all is answered", || lab.device.unfinished() == 0);
}

#[test]
fn a_full_back_end_says_so() {
    let full = |job: &Job| (job.action == Action::Write).then_some(Fault::NoSpace);
    let lab = Lab::new(full, never);
    let mut client = lab.client();
    assert_eq!(client.write(0, 0, &[1; 4096]).expect("a reply").error, 28);
    assert_eq!(client.write(flag::FUA, 0, &[1; 4096]).expect("a reply").error, 28);
    assert_eq!(client.read(0, 4096).expect("a reply").error, 0);
}

#[test]
fn a_failed_flush_is_told_to_all_it_was_for() {
    let lab = Lab::new(|job| (job.action == Action::Flush).then_some(Fault::Io), never);
    let (mut one, mut two) = (lab.client(), lab.client());
    assert_eq!(one.write(0, 0, &[1; 4096]).expect("a reply").error, 0);
    assert_eq!(one.flush().expect("a reply").error, 5);
    assert_eq!(two.flush().expect("a reply").error, 5);
}

#[test]
fn a_flush_waits_for_no_stuck_read_of_another() {
    let lab = Lab::new(|_| None, |job| job.action == Action::Read && job.offset >= 32 << 20);
    let (mut stuck, mut other) = (lab.client(), lab.client());
    let request = stuck.request(command::READ, 0, 40 << 20, 4096);
    stuck.send(&request, &[]).expect("sent");
    eventually("the back end has it", || lab.kept.lock().expect("no panic").len() == 1);
    for at in 0..200u64 {
        assert_eq!(other.write(0, at * 4096, &[1; 4096]).expect("a reply").error, 0);
    }
    assert_eq!(other.flush().expect("a reply").error, 0);
    lab.give_back();
    assert_eq!(stuck.receive(|_| 0).expect("a reply").error, 0);
}

#[test]
fn what_a_dead_client_left_is_served_and_its_place_is_free_again() {
    let lab = Lab::new(|_| None, |job| job.action == Action::Read);
    for _ in 0..600 {
        // More clients than there are places for groups, one after the other.
        let mut client = lab.client();
        let request = client.request(command::READ, 0, 0, 4096);
        client.send(&request, &[]).expect("sent");
        drop(client);
        lab.give_back();
    }
    eventually("all is answered", || {
        lab.give_back();
        lab.device.unfinished() == 0
    });
    assert_eq!(lab.client().write(0, 0, &[1; 512]).expect("a reply").error, 0);
}

/// Their contexts were gone while these waited, so that they counted as the root's, and nobody woke the last of them.
#[test]
fn what_dead_clients_left_waiting_for_a_slot_is_served() {
    let mut lab = Lab::new(|_| None, |job| job.action == Action::Read);
    // All of one group.
    let whole = lab.exports.remove("it").expect("it is there");
    let options = ExportOptions { per_connection: false, ..whole.options.clone() };
    lab.exports.add(Export::new(&lab.device, options).expect("an export")).expect("a new one");
    lab.bounds = Bounds { requests: 1000, ..Bounds::default() };
    let mut clients: Vec<Client> = (0..4).map(|_| lab.client()).collect();
    for (at, client) in (0u64..).zip(&mut clients) {
        for number in 0..200 {
            let request = client.request(command::READ, 0, (at * 200 + number) * 8192, 4096);
            client.send(&request, &[]).expect("sent");
        }
    }
    eventually("all have come", || lab.device.unfinished() == 800);
    assert!(lab.device.depths().1 > 400, "most wait for a slot");
    drop(clients);
    let export = lab.exports.find("it").expect("it is there");
    eventually("the clients are gone", || export.connections.load(Ordering::Relaxed) == 0);
    eventually("all is answered", || {
        lab.give_back();
        lab.device.unfinished() == 0
    });
}

#[test]
fn a_client_that_dies_within_a_payload_harms_nobody() {
    let host = Host::start("[[device]]\nname='m'\nram='16M'\n[[export]]\nname='m'\ndevice='m'\n");
    let mut other = host.client("m", false);
    for part in [1, 100, 4095, 70_000] {
        let mut client = host.client("m", false);
        let request = client.request(command::WRITE, 0, 0, 100_000);
        client.send(&request, &vec![9; part]).expect("sent");
        drop(client);
        assert_eq!(other.read(0, 4096).expect("a reply").data, [0; 4096], "half a write is none");
    }
    host.assert_idle();
}

#[test]
fn a_client_that_never_reads_is_not_read_any_more() {
    let lab = Lab { bounds: Bounds { requests: 64, bytes: 1 << 20 }, ..Lab::new(|_| None, never) };
    let stream = lab.stream();
    stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let mut client = Client::over(Stream::Unix(stream), "it", true).expect("the server lets us in");
    let requests: Vec<u8> =
        (0..4096).flat_map(|_| client.request(command::READ, 0, 0, 64 << 10).to_bytes()).collect();
    // 28 bytes each: the server has to stop for the socket to be full.
    let stopped = (0..200).any(|_| client.stream.write_all(&requests).is_err());
    assert!(stopped, "819,200 requests were taken in");
    assert_eq!(lab.client().write(0, 0, &[1; 512]).expect("a reply").error, 0, "others go on");
}

/// A stream that says `input` and hears nothing.
struct Deaf<'a>(&'a [u8]);

impl Read for Deaf<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Deaf<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Options that look like some, with any data.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let option = (0u32..12, prop::collection::vec(any::<u8>(), 0..40), any::<bool>(), any::<u32>());
    prop::collection::vec(option, 0..12).prop_map(|options| {
        let mut out = vec![0, 0, 0, 3];
        for (number, data, lies, len) in options {
            out.extend(b"IHAVEOPT");
            out.extend(number.to_be_bytes());
            out.extend(if lies { len % 200 } else { data.len() as u32 }.to_be_bytes());
            out.extend(data);
        }
        out
    })
}

/// Requests that look like some, with any fields.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let field =
        (0u16..12, any::<u16>(), any::<u64>(), prop_oneof![0u32..100_000, any::<u32>()], 0usize..60_000);
    prop::collection::vec((field, any::<bool>()), 1..20).prop_map(|requests| {
        let mut out = Vec::new();
        for ((command, flags, offset, bytes, payload), near) in requests {
            out.extend(0x2560_9513u32.to_be_bytes());
            out.extend((if near { flags & 3 } else { flags }).to_be_bytes());
            out.extend(command.to_be_bytes());
            out.extend(7u64.to_be_bytes());
            out.extend((if near { offset % (64 << 20) } else { offset }).to_be_bytes());
            out.extend(bytes.to_be_bytes());
            let len = if near && command == 1 { (bytes as usize).min(100_000) } else { payload % 64 };
            out.extend(vec![1; if command == 1 { len } else { 0 }]);
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_handshake_brings_the_server_down(bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), options()]) {
        let lab = Lab::new(|_| None, never);
        let mut stream = Deaf(&bytes);
        for security in [Security::None, Security::Offered, Security::Required, Security::Begun] {
            if let Ok(Some(greeted)) = greet(&mut stream) {
                let _ = negotiate(&mut stream, &lab.exports, greeted, security);
            }
            stream = Deaf(&bytes);
        }
    }
}

#[test]
fn no_requests_bring_the_server_down() {
    let lab = Lab::new(|_| None, never);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop_oneof![prop::collection::vec(any::<u8>(), 0..2000), requests()];
    for _ in 0..200 {
        let bytes = strategy.new_tree(&mut runner).expect("a value").current();
        let client = lab.client();
        let Stream::Unix(mut stream) = client.stream else { unreachable!("it is a pair") };
        let mut reader = stream.try_clone().expect("a handle");
        let reads = std::thread::spawn(move || {
            let mut sink = vec![0; 1 << 20];
            while reader.read(&mut sink).is_ok_and(|bytes| bytes > 0) {}
        });
        // The server may hang up meanwhile.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        reads.join().expect("it ends");
    }
    eventually("all is answered", || lab.device.unfinished() == 0);
    let mut client = lab.client();
    assert_eq!(client.read(0, 4096).expect("a reply").error, 0);
    let exports = lab.exports.all();
    eventually("connections are gone", || exports[0].connections.load(Ordering::Relaxed) == 1);
}
