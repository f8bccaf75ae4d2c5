//! The runs of a sweep on this machine: as many at a time as there are threads, each written down as it ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::row::{Done, Lab};
use super::session::Session;
use crate::error::Failure;

/// Runs that wait to be written down, at most: a slow disk holds back the runs, and memory stays small.
const WAITING_MAX: usize = 256;

/// How far it is and how long it will take, on a terminal only.
pub struct Bar(ProgressBar);

impl Bar {
    /// Of the runs that are to be made; what ran before is not part of it.
    pub fn new(session: &Session) -> Bar {
        let bar =
            ProgressBar::with_draw_target(Some(session.plan.rows()), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template(
            "[{wide_bar}] {human_pos} of {human_len} runs, {per_sec}, {eta} left {msg}",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_position(session.journal.len() as u64);
        bar.reset_eta();
        Bar(bar)
    }

    /// Take it away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Make all runs that are not there yet, rung by rung.
pub fn all(session: &mut Session, lab: &Lab, threads: usize, bar: &Bar) -> Result<(), Failure> {
    loop {
        let pending = session.pending();
        if session.plan.rungs.len() > 1 {
            bar.0.set_message(format!("(rung {} of {})", session.rung + 1, session.plan.rungs.len()));
        }
        rung(session, lab, threads, &pending, bar)?;
        let last = session.rung + 1 == session.plan.rungs.len();
        if !session.advance() {
            return Ok(());
        }
        if !last {
            // Those that were left behind will never run.
            let left = session.pending().len() as u64;
            bar.0.set_length(session.journal.len() as u64 + left);
        }
    }
}

/// Make these runs.
fn rung(session: &mut Session, lab: &Lab, threads: usize, rows: &[u64], bar: &Bar) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let plan = session.plan.clone();
    let (sender, receiver) = mpsc::sync_channel::<Done>(WAITING_MAX);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, rows.len().max(1)) {
            let (sender, next, plan) = (sender.clone(), &next, &plan);
            scope.spawn(move || {
                while let Some(number) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = lab.run(*number, &plan.words(&plan.row(*number)));
                    // Nobody listens any more: the disk is full.
                    if sender.send(done).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for done in receiver {
            session.record(&done)?;
            bar.0.inc(1);
        }
        Ok(())
    })
}
