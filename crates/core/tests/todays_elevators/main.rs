//! none, mq-deadline and kyber: schedules computed by hand, and random streams against naive models.

#[path = "../noop_and_deadline/bench.rs"]
mod bench;
mod blind;
mod kyber;
mod model;
mod mq_deadline;
mod none;
mod properties;
mod tags;
