//! `sync`, `rm` and `sleep`.

use super::process::During;
use super::{Process, Program, ProgramError, ProgramMetric, Run, options};
use crate::kernel::Errno;

/// Longest sleep, nanoseconds: a day.
const SLEEP_NS_MAX: f64 = 86_400.0 * 1e9;

const SYNC_S: ProgramMetric = ProgramMetric::time("sync_s", "sync", "s");

/// `sync`: `sync(2)`, once.
#[derive(Debug)]
struct Sync;

pub(super) fn parse_sync(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    options::read("sync", &[], words)?;
    Ok(Box::new(Sync))
}

impl Program for Sync {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        vec![SYNC_S]
    }

    fn needs_files(&self) -> bool {
        false
    }

    fn run(&self, p: Process) -> Run<'_> {
        Box::pin(async move {
            let start = p.sys.now();
            p.sys.sync().await;
            p.out.set(SYNC_S, (p.sys.now() - start) as f64 / 1e9);
            Ok(())
        })
    }
}

/// `rm [-f] FILE…`: unlink each.
#[derive(Debug)]
struct Rm {
    force: bool,
    files: Vec<String>,
}

pub(super) fn parse_rm(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    let (flags, files): (Vec<_>, Vec<_>) =
        words.iter().cloned().partition(|w| w.starts_with('-') && w.len() > 1);
    let flags = options::read("rm", const { &[options::flag("-f")] }, &flags)?;
    if files.is_empty() {
        return Err(ProgramError::new("rm", "name a file").allowing("-f, FILE…"));
    }
    Ok(Box::new(Rm { force: !flags.is_empty(), files }))
}

impl Program for Rm {
    fn name(&self) -> &'static str {
        "rm"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        Vec::new()
    }

    fn run(&self, p: Process) -> Run<'_> {
        Box::pin(async move {
            for file in &self.files {
                match p.sys.unlink(file).await {
                    Err(Errno::NoEntry) if self.force => {}
                    done => done.during("cannot remove", file)?,
                }
            }
            Ok(())
        })
    }
}

/// `sleep NUMBER[smhd]`.
#[derive(Debug)]
struct Sleep {
    ns: u64,
}

pub(super) fn parse_sleep(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    let wrong = || {
        ProgramError::new("sleep", format!("'{}' is no time", options::shorten(&words.join(" "))))
            .allowing("a number of seconds from 0 to 86400, or with s, m, h, d")
    };
    let [word] = words else { return Err(wrong()) };
    let (digits, unit_s) = match word.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(digits) if word.ends_with('m') => (digits, 60.0),
        Some(digits) if word.ends_with('h') => (digits, 3600.0),
        Some(digits) if word.ends_with('d') => (digits, 86_400.0),
        Some(digits) => (digits, 1.0),
        None => (word.as_str(), 1.0),
    };
    let ns =
        digits.parse::<f64>().ok().map(|n| n * unit_s * 1e9).filter(|ns| (0.0..=SLEEP_NS_MAX).contains(ns));
    Ok(Box::new(Sleep { ns: ns.ok_or_else(wrong)? as u64 }))
}

impl Program for Sleep {
    fn name(&self) -> &'static str {
        "sleep"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        Vec::new()
    }

    fn needs_files(&self) -> bool {
        false
    }

    fn run(&self, p: Process) -> Run<'_> {
        Box::pin(async move {
            p.sys.sleep(self.ns).await;
            Ok(())
        })
    }
}
