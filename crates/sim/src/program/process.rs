//! What a program has while it runs: system calls, a terminal to print to, and the right to fork.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::rc::Rc;

use fairlift_core::IoPrio;

use super::{Figure, ProgramMetric};
use crate::device::rng::Rng;
use crate::engine::{Sys, TaskId};
use crate::kernel::Errno;
use crate::kernel::PAGE;

/// A system call that failed, and with it the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The call.
    pub call: &'static str,
    /// On what.
    pub path: String,
    /// Why.
    pub errno: Errno,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.call, self.path, self.errno)
    }
}

impl std::error::Error for Failure {}

/// Says which call it was that failed.
pub(super) trait During<T> {
    /// The call and what it was about.
    fn during(self, call: &'static str, path: &str) -> Result<T, Failure>;
}

impl<T> During<T> for Result<T, Errno> {
    fn during(self, call: &'static str, path: &str) -> Result<T, Failure> {
        self.map_err(|errno| Failure { call, path: path.to_owned(), errno })
    }
}

/// Where a program and its children print, and where they put their figures.
#[derive(Clone, Debug, Default)]
pub struct Console(Rc<RefCell<Printed>>);

#[derive(Clone, Debug, Default)]
pub(super) struct Printed {
    pub(super) text: String,
    pub(super) figures: Vec<Figure>,
    pub(super) failure: Option<Failure>,
    pub(super) started_ns: Option<u64>,
    pub(super) ended_ns: Option<u64>,
}

/// Most text kept of one program: a loop in the background prints for as long as the run lasts.
const TEXT_BYTES_MAX: usize = 1 << 20;

impl Console {
    /// Print. Past a mebibyte nothing more is kept.
    pub fn print(&self, text: &str) {
        let printed = &mut self.0.borrow_mut();
        if printed.text.len() + text.len() <= TEXT_BYTES_MAX {
            printed.text.push_str(text);
        }
    }

    /// Set a figure; the last one counts.
    pub fn set(&self, metric: ProgramMetric, value: f64) {
        let figures = &mut self.0.borrow_mut().figures;
        match figures.iter_mut().find(|f| f.metric == metric) {
            Some(figure) => figure.value = value,
            None => figures.push(Figure { metric, value }),
        }
    }

    /// A process of the program failed; the first failure is kept.
    pub fn fail(&self, failure: Failure) {
        self.0.borrow_mut().failure.get_or_insert(failure);
    }

    pub(super) fn started(&self, at_ns: u64) {
        self.0.borrow_mut().started_ns = Some(at_ns);
    }

    pub(super) fn ended(&self, at_ns: u64) {
        self.0.borrow_mut().ended_ns = Some(at_ns);
    }

    pub(super) fn printed(&self) -> Printed {
        self.0.borrow().clone()
    }
}

/// A running process of a program.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its system calls.
    pub sys: Sys,
    /// Its terminal.
    pub out: Console,
    /// Its I/O priority, which children inherit.
    pub ioprio: IoPrio,
    /// Decides everything random in it.
    pub seed: u64,
}

impl Process {
    /// Fork: a child beside the caller, with an io context of its own and a seed that `number` decides. Wait for it with
    /// [`Process::wait`].
    pub(super) fn fork<F, P>(&self, number: u64, child: P) -> TaskId
    where
        P: FnOnce(Process) -> F,
        F: Future<Output = Result<(), Failure>> + 'static,
    {
        let (out, ioprio) = (self.out.clone(), self.ioprio);
        let seed = self.seed.wrapping_add((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.sys.spawn(ioprio, move |sys| {
            let body = child(Process { sys, out: out.clone(), ioprio, seed });
            async move {
                if let Err(failure) = body.await {
                    out.fail(failure);
                }
            }
        })
    }

    /// Wait for children to end.
    pub(super) async fn wait(&self, children: &[TaskId]) {
        for child in children {
            self.sys.join(*child).await;
        }
    }

    /// Did a process of this program fail?
    pub(super) fn failed(&self) -> bool {
        self.out.0.borrow().failure.is_some()
    }

    /// A generator of this process.
    pub(super) fn random(&self) -> Rng {
        Rng::new(self.seed)
    }

    /// Processor time the kernel takes for `calls` calls that move `bytes` in all, nanoseconds.
    pub(super) fn kernel_cpu_ns(&self, calls: u64, bytes: u64) -> u64 {
        let rules = &self.sys.machine.borrow().kernel.rules;
        calls * rules.cpu_per_io_ns + bytes.div_ceil(PAGE) * rules.cpu_per_page_ns
    }
}

/// A number below `limit`.
pub(super) fn below(random: &mut Rng, limit: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(limit)) >> 64) as u64
}
