//! The server: devices, exports, who listens, and how it ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::config::{Config, ConfigError, DeviceConfig, ExportConfig};
use crate::device::{Device, DeviceOptions};
use crate::exports::{Export, Exports};
use crate::front::FrontEnd;
use crate::front::nbd::Nbd;
use crate::front::{ublk, vhost};
use crate::log::{Level, log};
use crate::net::{Address, Listener, Stream};
use crate::tls::Tls;
use crate::{control, metrics, net};

/// How often the listening thread looks whether it is to end.
const LOOK_NS: i64 = 100_000_000;
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 1024;
/// How long connections have, when the server ends, to get their answers.
const DRAIN: Duration = Duration::from_secs(10);
/// How long to wait when the system has no file descriptor or thread left.
const BREATH: Duration = Duration::from_millis(100);
/// Answers of a modelled device later than this (99 % of them) are worth a warning, nanoseconds.
const LATE_NS: u64 = 100_000;

/// Who listens for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Clients,
    Control,
    Metrics,
}

/// All that is served.
pub struct Server {
    /// What clients may ask for.
    pub exports: Arc<Exports>,
    devices: Vec<Arc<Device>>,
    front: Box<dyn FrontEnd>,
    listeners: Vec<(Purpose, Listener)>,
    sockets: Vec<Arc<vhost::Socket>>,
    /// Until the server runs.
    disks: Mutex<Vec<ublk::Disk>>,
    /// No new clients; those that are there end when they are answered.
    drain: AtomicBool,
    connections: AtomicUsize,
}

/// Counts an open connection.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn device(config: &DeviceConfig) -> Result<Arc<Device>, ConfigError> {
    let options = DeviceOptions { elevator: config.elevator.clone() };
    let made = config.back.open().and_then(|back| Device::new(&config.name, back, &options));
    made.map_err(|message| {
        let message = format!("device '{}': {message}", config.name);
        ConfigError { place: config.place.clone(), message }
    })
}

impl Server {
    /// Open and listen to everything that `config` names.
    ///
    /// # Errors
    /// With the place of what does not go.
    pub fn new(config: &Config) -> Result<Arc<Server>, ConfigError> {
        let devices = config.devices.iter().map(device).collect::<Result<Vec<_>, _>>()?;
        let exports = Exports::default();
        for ExportConfig { device, options, place } in &config.exports {
            let found = devices.iter().find(|found| found.name() == device);
            let export = found.map_or_else(
                || Err(format!("there is no device '{device}'")),
                |device| Export::new(device, options.clone()),
            );
            export.and_then(|export| exports.add(export)).map_err(|message| {
                let message = format!("export '{}': {message}", options.name);
                ConfigError { place: place.clone(), message }
            })?;
        }
        let tls = config.tls.as_ref().map(|(options, place)| {
            Tls::new(options).map_err(|message| ConfigError { place: place.clone(), message })
        });
        let tls = tls.transpose()?;
        let mut listeners = Vec::new();
        let clients = config.listen.iter().map(|address| (Purpose::Clients, address));
        let control = config.control.iter().map(|address| (Purpose::Control, address));
        let metrics = config.metrics.iter().map(|address| (Purpose::Metrics, address));
        for (purpose, address) in clients.chain(control).chain(metrics) {
            listeners.extend(listen(address)?.into_iter().map(|listener| (purpose, listener)));
        }
        let mut sockets = Vec::new();
        for export in exports.all() {
            let Some(options) = &export.options.vhost else { continue };
            for listener in listen(&Address::Unix(options.path.clone()))? {
                let socket = vhost::Socket::new(listener, export.clone(), options.clone(), config.bounds);
                sockets.push(Arc::new(socket));
            }
        }
        let mut disks = Vec::new();
        // Those with a number first: `any` is to take none of theirs.
        let (any, numbered): (Vec<_>, Vec<_>) = exports
            .all()
            .into_iter()
            .partition(|export| export.options.ublk.is_some_and(|options| options.number.is_none()));
        for export in numbered.into_iter().chain(any) {
            let Some(options) = export.options.ublk else { continue };
            disks.push(ublk::Disk::start(&export, options, config.bounds).map_err(|message| {
                let found = config.exports.iter().find(|found| found.options.name == export.options.name);
                ConfigError { place: found.map_or_else(String::new, |found| found.place.clone()), message }
            })?);
        }
        Ok(Arc::new(Server {
            exports: Arc::new(exports),
            devices,
            front: Box::new(Nbd { bounds: config.bounds, tls }),
            listeners,
            sockets,
            disks: Mutex::new(disks),
            drain: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        }))
    }

    /// All devices.
    pub fn devices(&self) -> &[Arc<Device>] {
        &self.devices
    }

    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<Arc<Device>> {
        self.devices.iter().find(|device| device.name() == name).cloned()
    }

    /// Where clients may connect.
    pub fn addresses(&self) -> Vec<String> {
        let clients = self.listeners.iter().filter(|(purpose, _)| *purpose == Purpose::Clients);
        clients.map(|(_, listener)| listener.address()).collect()
    }

    /// Open connections, of all purposes.
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// End: no new clients, all that was sent is answered, everything is on stable storage.
    pub fn drain(&self) {
        self.drain.store(true, Relaxed);
    }

