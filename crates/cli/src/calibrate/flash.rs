//! Fitting a flash drive: k dies of service S behind a delay D, rates, and what a flush costs.
//!
//! One command at a time takes D + S + transfer; many saturate at k/S; the ladder of depths between the two says how many
//! dies share the work. For each k the S is looked for with which the model's own answer to the ladder is nearest; D is what
//! is left.

use std::fmt::Write as _;

use fairlift_sim::device::{DeviceSpec, Op};

use super::cache::{self, Cached};
use super::fit::{Fit, Series};
use super::probe::{Load, rate};
use super::series;
use crate::error::Failure;

/// The preset whose parameters stay where nothing was measured.
pub const PRESET: &str = "flash-kd";
/// Numbers of dies tried.
const DIES: [u32; 19] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 256];
/// How many of them are looked at closely.
const CLOSE: usize = 3;
/// Largest page a die reads at a time, KiB.
const PAGE_KIB_MAX: f64 = 1024.0;
/// Largest page that short sequential reads are believed to tell of, KiB: beyond, the drive reads ahead.
const PAGE_KIB_SEEN_MAX: f64 = 128.0;
/// A lognormal service wider than this is a tail that this model has not. The 95th percentile decides: rarer stalls are
/// not the die's.
const SIGMA_MAX: f64 = 1.2;
/// A flush that waits less than this, nanoseconds, waits for nothing: the buffer survives a power loss.
const PROTECTED_NS: f64 = 100e3;
/// Programming a page, nanoseconds, where flushes do not tell: the preset's.
const PROGRAM_NS: f64 = 185e3;
/// A page that takes this much longer when it was written at random pays for collection of its own.
const RANDOM_COSTS_MORE: f64 = 1.1;
/// The host limits a rate that is at least this part of what it could submit.
const HOST_LIMITS: f64 = 0.95;
/// Errors (root mean square of logarithms) this near one another are alike where the host limits the rates.
const ALIKE: f64 = 0.005;
/// So are times of a sequential read (logarithm).
const ALIKE_SAVING: f64 = 0.05;
/// Spare ratios the model takes.
const SPARE_MIN: f64 = 0.01;
const SPARE_MAX: f64 = 10.0;

/// How thoroughly to look for a service time.
#[derive(Clone, Copy, Debug)]
struct Effort {
    steps: u32,
    commands: u64,
}

const QUICK: Effort = Effort { steps: 6, commands: 1500 };
const THOROUGH: Effort = Effort { steps: 14, commands: 6000 };

/// What was measured of reads.
#[derive(Clone, Debug)]
struct Ladder {
    /// Depth and operations per second.
    steps: Vec<(u32, f64)>,
    /// One 4 KiB read, without the processor: mean, median and 95th percentile, ns.
    alone_ns: f64,
    p50_ns: f64,
    p95_ns: f64,
    /// One 64 KiB read, if it was measured, ns.
    large_ns: Option<f64>,
    /// One sequential 4 KiB read, if it was measured, ns.
    next_ns: Option<f64>,
    /// The largest rate of any job, MB/s.
    link: f64,
    cpu_ns: u64,
    /// A memory that answers a part of the reads.
    cache: Option<Cached>,
    /// Of what the series lies on, sectors.
    span: u64,
}

/// A candidate.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    dies: u32,
    sense_ns: f64,
    delay_ns: f64,
    cv: f64,
    page_kib: f64,
    channel: f64,
    link: f64,
    error: f64,
    cache: Option<Cached>,
}

