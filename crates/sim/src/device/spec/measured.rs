//! What was measured on the drive that a device file models: the six rates and two latencies of a kernel `io.cost` model.

use super::{Fields, SpecError};

/// Rates and latencies as `resctl-bench` measures and the kernel's `io.cost.model` and `io.cost.qos` take them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Sequential reads and writes of large blocks, bytes a second.
    pub read_bytes_per_s: f64,
    /// Likewise of writes.
    pub write_bytes_per_s: f64,
    /// 4 KiB reads, sequential, a second.
    pub read_seq_iops: f64,
    /// Random.
    pub read_random_iops: f64,
    /// 4 KiB writes, sequential, a second.
    pub write_seq_iops: f64,
    /// Random.
    pub write_random_iops: f64,
    /// 1.5 times the 95th percentile of random 4 KiB reads, 2,048 in flight, us.
    pub read_latency_us: f64,
    /// Of writes.
    pub write_latency_us: f64,
}

/// The section `[measured]`, if the file has it.
pub(super) fn read(fields: &mut Fields) -> Result<Option<Measured>, SpecError> {
    if !fields.has("measured.rbps") {
        return Ok(None);
    }
    let mut number = |key: &str| fields.number(&format!("measured.{key}"), 1.0, 1e15);
    Ok(Some(Measured {
        read_bytes_per_s: number("rbps")?,
        write_bytes_per_s: number("wbps")?,
        read_seq_iops: number("rseqiops")?,
        read_random_iops: number("rrandiops")?,
        write_seq_iops: number("wseqiops")?,
        write_random_iops: number("wrandiops")?,
        read_latency_us: number("rlat_us")?,
        write_latency_us: number("wlat_us")?,
    }))
}
