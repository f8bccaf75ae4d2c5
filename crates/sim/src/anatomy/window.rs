//! A window of a run in which every request is known: which sectors, and when it had the device.

use std::collections::VecDeque;

use super::{Served, Window};

/// Requests in a window.
const REQUESTS: usize = 1024;

/// Keeps the last requests, and a copy of them whenever their number doubles: the last copy lies in the second half of the run,
/// however long that is.
#[derive(Debug, Default)]
pub(super) struct Windows {
    last: VecDeque<Served>,
    seen: u64,
    kept: Option<Window>,
}

impl Windows {
    /// A request is done. Does the window of the last ones have to be kept?
    pub(super) fn add(&mut self, served: Served) -> bool {
        if self.last.len() == REQUESTS {
            self.last.pop_front();
        }
        self.last.push_back(served);
        self.seen += 1;
        self.seen.is_power_of_two() && self.seen >= REQUESTS as u64
    }

    /// From when on the timeline has to be known.
    pub(super) fn oldest_ns(&self) -> u64 {
        self.last.iter().map(|served| served.issued_ns).min().unwrap_or(u64::MAX)
    }

    /// The last requests, without what the device did meanwhile.
    pub(super) fn last(&self) -> Window {
        Window {
            from_ns: self.last.front().map_or(0, |served| served.began_ns),
            to_ns: self.last.back().map_or(0, |served| served.done_ns),
            requests: self.last.iter().copied().collect(),
            spans: Vec::new(),
        }
    }

    pub(super) fn keep(&mut self, window: Window) {
        self.kept = Some(window);
    }

    /// The window that was kept; of a short run there is none.
    pub(super) fn take(&mut self) -> Option<Window> {
        self.kept.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_lies_in_the_second_half() {
        let mut windows = Windows::default();
        for at in 0..5000 {
            let served = Served {
                task: None,
                write: false,
                sector: at,
                sectors: 8,
                issued_ns: at,
                began_ns: at,
                done_ns: at + 1,
            };
            if windows.add(served) {
                windows.keep(windows.last());
            }
        }
        let window = windows.take().expect("enough requests");
        assert_eq!((window.requests.len(), window.from_ns, window.to_ns), (1024, 3072, 4096));
    }
}