/// Fit what the series measured.
pub fn fit(series: &Series<'_>) -> Result<Fit, Failure> {
    let ladder = Ladder::of(series)?;
    let mut found = Vec::new();
    for dies in DIES {
        found.push(best_service(dies, &ladder, QUICK)?);
    }
    found.sort_by(|x, y| x.error.total_cmp(&y.error));
    let fewest = ladder.fewest_dies(&found);
    let mut close = Vec::new();
    for reads in found[..CLOSE].iter().chain([&fewest]) {
        close.push(best_service(reads.dies, &ladder, THOROUGH)?);
    }
    close.sort_by(|x, y| x.error.total_cmp(&y.error));
    let reads = ladder.paged(ladder.fewest_dies(&close));
    let mut fit = Fit::new("flash", PRESET);
    describe_reads(&mut fit, &reads, &ladder);
    writes(&mut fit, series, &reads)?;
    Ok(fit)
}

impl Ladder {
    fn of(series: &Series<'_>) -> Result<Ladder, Failure> {
        let one = series.need(&format!("{}1", series::RANDOM))?;
        let step = |depth| Some((depth, series.get(&format!("{}{depth}", series::RANDOM))?.iops));
        let steps: Vec<(u32, f64)> = series::DEPTHS.into_iter().filter_map(step).collect();
        if steps.len() < 3 {
            return Err(Failure::new("too few depths: a fit needs three of the jobs read-random-N"));
        }
        let device_ns = |iops: f64| (1e9 / iops - series.cpu_ns as f64).max(1.0);
        let cache = cache::find(series);
        let link = series.fastest() / 1e6;
        Ok(Ladder {
            steps,
            alone_ns: cache.map_or(device_ns(one.iops), |cached| cached.miss_ns),
            p50_ns: cache.map_or(one.p50_ns, |cached| cached.miss_p50_ns),
            p95_ns: cache.map_or(one.p95_ns, |cached| cached.miss_p95_ns),
            // A cache rarely holds all of 64 KiB.
            large_ns: series.get(series::LARGE).map(|large| device_ns(large.iops)),
            next_ns: series.get(series::SMALL).map(|small| {
                let ns = device_ns(small.iops);
                cache.map_or(ns, |cached| cached.without(ns))
            }),
            link,
            cpu_ns: series.cpu_ns,
            cache,
            span: if cache.is_some() { series.target_bytes().unwrap_or(0) / 512 } else { 0 },
        })
    }

    /// The candidate with these dies and this service; everything else follows.
    fn candidate(&self, dies: u32, sense_ns: f64, commands: u64) -> Result<Reads, Failure> {
        // A die reads a page at a time: sequential reads need pages large enough.
        let needed = self.link * sense_ns / 1e3 * 1.25 / f64::from(dies) / 1024.0;
        let page_kib = needed.clamp(4.0, PAGE_KIB_MAX).log2().ceil().exp2();
        let cv = variation(sense_ns, self.p50_ns, self.p95_ns);
        let (link, cache) = (self.link, self.cache);
        let bare = Reads { dies, sense_ns, cv, page_kib, link, cache, ..Reads::default() };
        // The page is not known yet, so 64 KiB do not tell of the channel.
        let mut reads = self.with_page(bare, page_kib, None);
        let spec = device(&reads, "")?;
        let square = |&(depth, measured): &(u32, f64)| {
            (rate(&spec, self.load(depth, 8, commands)) / measured).ln().powi(2)
        };
        reads.error = (self.steps.iter().map(square).sum::<f64>() / self.steps.len() as f64).sqrt();
        Ok(reads)
    }

    /// The same with pages of this size: channel, and D, which keeps one read alone as long as it is.
    fn with_page(&self, reads: Reads, page_kib: f64, large_ns: Option<f64>) -> Reads {
        let ns_of = |bytes: f64, mb_per_s: f64| bytes / mb_per_s * 1e3;
        // 64 KiB are whole pages from several dies at once: what they take longer is a page on the channel, and the link.
        let longer_ns = large_ns.map(|large| large - self.alone_ns - ns_of(61_440.0, self.link));
        let more_bytes = (page_kib.min(64.0) - 4.0) * 1024.0;
        let channel = match longer_ns {
            Some(ns) if ns > 0.0 && more_bytes > 0.0 => (more_bytes / ns * 1e3).clamp(1.0, 1e5),
            _ => self.link,
        };
        let transfer_ns = ns_of(4096.0, channel) + ns_of(4096.0, self.link);
        let delay_ns = (self.alone_ns - transfer_ns - reads.sense_ns).max(0.0);
        Reads { page_kib, channel, delay_ns, ..reads }
    }

