//! What a look at all tenants found, and what happened between two looks.

use std::collections::BTreeMap;

/// Counters of a tenant since it is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tenant {
    /// What is counted is of this device.
    pub device: String,
    /// Weight, where it is known.
    pub weight: Option<u32>,
    /// What is due to it of the device beside those that are busy now, 0 to 1.
    pub due: Option<f64>,
    /// Limits, as text.
    pub limits: String,
    /// Requests that wait now, and those in the device where that is known.
    pub waiting: u64,
    /// See there.
    pub in_device: Option<u64>,
    /// Requests the device did.
    pub ios: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Device time it was billed, nanoseconds.
    pub time_ns: u64,
    /// Time its requests waited for the device.
    pub wait_ns: u64,
    /// Time they were in the device.
    pub service_ns: u64,
    /// Bios by their time from submission to answer, as an upper bound in nanoseconds with a count; empty if that is not known.
    pub latencies: Vec<(u64, u64)>,
    /// What 99 % of them should not exceed.
    pub goal_ns: Option<u64>,
}

/// One look: all tenants by device and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When, nanoseconds since some moment.
    pub at_ns: u64,
    /// See there.
    pub tenants: BTreeMap<(String, String), Tenant>,
}

/// What a tenant got between two looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// As it is now.
    pub now: Tenant,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bps: f64,
    /// Mean wait and service time of a request, nanoseconds; `None`: there was none.
    pub wait_ns: Option<f64>,
    /// See there.
    pub service_ns: Option<f64>,
    /// Its part of all billed time of the device, 0 to 1; `None`: no time was billed.
    pub had: Option<f64>,
    /// 99 % of its bios took no longer, nanoseconds; at most a quarter too much.
    pub p99_ns: Option<u64>,
}

/// What happened from `before` to `now`, by device and name.
pub fn rows(before: &Sample, now: &Sample) -> Vec<Row> {
    let seconds = now.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e9;
    let nothing = Tenant::default();
    let earlier = |key: &(String, String)| before.tenants.get(key).unwrap_or(&nothing);
    let mut billed: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, tenant) in &now.tenants {
        *billed.entry(&tenant.device).or_default() += tenant.time_ns.saturating_sub(earlier(key).time_ns);
    }
    let row = |(key, tenant): (&(String, String), &Tenant)| {
        let earlier = earlier(key);
        // One that was removed and made again counts from zero.
        let since = |count: fn(&Tenant) -> u64| count(tenant).saturating_sub(count(earlier)) as f64;
        let (ios, all) = (since(|tenant| tenant.ios), billed[tenant.device.as_str()]);
        let mean = |sum: f64| (ios > 0.0).then(|| sum / ios);
        Row {
            name: key.1.clone(),
            now: tenant.clone(),
            iops: ios / seconds,
            bps: since(|tenant| tenant.bytes) / seconds,
            wait_ns: mean(since(|tenant| tenant.wait_ns)),
            service_ns: mean(since(|tenant| tenant.service_ns)),
            had: (all > 0).then(|| since(|tenant| tenant.time_ns) / all as f64),
            p99_ns: p99(&earlier.latencies, &tenant.latencies),
        }
    };
    now.tenants.iter().map(row).collect()
}

/// The time that 99 % of what was counted between two looks did not exceed.
fn p99(before: &[(u64, u64)], now: &[(u64, u64)]) -> Option<u64> {
    let earlier =
        |bound: u64| before.iter().find(|(other, _)| *other == bound).map_or(0, |(_, count)| *count);
    let counts: Vec<(u64, u64)> =
        now.iter().map(|(bound, count)| (*bound, count.saturating_sub(earlier(*bound)))).collect();
    let wanted = (counts.iter().map(|(_, count)| count).sum::<u64>() * 99).div_ceil(100);
    let mut sum = 0;
    let found = counts.iter().find(|(_, count)| {
        sum += count;
        wanted > 0 && sum >= wanted
    });
    found.map(|(bound, _)| *bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ns: u64, tenants: [(&str, u64, u64); 2]) -> Sample {
        let tenant = |(name, ios, time_ns): (&str, u64, u64)| {
            let tenant = Tenant {
                device: "disk".to_owned(),
                ios,
                bytes: ios * 4096,
                time_ns,
                wait_ns: ios * 1000,
                service_ns: ios * 500,
                latencies: vec![(1000, ios * 98 / 100), (9000, ios - ios * 98 / 100)],
                ..Tenant::default()
            };
            (("disk".to_owned(), name.to_owned()), tenant)
        };
        Sample { at_ns, tenants: tenants.into_iter().map(tenant).collect() }
    }

    #[test]
    fn rates_and_parts_are_of_the_time_between() {
        let before = sample(0, [("a", 1000, 1_000_000), ("b", 100, 0)]);
        let now = sample(2_000_000_000, [("a", 3000, 4_000_000), ("b", 100, 1_000_000)]);
        let rows = rows(&before, &now);
        assert_eq!((rows[0].iops, rows[0].bps, rows[0].had), (1000.0, 4_096_000.0, Some(0.75)));
        assert_eq!(
            (rows[0].wait_ns, rows[0].service_ns, rows[0].p99_ns),
            (Some(1000.0), Some(500.0), Some(9000))
        );
        assert_eq!(
            (rows[1].iops, rows[1].wait_ns, rows[1].p99_ns, rows[1].had),
            (0.0, None, None, Some(0.25))
        );
    }

    #[test]
    fn a_tenant_that_is_new_or_made_again_counts_from_zero() {
        let now = sample(1_000_000_000, [("a", 10, 5), ("b", 0, 0)]);
        let before = sample(0, [("a", 1000, 1_000_000), ("c", 7, 7)]);
        let rows = rows(&before, &now);
        assert_eq!((rows[0].iops, rows[0].had), (0.0, None));
    }
}
