//! A deterministic computer around the fairlift core: clock and events, programs, the operating system's I/O paths and
//! devices. No thread, no wall clock, no hash order; one seed decides everything.
//!
//! ```
//! use fairlift_sim::scenario::{parse, run_all};
//!
//! let text = r#"
//! title = "random reads"
//! device = "nvme"
//! kernel = "6.12"
//! schedulers = ["none", "bfq"]
//! jobs = "[db]\nrw=randread\nsize=1m\ndirect=1\n"
//! "#;
//! let scenario = parse(text, "example.toml").map_err(|e| e.to_string())?;
//! let runs = run_all(&scenario, 1, &()).map_err(|e| e.to_string())?;
//! let iops: Vec<f64> = runs[0].iter().map(|run| run.iops()).collect();
//! assert!(iops[0] > iops[1], "bfq costs more of the processor");
//! # Ok::<(), String>(())
//! ```

pub mod anatomy;
pub mod block;
pub mod device;
pub mod ends;
pub mod engine;
pub mod group;
pub mod kernel;
pub mod lab;
pub mod program;
pub mod rates;
pub mod recording;
pub mod result;
pub mod samples;
pub mod scenario;
pub mod scheduler;
pub mod stats;
pub mod validate;