    /// Of sequential 4 KiB reads only the first of a page is sensed, the others find it in the die's register: the size of
    /// page, not smaller than it must be, that explains best what they save.
    fn paged(&self, reads: Reads) -> Reads {
        self.with_page(reads, self.best_page(&reads).0, self.large_ns)
    }

    /// That size, and how far it is off (logarithm).
    fn best_page(&self, reads: &Reads) -> (f64, f64) {
        let Some(next_ns) = self.next_ns else { return (reads.page_kib, 0.0) };
        let off = |page_kib: f64| {
            let ours_ns = self.alone_ns - reads.sense_ns * (1.0 - 4.0 / page_kib);
            (ours_ns / next_ns).ln().abs()
        };
        let larger = |page_kib: &f64| Some(page_kib * 2.0).filter(|kib| *kib <= PAGE_KIB_SEEN_MAX);
        let pages =
            std::iter::successors(Some(reads.page_kib), larger).map(|page_kib| (page_kib, off(page_kib)));
        pages.min_by(|x, y| x.1.total_cmp(&y.1)).unwrap_or((reads.page_kib, 0.0))
    }

    /// Whether the host limits the highest rate, so that more dies would not raise it.
    fn host_limits(&self) -> bool {
        let highest = self.steps.iter().map(|step| step.1).fold(0.0, f64::max);
        highest * self.cpu_ns as f64 >= HOST_LIMITS * 1e9
    }

    /// The candidate that explains the ladder best. If the host limits the rates: of those that explain it alike, and what sequential reads
    /// save, the one with the fewest dies.
    fn fewest_dies(&self, sorted: &[Reads]) -> Reads {
        let slack = if self.host_limits() { ALIKE } else { 0.0 };
        let alike: Vec<&Reads> =
            sorted.iter().filter(|reads| reads.error <= sorted[0].error + slack).collect();
        let least = alike.iter().map(|reads| self.best_page(reads).1).fold(f64::INFINITY, f64::min);
        let saving = alike.iter().filter(|reads| self.best_page(reads).1 <= least + ALIKE_SAVING);
        saving.min_by_key(|reads| reads.dies).map_or_else(Reads::default, |reads| **reads)
    }

    /// Random reads of the series in flight, `depth` of `sectors` each.
    fn load(&self, depth: u32, sectors: u32, commands: u64) -> Load {
        Load { op: Op::Read, depth, sectors, span: self.span, cpu_ns: self.cpu_ns, commands }
    }
}

/// The service time that explains the ladder best with so many dies: golden section over its logarithm.
fn best_service(dies: u32, ladder: &Ladder, effort: Effort) -> Result<Reads, Failure> {
    let at = |log: f64| ladder.candidate(dies, log.exp(), effort.commands);
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = ((ladder.alone_ns * 0.01).ln(), ladder.alone_ns.ln());
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut of_left, mut of_right) = (at(left)?, at(right)?);
    for _ in 0..effort.steps {
        if of_left.error < of_right.error {
            (high, right, of_right) = (right, left, of_left);
            left = high - ratio * (high - low);
            of_left = at(left)?;
        } else {
            (low, left, of_left) = (left, right, of_right);
            right = low + ratio * (high - low);
            of_right = at(right)?;
        }
    }
    Ok(if of_left.error < of_right.error { of_left } else { of_right })
}

