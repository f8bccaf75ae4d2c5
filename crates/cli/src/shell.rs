//! What a shell and `man` want of a command: completions and manual pages, made from the command line's own description.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::error::Failure;
use crate::output::Output;

/// The three things people come for.
pub const DOORS: &str = "\
fairlift compares block I/O schedulers, and shares a disk by weight.

Choose a scheduler
  fairlift compare job.fio --device nvme           a fio job under today's schedulers, and which to take
  fairlift replay sda.blktrace.0 --device hdd      the same for recorded I/O
  fairlift calibrate --device FILE -o mine.toml    a model of your own disk

Share a disk among tenants
  fairlift compare job.fio --device hdd --scheduler fl-cfq --set group./db.weight=300
  docs/kernel.md                                   the kernel module: weights and limits of cgroups

Write a scheduler
  docs/adding-an-elevator.md                       one file; the lab shows what it does
  fairlift reproduce                               published measurements beside ours

fairlift --help lists all commands; fairlift doctor says what of this works here.
";

/// The completion script of a shell.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "fairlift", &mut script);
    Output::Stdout.write(&String::from_utf8_lossy(&script))
}

/// A manual page for each command, into `folder`: fairlift.1, fairlift-compare.1 and so on.
pub fn manual(folder: &Path) -> Result<(), Failure> {
    let fail =
        |what: &std::io::Error| Failure::new(format!("cannot write to '{}': {what}", folder.display()));
    std::fs::create_dir_all(folder).map_err(|e| fail(&e))?;
    clap_mangen::generate_to(Arguments::command().disable_help_subcommand(true), folder).map_err(|e| fail(&e))
}
