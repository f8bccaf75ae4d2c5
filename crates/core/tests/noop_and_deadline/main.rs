//! noop and deadline: schedules computed by hand, and random streams against naive models.

mod bench;
mod deadline_direction;
mod deadline_full;
mod deadline_sync_async;
mod model;
mod noop;
mod properties;