/// Coefficient of variation of a lognormal service whose 95th percentile lies as far above the median as was measured.
fn variation(sense_ns: f64, p50_ns: f64, p95_ns: f64) -> f64 {
    let apart_ns = (p95_ns - p50_ns).max(0.0);
    let mut sigma: f64 = 0.0;
    for _ in 0..30 {
        let median_ns = sense_ns * (-sigma * sigma / 2.0).exp();
        sigma = ((1.0 + apart_ns / median_ns).ln() / 1.645).min(SIGMA_MAX);
    }
    ((sigma * sigma).exp() - 1.0).sqrt()
}

impl Reads {
    /// What the cache takes before the link, microseconds.
    fn hit_us(&self, cached: &Cached) -> f64 {
        ((cached.hit_ns - 4096.0 / self.link * 1e3) / 1e3).max(0.0)
    }
}

/// A device that reads so, with `more` lines of its file.
fn device(reads: &Reads, more: &str) -> Result<DeviceSpec, Failure> {
    let mut text = format!("based_on = \"{PRESET}\"\n");
    let _ = write!(
        text,
        "firmware.read_us = {:.3}\ndie.count = {}\ndie.page_kib = {}\ndie.read_us = {:.3}\ndie.read_cv = {:.4}\n\
         channel.rate_mb_per_s = {:.2}\nlink.rate_mb_per_s = {:.2}\n{more}",
        reads.delay_ns / 1e3,
        reads.dies,
        reads.page_kib,
        reads.sense_ns / 1e3,
        reads.cv,
        reads.channel,
        reads.link
    );
    if let Some(cached) = reads.cache {
        let _ = writeln!(
            text,
            "\ncache.size_mib = {}\ncache.over_mib = {}\ncache.read_us = {:.3}",
            cached.mib().0,
            cached.mib().1,
            reads.hit_us(&cached)
        );
    }
    DeviceSpec::parse(&text, "(fit)").map_err(|e| Failure::internal(e.to_string()))
}

fn describe_reads(fit: &mut Fit, reads: &Reads, ladder: &Ladder) {
    let deepest = ladder.steps.last().map_or(1, |step| step.0);
    fit.number("firmware", "read_us", reads.delay_ns / 1e3, "D: what is left of one read alone");
    let of = format!("k: depths 1 to {deepest} fit best (rms {:.1} %)", reads.error * 100.0);
    fit.whole("die", "count", u64::from(reads.dies), &of);
    fit.whole(
        "die",
        "page_kib",
        reads.page_kib as u64,
        "what sequential 4 KiB reads save; enough for the sequential rate",
    );
    fit.number("die", "read_us", reads.sense_ns / 1e3, "S: depths, given k");
    let source = "distance of the 95th percentile from the median, one at a time";
    fit.number("die", "read_cv", reads.cv, source);
    fit.number(
        "channel",
        "rate_mb_per_s",
        reads.channel,
        "what 64 KiB take longer than 4 KiB, one at a time",
    );
    fit.number("link", "rate_mb_per_s", reads.link, "the largest rate of any job");
    if let Some(cached) = reads.cache {
        let (size, over) = cached.mib();
        fit.whole("cache", "size_mib", size, "the share of reads that are quick");
        fit.whole("cache", "over_mib", over, "the target");
        fit.number(
            "cache",
            "read_us",
            reads.hit_us(&cached),
            "reads within the shortest span, less the link",
        );
        fit.note(format!(
            "a cache of about {} MiB answers: a read takes {:.0} us in it and {:.0} us beyond; it may be the memory of a virtual \
             machine's host, which other machines share",
            size,
            cached.hit_ns / 1e3,
            cached.miss_ns / 1e3
        ));
    }
}

// ---- writes -------------------------------------------------------------------------------------------------------------

