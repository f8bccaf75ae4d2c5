//! Figures of groups by name, as experiments and tables for programs call them.

use super::GroupResult;

/// A figure of a group, with the groups below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupMetric {
    /// The device's time it got.
    DeviceTime,
    /// The same as a part of its parent's, 0 to 1; the root has none.
    DeviceTimeShare,
    /// Reads and writes.
    Bandwidth,
    /// Reads.
    ReadBandwidth,
    /// Writes.
    WriteBandwidth,
    /// Requests done.
    Iops,
    /// Bios that joined a request.
    Merged,
    /// Bytes its tasks made dirty.
    Dirtied,
    /// Bytes of these that reached the device.
    Written,
    /// Mean time from request slot to completion.
    LatencyMean,
    /// Of a hundred requests 99 took no longer.
    LatencyP99,
    /// The longest.
    LatencyMax,
    /// Longest time that nothing of it was with the device or before it while pages of its waited to be written.
    GapLongest,
}

impl GroupMetric {
    /// All of them, in the order to show them.
    pub const ALL: [GroupMetric; 13] = [
        GroupMetric::DeviceTime,
        GroupMetric::DeviceTimeShare,
        GroupMetric::Bandwidth,
        GroupMetric::ReadBandwidth,
        GroupMetric::WriteBandwidth,
        GroupMetric::Iops,
        GroupMetric::Merged,
        GroupMetric::Dirtied,
        GroupMetric::Written,
        GroupMetric::LatencyMean,
        GroupMetric::LatencyP99,
        GroupMetric::LatencyMax,
        GroupMetric::GapLongest,
    ];

    /// Its name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            GroupMetric::DeviceTime => "device_time",
            GroupMetric::DeviceTimeShare => "device_time_share",
            GroupMetric::Bandwidth => "bandwidth",
            GroupMetric::ReadBandwidth => "read_bandwidth",
            GroupMetric::WriteBandwidth => "write_bandwidth",
            GroupMetric::Iops => "iops",
            GroupMetric::Merged => "merged",
            GroupMetric::Dirtied => "dirtied",
            GroupMetric::Written => "written",
            GroupMetric::LatencyMean => "latency_mean",
            GroupMetric::LatencyP99 => "latency_p99",
            GroupMetric::LatencyMax => "latency_max",
            GroupMetric::GapLongest => "gap_longest",
        }
    }

    /// Unit.
    pub const fn unit(self) -> &'static str {
        match self {
            GroupMetric::DeviceTime => "s",
            GroupMetric::DeviceTimeShare => "",
            GroupMetric::Bandwidth | GroupMetric::ReadBandwidth | GroupMetric::WriteBandwidth => "KiB/s",
            GroupMetric::Iops => "IOPS",
            GroupMetric::Merged => "bios",
            GroupMetric::Dirtied | GroupMetric::Written => "KiB",
            GroupMetric::LatencyMean
            | GroupMetric::LatencyP99
            | GroupMetric::LatencyMax
            | GroupMetric::GapLongest => "ms",
        }
    }

    /// What it is, for a table's head.
    pub const fn label(self) -> &'static str {
        match self {
            GroupMetric::DeviceTime => "device time",
            GroupMetric::DeviceTimeShare => "share of the device's time",
            GroupMetric::Bandwidth => "bandwidth",
            GroupMetric::ReadBandwidth => "bandwidth, reads",
            GroupMetric::WriteBandwidth => "bandwidth, writes",
            GroupMetric::Iops => "IOPS",
            GroupMetric::Merged => "merged",
            GroupMetric::Dirtied => "made dirty",
            GroupMetric::Written => "written back",
            GroupMetric::LatencyMean => "latency of requests, mean",
            GroupMetric::LatencyP99 => "latency of requests, p99",
            GroupMetric::LatencyMax => "latency of requests, max",
            GroupMetric::GapLongest => "longest gap in its queue",
        }
    }

    /// Its value; `None` where there is none, as the root's share.
    pub fn of(self, group: &GroupResult) -> Option<f64> {
        let figures = &group.all;
        let ms = |ns: u64| ns as f64 / 1e6;
        let per_second = |sectors: u64| group.per_second(512 * sectors) / 1024.0;
        Some(match self {
            GroupMetric::DeviceTime => figures.device_time_ns as f64 / 1e9,
            GroupMetric::DeviceTimeShare => group.parent.map(|_| group.share)?,
            GroupMetric::Bandwidth => group.bandwidth() / 1024.0,
            GroupMetric::ReadBandwidth => per_second(figures.sectors[0]),
            GroupMetric::WriteBandwidth => per_second(figures.sectors[1]),
            GroupMetric::Iops => group.per_second(figures.requests.iter().sum()),
            GroupMetric::Merged => figures.merged as f64,
            GroupMetric::Dirtied => figures.dirtied_bytes as f64 / 1024.0,
            GroupMetric::Written => figures.written_bytes as f64 / 1024.0,
            GroupMetric::LatencyMean => figures.latency.mean_ns() / 1e6,
            GroupMetric::LatencyP99 => ms(figures.latency.percentile_ns(99.0).min(figures.latency.max_ns())),
            GroupMetric::LatencyMax => ms(figures.latency.max_ns()),
            GroupMetric::GapLongest => ms(figures.gap_longest_ns),
        })
    }
}
