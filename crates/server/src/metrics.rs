//! Metrics as Prometheus reads them: text over HTTP, the same answer whatever is asked.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::net::Stream;
use crate::server::Server;

/// How long a client may take to ask.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest question, bytes.
const QUESTION_MAX: usize = 8 << 10;

/// Answer one question.
///
/// # Errors
/// Why that did not go: a sentence.
pub fn serve(mut stream: Stream, server: &Arc<Server>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("metrics: {error}");
    stream.set_timeout(Some(TIMEOUT)).map_err(wrong)?;
    let mut question = vec![0; QUESTION_MAX];
    let mut len = 0;
    while len < QUESTION_MAX && !question[..len].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut question[len..]).map_err(wrong)? {
            0 => break,
            bytes => len += bytes,
        }
    }
    let text = text(server);
    let head = format!(
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes())).map_err(wrong)
}

/// One metric: its name, kind and meaning, and a value for each label.
fn metric(out: &mut String, name: &str, kind: &str, about: &str, values: &[(String, f64)]) {
    let _ = writeln!(out, "# HELP fairlift_{name} {about}\n# TYPE fairlift_{name} {kind}");
    for (labels, value) in values {
        let _ = writeln!(out, "fairlift_{name}{{{labels}}} {value}");
    }
}

fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// All metrics.
fn text(server: &Server) -> String {
    let mut out = String::new();
    let exports = server.exports.all();
    let tenants: Vec<_> = exports
        .iter()
        .map(|export| (label("export", &export.options.name), export, export.device.tenant(export.group)))
        .collect();
    let mut of_export = |name: &str, kind: &str, about: &str, value: &dyn Fn(usize) -> f64| {
        let values: Vec<_> =
            tenants.iter().enumerate().map(|(at, (label, ..))| (label.clone(), value(at))).collect();
        metric(&mut out, name, kind, about, &values);
    };
    let seconds = |ns: u64| ns as f64 / 1e9;
    of_export("connections", "gauge", "Open connections.", &|at| {
        f64::from(tenants[at].1.connections.load(Relaxed))
    });
    of_export("requests_total", "counter", "Clients' requests that went well.", &|at| {
        tenants[at].1.requests[0].load(Relaxed) as f64
    });
    of_export("requests_failed_total", "counter", "Clients' requests that failed.", &|at| {
        tenants[at].1.requests[1].load(Relaxed) as f64
    });
    of_export("weight", "gauge", "Weight.", &|at| f64::from(tenants[at].1.share().weight));
    of_export(
        "due_ratio",
        "gauge",
        "Share of the device that is due to it beside the exports busy now.",
        &|at| tenants[at].2.due,
    );
    of_export("device_seconds_total", "counter", "Device time it was billed.", &|at| {
        seconds(tenants[at].2.stats.time_ns)
    });
    of_export("wait_seconds_total", "counter", "Time its requests waited for the device.", &|at| {
        seconds(tenants[at].2.stats.total().wait_ns)
    });
    of_export("service_seconds_total", "counter", "Time its requests were in the device.", &|at| {
        seconds(tenants[at].2.stats.total().service_ns)
    });
    of_export("device_bytes_total", "counter", "Bytes of its requests in the device.", &|at| {
        tenants[at].2.stats.total().sectors as f64 * 512.0
    });
    of_export(
        "latency_p99_seconds",
        "gauge",
        "99 % of its bios took no longer from submission to answer.",
        &|at| seconds(tenants[at].1.latency.summary().p99_ns),
    );
    let devices = server.devices();
    let mut of_device = |name: &str, kind: &str, about: &str, value: &dyn Fn(usize) -> Option<f64>| {
        let values: Vec<_> = (0..devices.len())
            .filter_map(|at| Some((label("device", devices[at].name()), value(at)?)))
            .collect();
        metric(&mut out, name, kind, about, &values);
    };
    of_device("device_requests_total", "counter", "Requests the back end did.", &|at| {
        Some(devices[at].jobs()[0] as f64)
    });
    of_device("device_failed_total", "counter", "Requests the back end failed.", &|at| {
        Some(devices[at].jobs()[1] as f64)
    });
    of_device("device_in_flight", "gauge", "Requests in the back end.", &|at| {
        Some(f64::from(devices[at].depths().0))
    });
    of_device(
        "model_late_p99_seconds",
        "gauge",
        "99 % of a modelled device's answers were not later.",
        &|at| devices[at].back().figures().lateness.map(|late| seconds(late.p99_ns)),
    );
    out
}