fn writes(fit: &mut Fit, series: &Series<'_>, reads: &Reads) -> Result<(), Failure> {
    let rates =
        [series::WRITE_SEQUENTIAL, series::WRITE_MANY].map(|job| series.get(job).map(|f| f.bandwidth));
    let known: Vec<f64> = rates.into_iter().flatten().collect();
    if known.is_empty() {
        fit.note(format!("writes were not measured: their parameters are those of {PRESET}"));
        return Ok(());
    }
    if let Some(one) = series.get(series::WRITE_ONE) {
        let alone_ns = if one.p50_ns > 0.0 { one.p50_ns } else { 1e9 / one.iops };
        let delay_ns = alone_ns - series.cpu_ns as f64 - 4096.0 / reads.link * 1e3;
        fit.number("firmware", "write_us", delay_ns.max(0.0) / 1e3, "median of one 4 KiB write at a time");
        fit.number("firmware", "write_per_4k_us", 0.0, "part of write_us");
    }
    // Where random writes are slower, their pages pay for collection beside what the sequential rate shows.
    let apart = match rates {
        [Some(sequential), Some(random)] if sequential > random * RANDOM_COSTS_MORE => {
            Some((sequential, random))
        }
        _ => None,
    };
    let mean = (known.iter().map(|rate| rate.ln()).sum::<f64>() / known.len() as f64).exp();
    let wanted = apart.map_or(mean, |(sequential, _)| sequential);
    // A page of the dies' share of that rate: programming, and collecting garbage for it.
    let page_ns = f64::from(reads.dies) * reads.page_kib * 1024.0 / wanted * 1e9;
    let flush = series.get(series::WRITE_FLUSHED).filter(|f| f.sync_ns > 0.0);
    let wait_ns = flush.map(|f| (f.sync_ns - series.cpu_ns as f64).max(0.0));
    let protected = wait_ns.is_some_and(|wait_ns| wait_ns < PROTECTED_NS);
    let program_ns = match apart {
        Some(_) => page_ns,
        None => page_ns.min(wait_ns.filter(|_| !protected).unwrap_or(PROGRAM_NS)),
    };
    fit.number(
        "die",
        "program_us",
        program_ns / 1e3,
        "not more than a flush waits, nor than the rate of writes allows",
    );
    match apart {
        Some((sequential, random)) => {
            let source = "random writes less sequential ones";
            fit.number("gc", "random_page_us", page_ns * (sequential / random - 1.0) / 1e3, source);
        }
        None => garbage(fit, reads, program_ns, wanted)?,
    }
    if let Some(wait_ns) = wait_ns {
        let word = if protected { "true" } else { "false" };
        fit.word_bare(
            "buffer",
            "power_loss_protection",
            word,
            "a flush waits for programming, or it does not",
        );
        let flush_ns = if protected { wait_ns } else { wait_ns - program_ns };
        let source = "fdatasync less programming; on a file with what the file system does";
        fit.number("buffer", "flush_us", flush_ns.max(0.0) / 1e3, source);
    }
    Ok(())
}

/// The spare ratio at which the model writes `wanted` bytes per second.
fn garbage(fit: &mut Fit, reads: &Reads, program_ns: f64, wanted: f64) -> Result<(), Failure> {
    let program = format!("die.program_us = {:.3}\n", program_ns / 1e3);
    let writes = |more: &str| -> Result<f64, Failure> {
        let spec = device(reads, &format!("{program}{more}"))?;
        let load = Load { op: Op::Write, depth: 32, sectors: 8, span: 0, cpu_ns: 0, commands: 20_000 };
        Ok(rate(&spec, load) * 4096.0)
    };
    let source = "the rate of writes: sequential and random, mean of logarithms";
    if writes("gc.filled_by = \"sequential\"\n")? < wanted * 1.05 {
        fit.word("gc", "filled_by", "sequential", source);
        return Ok(());
    }
    let (mut low, mut high) = (SPARE_MIN.ln(), SPARE_MAX.ln());
    for _ in 0..16 {
        let middle = (low + high) / 2.0;
        let reached = writes(&format!("gc.spare_ratio = {:.6}\n", middle.exp()))?;
        if reached < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    fit.number("gc", "spare_ratio", ((low + high) / 2.0).exp(), source);
    Ok(())
}
