//! The control socket: a JSON object a line each way. `docs/serve.md` lists what may be asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use fairlift_sim::group::GroupClass;
use fairlift_sim::group::limits::Max;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::{self, elevator, size};
use crate::device::{Device, Share};
use crate::exports::{Export, ExportOptions};
use crate::log::{Level, log};
use crate::net::Stream;
use crate::server::Server;

/// Longest line, bytes.
const LINE_MAX: u64 = 64 << 10;
/// How long a client of it may say nothing.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What may be asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Command {
    Show,
    Set {
        export: String,
        weight: Option<u32>,
        class: Option<GroupClass>,
        max: Option<String>,
        burst: Option<String>,
        reserve: Option<u32>,
        goal: Option<String>,
    },
    Elevator {
        device: String,
        elevator: String,
    },
    Add {
        device: String,
        name: String,
        #[serde(default)]
        description: String,
        offset: Option<String>,
        size: Option<String>,
        #[serde(default)]
        read_only: bool,
        #[serde(default)]
        per_connection: bool,
        weight: Option<u32>,
        class: Option<GroupClass>,
        max: Option<String>,
        burst: Option<String>,
        reserve: Option<u32>,
        goal: Option<String>,
    },
    Remove {
        export: String,
    },
    Resize {
        export: String,
        size: String,
    },
    Trace {
        device: String,
        file: Option<PathBuf>,
    },
    Drain,
}

/// Answer a client until it leaves.
///
/// # Errors
/// Why that did not go: a sentence.
pub fn serve(stream: Stream, server: &Arc<Server>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("control: {error}");
    stream.set_timeout(Some(TIMEOUT)).map_err(wrong)?;
    let mut writer = stream.try_clone().map_err(wrong)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        match reader.by_ref().take(LINE_MAX).read_line(&mut line) {
            Ok(0) => return Ok(()),
            Ok(_) if !line.ends_with('\n') => return Err("control: a line is too long".to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(wrong(error)),
        }
        let answer = match answer(&line, server) {
            Ok(answer) => answer,
            Err(error) => json!({ "error": error }),
        };
        writer.write_all(format!("{answer}\n").as_bytes()).map_err(wrong)?;
    }
}

/// The answer to one line.
fn answer(line: &str, server: &Server) -> Result<Value, String> {
    let command: Command = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if !matches!(command, Command::Show) {
        log(Level::Info, "control", &[("command", line.trim())]);
    }
    match command {
        Command::Show => return Ok(show(server)),
        Command::Set { export, weight, class, max, burst, reserve, goal } => {
            let export = find(server, &export)?;
            let now = export.share();
            export.set_share(share(now, weight, class, reserve, [max, burst, goal].each_ref())?)?;
        }
        Command::Elevator { device, elevator: text } => {
            find_device(server, &device)?.set_elevator(&elevator(&text).map_err(|error| error.to_string())?);
        }
        Command::Add {
            device,
            name,
            description,
            offset,
            size: bytes,
            read_only,
            per_connection,
            weight,
            class,
            max,
            burst,
            reserve,
            goal,
        } => {
            let device = find_device(server, &device)?;
            let options = ExportOptions {
                name,
                description,
                offset: offset
                    .as_deref()
                    .map_or(Ok(0), |text| if text == "0" { Ok(0) } else { size(text) })?,
                bytes: bytes.as_deref().map(size).transpose()?,
                read_only,
                per_connection,
                share: share(Share::default(), weight, class, reserve, [max, burst, goal].each_ref())?,
                vhost: None,
                ublk: None,
            };
            server.exports.add(Export::new(&device, options)?)?;
        }
        Command::Remove { export } => {
            server.exports.remove(&export).ok_or_else(|| unknown_export(server, &export))?;
        }
        Command::Resize { export, size: bytes } => find(server, &export)?.resize(size(&bytes)?)?,
        Command::Trace { device, file } => {
            let traced = find_device(server, &device)?.trace(file.as_deref());
            traced.map_err(|error| format!("cannot write the trace: {error}"))?;
        }
        Command::Drain => server.drain(),
    }
    Ok(json!({ "ok": true }))
}

