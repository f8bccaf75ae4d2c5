//! How far a device model can be believed: measured traces replayed on it, and scored.
//!
//! The score is DiskSim's own: the root mean square of the *horizontal* distance between the distributions of measured and
//! simulated response times (Ruemmler and Wilkes' demerit figure; DiskSim manual, chapter 6). It says nothing of single
//! requests, so their mean error stands beside it, and the greatest *vertical* distance (Kolmogorov and Smirnov).

use std::collections::VecDeque;

use crate::device::{Command, Completion, Device, Op};

/// A request with the response time that was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// Read or write.
    pub op: Op,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
    /// When it came, nanoseconds.
    pub arrival_ns: u64,
    /// How long it took, nanoseconds.
    pub response_ns: u64,
}

/// When requests come in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// As long after the completion before as in the trace: what DiskSim does with its validation traces. A simulated
    /// request that takes longer delays those behind it.
    Closed,
    /// At the recorded times, whatever the device makes of it.
    Open,
}

impl Timing {
    /// What suits a trace: [`Closed`](Timing::Closed) if no request comes before the one before it is done.
    pub fn of(requests: &[Measured]) -> Timing {
        let waits = |pair: &[Measured]| pair[1].arrival_ns >= pair[0].arrival_ns + pair[0].response_ns;
        if requests.windows(2).all(waits) { Timing::Closed } else { Timing::Open }
    }
}

/// Simulated response times, nanoseconds, in the order of the requests (which is that of their arrival).
pub fn replay(device: &mut dyn Device, requests: &[Measured], timing: Timing) -> Vec<u64> {
    match timing {
        Timing::Closed => replay_closed(device, requests),
        Timing::Open => replay_open(device, requests),
    }
}

fn command(number: usize, request: &Measured) -> Command {
    // Fewer than 2^32 requests are replayed: one takes 40 bytes.
    Command {
        tag: number as u32,
        op: request.op,
        sector: request.sector,
        sectors: request.sectors,
        fua: false,
    }
}

fn replay_closed(device: &mut dyn Device, requests: &[Measured]) -> Vec<u64> {
    let mut responses = Vec::with_capacity(requests.len());
    let mut done: Vec<Completion> = Vec::new();
    let mut now = 0u64;
    for (number, request) in requests.iter().enumerate() {
        device.advance(now, &mut done);
        device.submit(command(number, request), now);
        done.clear();
        while done.is_empty() {
            let Some(at) = device.next_event() else { break };
            device.advance(at, &mut done);
        }
        let end = done.first().map_or(now, |completion| completion.at_ns);
        responses.push(end - now);
        let next = requests.get(number + 1).map_or(0, |next| next.arrival_ns);
        now = end + next.saturating_sub(request.arrival_ns + request.response_ns);
    }
    responses
}

fn replay_open(device: &mut dyn Device, requests: &[Measured]) -> Vec<u64> {
    let depth = device.limits().queue_depth as usize;
    let mut responses = vec![0; requests.len()];
    let (mut waiting, mut inside) = (VecDeque::new(), 0);
    let mut done: Vec<Completion> = Vec::new();
    let mut next = 0;
    loop {
        let arrival = requests.get(next).map(|request| request.arrival_ns);
        let event = device.next_event().filter(|_| inside > 0);
        let now = match (arrival, event) {
            (Some(arrival), Some(event)) => arrival.min(event),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return responses,
        };
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            inside -= 1;
            let number = completion.tag as usize;
            responses[number] = completion.at_ns - requests[number].arrival_ns;
        }
        while requests.get(next).is_some_and(|request| request.arrival_ns <= now) {
            waiting.push_back(next);
            next += 1;
        }
        while inside < depth {
            let Some(number) = waiting.pop_front() else { break };
            device.submit(command(number, &requests[number]), now);
            inside += 1;
        }
    }
}

/// How simulated response times compare with measured ones. Times in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    /// Requests compared.
    pub requests: usize,
    /// Mean of the measured times.
    pub measured_mean_ms: f64,
    /// Mean of the simulated times.
    pub simulated_mean_ms: f64,
    /// DiskSim's score: root mean square of the horizontal distance of the distributions.
    pub rms_ms: f64,
    /// Greatest vertical distance of the distributions, 0 to 1.
    pub ks: f64,
    /// Mean of the absolute differences request by request.
    pub request_error_ms: f64,
}

