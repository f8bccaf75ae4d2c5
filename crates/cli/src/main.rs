//! `fairlift`: compare block I/O schedulers on the jobs and disks you have.
fn main() {}
