//! `fairlift serve` and `fairlift ctl`: the third host of the core.

pub mod args;
mod ctl;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fairlift_server::back::file::{DEPTH, Engine, Options};
use fairlift_server::config::{self, BackConfig, Config, ConfigError, DeviceConfig, ExportConfig};
use fairlift_server::device::Share;
use fairlift_server::exports::{ExportOptions, UblkOptions, VhostOptions};
use fairlift_server::net::Address;
use fairlift_server::seccomp;
use fairlift_server::server::Server;
use fairlift_sim::device::DeviceSpec;

use crate::error::Failure;
use args::ServeArguments;
pub use ctl::ctl;

/// Largest configuration read, bytes.
const CONFIG_BYTES_MAX: u64 = 4 << 20;
/// What the device and its export are called when the command line describes them.
const NAME: &str = "disk";

/// Serve until SIGTERM, SIGINT or `ctl drain`.
pub fn serve(arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let config = match &arguments.config {
        Some(path) => read(path)?,
        None => from_options(arguments)?,
    };
    let server = Server::new(&config).map_err(|error| of_config(&error))?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::internal(format!("cannot watch for signals: {error}")))?;
    }
    if !arguments.no_seccomp {
        seccomp::confine_process().map_err(|why| {
            Failure::new(format!("cannot give up system calls: {why}"))
                .at("fairlift serve")
                .help("--no-seccomp where the kernel or a container has no seccomp")
        })?;
    }
    server.run(&stop);
    Ok(ExitCode::SUCCESS)
}

fn of_config(error: &ConfigError) -> Failure {
    Failure::new(&error.message).at(&error.place)
}

fn read(path: &str) -> Result<Config, Failure> {
    let wrong = |why: String| Failure::new(format!("cannot read: {why}")).at(path);
    let data = std::fs::metadata(path).map_err(|error| wrong(crate::output::reason(&error)))?;
    if data.len() > CONFIG_BYTES_MAX {
        return Err(wrong(format!("{} bytes are too many for a configuration", data.len())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(crate::output::reason(&error)))?;
    Config::parse(&text, path).map_err(|error| of_config(&error))
}

/// One device with one export, as the options say.
fn from_options(arguments: &ServeArguments) -> Result<Config, Failure> {
    let address =
        |option: &str, text: &str| Address::parse(text).map_err(|message| Failure::new(message).at(option));
    let sockets = arguments.socket.iter().map(|path| Ok(Address::Unix(path.clone())));
    let tcp = arguments.tcp.iter().map(|text| address("--tcp", &format!("tcp:{text}")));
    let passed = arguments.systemd.then_some(Ok(Address::Systemd));
    let listen = sockets.chain(tcp).chain(passed).collect::<Result<Vec<_>, Failure>>()?;
    if listen.is_empty() && arguments.vhost_user.is_none() && arguments.ublk.is_none() {
        return Err(Failure::new("clients cannot connect anywhere")
            .at("fairlift serve")
            .help("--socket PATH, --tcp HOST:PORT or --systemd, or --vhost-user PATH or --ublk"));
    }
    let elevator = config::elevator(arguments.elevator.as_deref().unwrap_or(config::ELEVATOR))
        .map_err(|error| Failure::of_scheduler(&error, "--elevator"))?;
    let place = "fairlift serve".to_owned();
    let device =
        DeviceConfig { name: NAME.to_owned(), back: back(arguments)?, elevator, place: place.clone() };
    let number = arguments
        .ublk
        .as_deref()
        .map(|text| UblkOptions::parse_number(text).map_err(|message| Failure::new(message).at("--ublk")));
    let number = number.transpose()?;
    if arguments.ublk_recovery && number == Some(None) {
        return Err(Failure::new("it needs the disk's number, by which the next server finds it")
            .at("--ublk-recovery")
            .help("such as --ublk 0"));
    }
    let options = ExportOptions {
        name: arguments.name.clone(),
        description: String::new(),
        offset: 0,
        bytes: None,
        read_only: arguments.read_only,
        per_connection: arguments.per_connection,
        share: Share::default(),
        vhost: arguments.vhost_user.clone().map(|path| VhostOptions {
            path,
            queues: arguments.queues,
            memory: arguments.guest_memory,
        }),
        ublk: number.map(|number| UblkOptions {
            number,
            queues: arguments.queues,
            recovers: arguments.ublk_recovery,
        }),
    };
    let optional =
        |option: &str, text: &Option<String>| text.as_deref().map(|text| address(option, text)).transpose();
    Ok(Config {
        listen,
        control: optional("--control", &arguments.control)?,
        metrics: optional("--metrics", &arguments.metrics)?,
        devices: vec![device],
        exports: vec![ExportConfig { device: NAME.to_owned(), options, place }],
        ..Config::default()
    })
}

fn back(arguments: &ServeArguments) -> Result<BackConfig, Failure> {
    let size =
        |option: &str, text: &str| config::size(text).map_err(|message| Failure::new(message).at(option));
    if arguments.size.is_some() && arguments.model.is_none() {
        return Err(Failure::new("it goes with --model only").at("--size"));
    }
    if let Some(path) = &arguments.file {
        let depth = arguments.depth.unwrap_or(DEPTH);
        let engine = arguments.engine.as_deref().map(Engine::parse).transpose();
        let engine = engine.map_err(|message| Failure::new(message).at("--engine"))?.unwrap_or_default();
        let options = Options {
            read_only: arguments.read_only,
            depth,
            rotational: arguments.rotational,
            direct: arguments.direct,
            engine,
        };
        return Ok(BackConfig::File { path: path.clone(), options });
    }
    if let Some(model) = &arguments.model {
        let spec = DeviceSpec::load(model).map_err(|error| Failure::new(error.to_string()).at("--model"))?;
        let bytes = arguments.size.as_deref().map(|text| size("--size", text)).transpose()?;
        return Ok(BackConfig::Model { spec: Box::new(spec), bytes, seed: arguments.seed });
    }
    match (&arguments.ram, &arguments.null) {
        (Some(text), _) => Ok(BackConfig::Ram(size("--ram", text)?)),
        (None, Some(text)) => Ok(BackConfig::Null(size("--null", text)?)),
        (None, None) => Err(Failure::new("there is nothing to serve")
            .at("fairlift serve")
            .help("a configuration file, or one of --file, --ram, --model, --null")),
    }
}
