//! Files that are not finished yet, and folders made for them: they are removed when a signal ends the program.

use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How often the watcher looks whether a signal came.
const LOOK_EVERY: Duration = Duration::from_millis(20);

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static WATCH: Once = Once::new();

/// A file that is not finished, or a folder that was made for such files: it is removed when this is dropped or a signal comes, unless it
/// was [`Unfinished::keep`]t. A folder that holds anything stays.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// `path` is going to be written.
    pub fn new(path: &Path) -> Unfinished {
        WATCH.call_once(watch);
        with_all(|all| all.push(path.to_owned()));
        Unfinished(path.to_owned())
    }

    /// It is finished, or has another name now.
    pub fn keep(self) {
        forget(&self.0);
        // What its end would do is done.
        std::mem::forget(self);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&self.0);
        forget(&self.0);
    }
}

fn remove(path: &Path) {
    if std::fs::remove_file(path).is_err() {
        let _ = std::fs::remove_dir(path);
    }
}

fn forget(path: &Path) {
    with_all(|all| all.retain(|other| other != path));
}

fn with_all<R>(what: impl FnOnce(&mut Vec<PathBuf>) -> R) -> R {
    what(&mut UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Wait for a signal in a thread of its own; then remove what is not finished and end as the signal would.
fn watch() {
    let came = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without the watcher a signal ends the program as it always did.
        if signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize).is_err() {
            return;
        }
    }
    thread::spawn(move || {
        loop {
            thread::sleep(LOOK_EVERY);
            let signal = came.load(Ordering::Relaxed);
            if signal != 0 {
                // Held until the end, so that nobody finishes a file meanwhile.
                with_all::<()>(|all| {
                    // The last first: a folder was made before its files.
                    for path in all.iter().rev() {
                        remove(path);
                    }
                    exit(128 + signal as i32)
                });
            }
        }
    });
}
