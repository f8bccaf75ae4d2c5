//! anticipatory: schedules computed by hand, and random streams against a naive model.

mod batches;
mod merging;
mod model;
mod properties;
mod rig;
mod waiting;