    /// Serve until `stop` is set or [`Server::drain`] was called, then end in order.
    pub fn run(self: &Arc<Server>, stop: &AtomicBool) {
        for (purpose, listener) in &self.listeners {
            let (what, address) = (format!("{purpose:?}").to_lowercase(), listener.address());
            log(Level::Info, "listening", &[("for", &what), ("address", &address)]);
        }
        for socket in &self.sockets {
            let (socket, address) = (socket.clone(), socket.address());
            self.watch("machine", &address, move |drain| socket.run(drain));
        }
        let disks = std::mem::take(&mut *self.disks.lock().unwrap_or_else(PoisonError::into_inner));
        for disk in disks {
            let address = disk.address();
            self.watch("ublk", &address, move |drain| disk.run(drain));
        }
        tell_starter("READY=1");
        let mut looked = Instant::now();
        while !stop.load(Relaxed) && !self.drain.load(Relaxed) {
            self.accept_some();
            if looked.elapsed() > Duration::from_secs(10) {
                looked = Instant::now();
                self.warn_of_lateness();
            }
        }
        self.end();
    }

    /// Accept the clients that have come, or wait a moment.
    fn accept_some(self: &Arc<Server>) {
        let most = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
        let mut fds: Vec<PollFd<'_>> =
            self.listeners.iter().map(|(_, listener)| PollFd::new(listener, PollFlags::IN)).collect();
        if poll(&mut fds, Some(&most)).is_err() {
            return;
        }
        for ((purpose, listener), _) in
            self.listeners.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty())
        {
            match listener.accept() {
                Ok(Some(stream)) => self.welcome(*purpose, stream),
                Ok(None) => {}
                Err(error) => {
                    log(Level::Warn, "cannot-accept", &[("why", &error.to_string())]);
                    thread::sleep(BREATH);
                }
            }
        }
    }

    /// A thread for a connection.
    fn welcome(self: &Arc<Server>, purpose: Purpose, stream: Stream) {
        if self.connections.fetch_add(1, Relaxed) >= CONNECTIONS_MAX {
            self.connections.fetch_sub(1, Relaxed);
            let most = CONNECTIONS_MAX.to_string();
            return log(Level::Warn, "connection-refused", &[("why", "too many"), ("most", &most)]);
        }
        let server = self.clone();
        let started = thread::Builder::new().name("connection".to_owned()).spawn(move || {
            let _open = Open(&server.connections);
            let answer = match purpose {
                Purpose::Clients => server.front.serve(stream, &server.exports, &server.drain),
                Purpose::Control => control::serve(stream, &server),
                Purpose::Metrics => metrics::serve(stream, &server),
            };
            if let Err(why) = answer {
                log(Level::Warn, "connection-ended", &[("why", &why)]);
            }
        });
        if let Err(error) = started {
            self.connections.fetch_sub(1, Relaxed);
            log(Level::Warn, "connection-refused", &[("why", &error.to_string())]);
            thread::sleep(BREATH);
        }
    }

    /// A thread that waits for virtual machines or keeps a disk; it counts as a connection while it lives.
    fn watch(self: &Arc<Server>, what: &str, address: &str, run: impl FnOnce(&AtomicBool) + Send + 'static) {
        log(Level::Info, "listening", &[("for", what), ("address", address)]);
        self.connections.fetch_add(1, Relaxed);
        let server = self.clone();
        let started = thread::Builder::new().name("machines".to_owned()).spawn(move || {
            let _open = Open(&server.connections);
            run(&server.drain);
        });
        if let Err(error) = started {
            self.connections.fetch_sub(1, Relaxed);
            log(Level::Warn, "cannot-listen", &[("why", &error.to_string())]);
        }
    }

    fn warn_of_lateness(&self) {
        for device in self.devices() {
            let Some(late) = device.back().figures().lateness.filter(|late| late.p99_ns > LATE_NS) else {
                continue;
            };
            let p99_us = (late.p99_ns / 1000).to_string();
            let fields = [("device", device.name()), ("p99_us", &p99_us)];
            log(Level::Warn, "model-is-late", &fields);
        }
    }

    fn end(&self) {
        self.drain();
        tell_starter("STOPPING=1");
        log(Level::Info, "draining", &[("connections", &self.connections().to_string())]);
        let until = Instant::now() + DRAIN;
        while self.connections() > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        for device in self.devices() {
            // The end of a trace has nothing that could fail; what did is in the log.
            let _ = device.trace(None);
            let failed = device.back().sync().is_err();
            let level = if failed { Level::Warn } else { Level::Info };
            let unfinished = device.unfinished().to_string();
            let synced = if failed { "failed" } else { "yes" };
            log(
                level,
                "ended",
                &[("device", device.name()), ("unfinished", &unfinished), ("synced", synced)],
            );
        }
    }
}

/// Tell systemd, if it asks, how far the server is.
fn tell_starter(state: &str) {
    if let Err(error) = net::notify(state) {
        log(Level::Warn, "cannot-notify", &[("why", &error.to_string())]);
    }
}

fn listen(address: &Address) -> Result<Vec<Listener>, ConfigError> {
    Listener::bind(address).map_err(|error: io::Error| ConfigError {
        place: address.to_string(),
        message: format!("cannot listen: {error}"),
    })
}