/// `share` with what is given of the rest; of the texts, limits, burst and goal.
fn share(
    share: Share,
    weight: Option<u32>,
    class: Option<GroupClass>,
    reserve: Option<u32>,
    [max, burst, goal]: [&Option<String>; 3],
) -> Result<Share, String> {
    Ok(Share {
        weight: weight.unwrap_or(share.weight),
        class: class.unwrap_or(share.class),
        reserve: reserve.unwrap_or(share.reserve),
        goal_ns: goal.as_deref().map_or(Ok(share.goal_ns), config::goal)?,
        max: max.as_deref().map_or(Ok(share.max), Max::parse)?,
        burst_ns: burst.as_deref().map_or(Ok(share.burst_ns), config::burst)?,
    })
}

fn unknown_export(server: &Server, name: &str) -> String {
    let all = server.exports.all();
    let names = || all.iter().map(|export| export.options.name.as_str());
    unknown("export", name, &names().collect::<Vec<_>>())
}

fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    let near = fairlift_sim::scheduler::nearest(name, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    format!("there is no {what} '{name}'{near} (there are: {})", names.join(", "))
}

fn find(server: &Server, name: &str) -> Result<Arc<Export>, String> {
    let found = server.exports.all().into_iter().find(|export| export.options.name == name);
    found.ok_or_else(|| unknown_export(server, name))
}

fn find_device(server: &Server, name: &str) -> Result<Arc<Device>, String> {
    server.device(name).ok_or_else(|| {
        let all = server.devices();
        unknown("device", name, &all.iter().map(|device| device.name()).collect::<Vec<_>>())
    })
}

/// Everything there is to see.
fn show(server: &Server) -> Value {
    let devices: Vec<Value> = server.devices().iter().map(|device| show_device(device)).collect();
    let exports: Vec<Value> = server.exports.all().iter().map(|export| show_export(export)).collect();
    json!({ "devices": devices, "exports": exports, "connections": server.connections() })
}

fn show_device(device: &Device) -> Value {
    let ((in_device, waiting), [done, failed]) = (device.depths(), device.jobs());
    json!({
        "name": device.name(),
        "bytes": device.back().bytes(),
        "elevator": device.elevator(),
        "depth": device.limits().queue_depth,
        "in_device": in_device,
        "waiting": waiting,
        "requests": done,
        "failed": failed,
        "engine": device.back().figures().engine,
        "lateness": device.back().figures().lateness,
    })
}

fn show_export(export: &Export) -> Value {
    let (share, tenant) = (export.share(), export.device.tenant(export.group));
    let total = tenant.stats.total();
    json!({
        "name": export.options.name,
        "device": export.device.name(),
        "bytes": export.bytes(),
        "read_only": export.is_read_only(),
        "per_connection": export.options.per_connection,
        "weight": share.weight,
        "class": share.class,
        "max": {
            "rbps": share.max.read_bps, "wbps": share.max.write_bps,
            "riops": share.max.read_iops, "wiops": share.max.write_iops,
        },
        "burst_ns": share.burst_ns,
        "connections": export.connections.load(Relaxed),
        "requests": export.requests[0].load(Relaxed),
        "failed": export.requests[1].load(Relaxed),
        "due": tenant.due,
        "queued": tenant.depths.0,
        "in_device": tenant.depths.1,
        "device_requests": total.ios,
        "device_bytes": total.sectors * 512,
        "device_time_ns": tenant.stats.time_ns,
        "wait_ns": total.wait_ns,
        "service_ns": total.service_ns,
        "reserve": share.reserve,
        "goal_ns": Some(share.goal_ns).filter(|goal_ns| *goal_ns > 0),
        "goal": {
            "met": tenant.stats.goal.met,
            "missed_above_due": tenant.stats.goal.missed_above_due,
            "missed_within_due": tenant.stats.goal.missed_within_due,
        },
        "latency": export.latency.summary(),
        "latencies": export.latency.counts(),
    })
}