impl Score {
    /// Compare response times of the same requests, nanoseconds; `None` if there are none.
    pub fn of(measured_ns: &[u64], simulated_ns: &[u64]) -> Option<Score> {
        let requests = measured_ns.len().min(simulated_ns.len());
        if requests == 0 {
            return None;
        }
        let ms = |times: &[u64]| -> Vec<f64> { times.iter().map(|&ns| ns as f64 / 1e6).collect() };
        let (mut measured, mut simulated) = (ms(&measured_ns[..requests]), ms(&simulated_ns[..requests]));
        let count = requests as f64;
        let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / count;
        let request_error_ms = mean(
            &mut measured.iter().zip(&simulated).map(|(measured, simulated)| (measured - simulated).abs()),
        );
        measured.sort_unstable_by(f64::total_cmp);
        simulated.sort_unstable_by(f64::total_cmp);
        let squares = mean(&mut measured.iter().zip(&simulated).map(|(m, s)| (m - s) * (m - s)));
        Some(Score {
            requests,
            measured_mean_ms: mean(&mut measured.iter().copied()),
            simulated_mean_ms: mean(&mut simulated.iter().copied()),
            rms_ms: squares.sqrt(),
            ks: greatest_gap(&measured, &simulated),
            request_error_ms,
        })
    }

    /// The score in percent of the measured mean.
    pub fn rms_percent(&self) -> f64 {
        self.rms_ms / self.measured_mean_ms * 100.0
    }
}

/// Greatest distance of two distributions given as sorted samples of the same number.
fn greatest_gap(a: &[f64], b: &[f64]) -> f64 {
    let (mut i, mut j, mut gap) = (0, 0, 0usize);
    while i < a.len() && j < b.len() {
        // All samples at the lesser value pass together: between equal values there is no distribution to compare.
        let at = a[i].min(b[j]);
        while i < a.len() && a[i] <= at {
            i += 1;
        }
        while j < b.len() && b[j] <= at {
            j += 1;
        }
        gap = gap.max(i.abs_diff(j));
    }
    gap as f64 / a.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceSpec;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_score_of_a_shift_is_the_shift() {
        let measured: Vec<u64> = (1..=100).map(|i| i * MS).collect();
        let simulated: Vec<u64> = measured.iter().rev().map(|ns| ns + 2 * MS).collect();
        let score = Score::of(&measured, &simulated).unwrap();
        assert!((score.rms_ms - 2.0).abs() < 1e-9, "order plays no part: {score:?}");
        assert!((score.ks - 0.02).abs() < 1e-9);
        assert!((score.simulated_mean_ms - score.measured_mean_ms - 2.0).abs() < 1e-9);
        assert!(score.request_error_ms > 40.0, "request by request they have nothing in common");
        assert_eq!(Score::of(&[], &[]), None);
    }

    #[test]
    fn equal_values_are_no_gap() {
        let score = Score::of(&[MS, MS, 2 * MS, 2 * MS], &[MS, MS, MS, 2 * MS]).unwrap();
        assert!((score.ks - 0.25).abs() < 1e-9);
    }

    fn reads(gap_ns: u64, count: u64) -> Vec<Measured> {
        let one = |i| Measured {
            op: Op::Read,
            sector: 8 * i,
            sectors: 8,
            arrival_ns: i * gap_ns,
            response_ns: 100,
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_closed_replay_keeps_the_pauses_and_an_open_one_the_times() {
        let null =
            DeviceSpec::parse("based_on = \"null\"\nlatency_ns = 5000\n[limits]\nqueue_depth = 1\n", "t")
                .unwrap();
        let requests = reads(1000, 10);
        assert_eq!(Timing::of(&requests), Timing::Closed);
        assert_eq!(replay(&mut *null.build(1), &requests, Timing::Closed), [5000; 10]);
        // One command in the device at a time: every request waits for all before it.
        let open: Vec<u64> = (0..10).map(|i| 5000 * (i + 1) - 1000 * i).collect();
        assert_eq!(replay(&mut *null.build(1), &requests, Timing::Open), open);
        assert_eq!(Timing::of(&reads(50, 2)), Timing::Open, "the second comes before the first is done");
    }
}
