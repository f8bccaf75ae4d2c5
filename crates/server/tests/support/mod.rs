//! A server in this process, in a folder of its own.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairlift_server::back::BackEnd;
use fairlift_server::client::Client;
use fairlift_server::config::{Config, elevator};
use fairlift_server::device::{Device, DeviceOptions};
use fairlift_server::exports::{Export, ExportOptions, Exports};
use fairlift_server::front::FrontEnd;
use fairlift_server::front::nbd::{Bounds, Nbd};
use fairlift_server::net::{Address, Stream};
use fairlift_server::server::Server;
use serde_json::Value;

/// A running server, ended and cleared away when it is dropped.
pub struct Host {
    pub dir: PathBuf,
    pub server: Arc<Server>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A folder that nobody else uses.
pub fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("fairlift-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).expect("a folder for the test");
    dir
}

impl Host {
    /// Serve `devices_and_exports` (TOML, with DIR for the folder) at DIR/nbd.
    pub fn start(devices_and_exports: &str) -> Host {
        Host::start_in(folder(), devices_and_exports)
    }

    pub fn start_in(dir: PathBuf, devices_and_exports: &str) -> Host {
        let text = format!(
            "listen = [\"unix:DIR/nbd\"]\ncontrol = \"unix:DIR/ctl\"\nmetrics = \"unix:DIR/metrics\"\n{devices_and_exports}"
        );
        let text = text.replace("DIR", &dir.display().to_string());
        let config = Config::parse(&text, "test.toml").expect("the configuration is right");
        let server = Server::new(&config).expect("it can be served");
        let stop = Arc::new(AtomicBool::new(false));
        let (runs, watched) = (server.clone(), stop.clone());
        let thread = Some(std::thread::spawn(move || {
            // As `fairlift serve` does; all threads for clients come from this one.
            fairlift_server::seccomp::confine_thread().expect("a filter");
            runs.run(&watched);
        }));
        Host { dir, server, stop, thread }
    }

    pub fn address(&self) -> Address {
        Address::Unix(self.dir.join("nbd"))
    }

    pub fn client(&self, name: &str, structured: bool) -> Client {
        Client::connect(&self.address(), name, structured).expect("the server lets us in")
    }

    /// What the control socket answers to a line.
    pub fn ctl(&self, line: &str) -> Value {
        let mut stream = Address::Unix(self.dir.join("ctl")).connect().expect("the server listens");
        stream.write_all(format!("{line}\n").as_bytes()).expect("it takes a line");
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).expect("an answer");
        serde_json::from_str(&answer).expect("JSON")
    }

    /// Everything is answered and nothing is left.
    pub fn assert_idle(&self) {
        eventually("all is answered", || self.server.devices().iter().all(|device| device.unfinished() == 0));
    }

    /// End it, as SIGTERM does.
    pub fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends without a panic");
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A device on `back` under this elevator.
pub fn device(back: Box<dyn BackEnd>, scheduler: &str) -> Arc<Device> {
    let options = DeviceOptions { elevator: elevator(scheduler).expect("there is one") };
    Device::new("device", back, &options).expect("a device")
}

/// The export "it", which is all of `back` under this elevator, and its device. Nobody listens: [`connect`].
pub fn exports_on(
    back: Box<dyn BackEnd>,
    scheduler: &str,
    per_connection: bool,
) -> (Arc<Device>, Arc<Exports>) {
    let device = device(back, scheduler);
    let options = ExportOptions { name: "it".to_owned(), per_connection, ..ExportOptions::default() };
    let exports = Arc::new(Exports::default());
    exports.add(Export::new(&device, options).expect("an export")).expect("the first");
    (device, exports)
}

/// A client's end of a connection that is served.
pub fn connect(exports: &Arc<Exports>, bounds: Bounds) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let exports = exports.clone();
    std::thread::spawn(move || {
        // How it ends is the client's doing here.
        let _ = Nbd { bounds, tls: None }.serve(Stream::Unix(theirs), &exports, &AtomicBool::new(false));
    });
    ours
}

/// Wait until `what` holds; a minute is more than a crowded machine needs.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A small generator of numbers, the same on every machine (xorshift64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A number in the environment, for longer forms of a test.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}
