//! A server's tenants: the answer to `show` of its control socket.

use std::io::{self, BufRead, BufReader, Write};
use std::time::Duration;

use fairlift_core::group::limit::BURST_NS;
use fairlift_server::net::{Address, Stream};
use serde_json::Value;

use super::sample::{Sample, Tenant};

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to the control socket.
pub struct Source {
    writer: Stream,
    reader: BufReader<Stream>,
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl Source {
    /// Connect.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(address: &Address) -> io::Result<Source> {
        let stream = address.connect()?;
        stream.set_timeout(Some(TIMEOUT))?;
        Ok(Source { writer: stream.try_clone()?, reader: BufReader::new(stream) })
    }

    /// Look at all exports.
    ///
    /// # Errors
    /// The system's, or an answer that is no fairlift server's.
    pub fn look(&mut self, at_ns: u64) -> io::Result<Sample> {
        self.writer.write_all(b"{\"do\":\"show\"}\n")?;
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server has ended"));
        }
        let shown: Value =
            serde_json::from_str(&line).map_err(|_| wrong("what answers there is no fairlift server"))?;
        sample(&shown, at_ns).ok_or_else(|| wrong("what answers there is no fairlift server of this version"))
    }
}

/// The answer as a look.
pub fn sample(shown: &Value, at_ns: u64) -> Option<Sample> {
    let mut sample = Sample { at_ns, ..Sample::default() };
    for export in shown.get("exports")?.as_array()? {
        let text = |key: &str| export.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| export.get(key).and_then(Value::as_u64);
        let device = text("device")?;
        let tenant = Tenant {
            device: device.clone(),
            weight: number("weight").and_then(|weight| u32::try_from(weight).ok()),
            due: export.get("due").and_then(Value::as_f64),
            limits: limits(export.get("max")?, number("burst_ns")),
            waiting: number("queued")?,
            in_device: number("in_device"),
            ios: number("device_requests")?,
            bytes: number("device_bytes")?,
            time_ns: number("device_time_ns")?,
            wait_ns: number("wait_ns")?,
            service_ns: number("service_ns")?,
            latencies: latencies(export.get("latencies")?)?,
            goal_ns: number("goal_ns"),
        };
        sample.tenants.insert((device, text("name")?), tenant);
    }
    Some(sample)
}

/// Those that are set (0 is none), with their burst if it is not the default.
fn limits(max: &Value, burst_ns: Option<u64>) -> String {
    let limit = |key: &str| {
        Some(format!(
            "{key}={}",
            max.get(key)?.as_u64().filter(|limit| *limit > 0).map(crate::number::bytes_short)?
        ))
    };
    let mut all: Vec<String> = ["rbps", "wbps", "riops", "wiops"].into_iter().filter_map(limit).collect();
    if let (Some(ns), false) = (burst_ns.filter(|ns| *ns != BURST_NS), all.is_empty()) {
        all.push(format!("burst={}ms", ns / 1_000_000));
    }
    all.join(" ")
}

fn latencies(counts: &Value) -> Option<Vec<(u64, u64)>> {
    let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?));
    counts.as_array()?.iter().map(pair).collect()
}
