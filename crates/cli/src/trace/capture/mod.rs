//! `fairlift capture`: records the block I/O of a live Linux through tracefs.

mod device;
mod instance;
mod pipe;

use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlift_trace::{Device, DeviceNumber, Format, Options, TraceReader};

use super::args::{At, CaptureArguments};
use super::input::Input;
use super::output::{TraceFile, cannot_write, target};
use crate::error::{Failure, note, warn};
use crate::output::reason;
use device::BlockDevice;
use instance::Instance;

/// Events of different CPUs come in pieces: so many are held back to be put in order of time.
const SORT_EVENTS: usize = 1 << 14;
/// How long a command has to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two looks at the command and the clock.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Record until the command ends, the time is up, or a signal comes.
pub fn capture(arguments: &CaptureArguments) -> Result<ExitCode, Failure> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::new("only Linux's block I/O can be recorded"));
    }
    if arguments.command.is_empty() && arguments.device.is_none() {
        return Err(Failure::new("what is to be recorded?")
            .help("give a command: fairlift capture -- COMMAND")
            .help("or a device: fairlift capture --device sda"));
    }
    let target = target(&arguments.output, arguments.to).map_err(|failure| failure.at("--output"))?;
    let device = arguments.device.as_deref().map(device::find).transpose()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|e| Failure::internal(format!("cannot wait for signals: {e}")))?;
    }
    let mut file = TraceFile::create(&arguments.output, target, At::Queue)?;
    let instance = Instance::create(arguments.buffer, device.as_ref())?;
    let stopped = Arc::new(AtomicBool::new(false));
    let pipe = pipe::open(&instance, Arc::clone(&stopped))?;
    instance.start()?;
    let child = start(arguments)?;
    let deadline = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    // The instance is off when this ends; the reader below drains it.
    let watcher = {
        let (off, stopped) = (instance.switch(), Arc::clone(&stopped));
        thread::spawn(move || {
            let code = wait(child, deadline, &interrupted);
            off.off();
            stopped.store(true, Ordering::Release);
            code
        })
    };
    let number = device.as_ref().map(BlockDevice::number);
    let written = drain(pipe, &mut file, number, &arguments.output);
    if written.is_err() {
        // The command goes on to its end; nothing more is kept of it.
        instance.switch().off();
    }
    let code =
        watcher.join().map_err(|_| Failure::internal("the thread that waits for the command failed"))?;
    let lost = instance.lost();
    drop(instance);
    let events = written?;
    let losses = file.finish()?;
    if lost > 0 {
        warn(&format!(
            "{lost} events were lost because the buffer was full: --buffer {} holds more",
            arguments.buffer * 4
        ));
    }
    if !losses.is_empty() {
        note(&format!("{} cannot hold {losses}", arguments.output));
    }
    let of = device.map_or_else(|| "all devices".to_owned(), |device| device.describe());
    note(&format!("{events} events of {of} written to {}", arguments.output));
    Ok(code)
}

/// Everything the kernel tells, into the file.
fn drain(
    pipe: pipe::Pipe,
    file: &mut TraceFile,
    device: Option<DeviceNumber>,
    path: &str,
) -> Result<u64, Failure> {
    let options = Options {
        format: Some(Format::Ftrace),
        keep_going: true,
        sort_window: Some(SORT_EVENTS),
        ..Options::default()
    };
    let reader = TraceReader::from_read("trace_pipe", pipe, &options)
        .map_err(|e| Failure::new(&e.message).at(e.place.to_string()))?;
    let mut input = Input::of(reader, "trace_pipe", true);
    let mut events = 0;
    while let Some(mut event) = input.next()? {
        events += 1;
        // Plugs are those of tasks and name no device.
        if let (Device::None, Some(device)) = (event.device, device) {
            event.device = Device::Number(device);
        }
        file.writer().write(&event, input.reader().texts()).map_err(|e| cannot_write(path, &e))?;
    }
    Ok(events)
}

fn start(arguments: &CaptureArguments) -> Result<Option<Child>, Failure> {
    let Some((program, rest)) = arguments.command.split_first() else { return Ok(None) };
    let started = Command::new(program).args(rest).spawn();
    started.map(Some).map_err(|e| Failure::new(format!("cannot start '{program}': {}", reason(&e))))
}

/// Wait for the command, the time or a signal; the exit code is the command's.
fn wait(mut child: Option<Child>, deadline: Option<Instant>, interrupted: &AtomicBool) -> ExitCode {
    let mut ends_by = None;
    loop {
        if let Some(running) = &mut child
            && let Ok(Some(status)) = running.try_wait()
        {
            // As a shell has it: 128 and the signal's number.
            let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|number| 128 + number);
            let code = status.code().or(signal).and_then(|code| u8::try_from(code).ok());
            return ExitCode::from(code.unwrap_or(1));
        }
        if interrupted.load(Ordering::Acquire) && ends_by.is_none() {
            ends_by = Some(Instant::now() + PATIENCE);
        }
        let is_over = deadline.is_some_and(|at| Instant::now() >= at);
        match &mut child {
            None if is_over || ends_by.is_some() => return ExitCode::SUCCESS,
            // Recording is over; the command may go on.
            Some(_) if is_over && ends_by.is_none() => return ExitCode::SUCCESS,
            Some(running) if ends_by.is_some_and(|at| Instant::now() >= at) => {
                let _ = running.kill();
            }
            _ => {}
        }
        thread::sleep(LOOK_EVERY);
    }
}
