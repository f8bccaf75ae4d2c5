//! Results as people would rather look at them: figures (SVG, PNG) and one page that holds everything.
//!
//! [`figures`] draws a report's results, [`page`] puts them below the question and its answer, beside tables, the settings and the
//! story of the slowest requests. Both are pure functions of the results: equal results give equal bytes.
//!
//! ```
//! use fairlift_sim::scenario::{parse, run_all};
//!
//! let text = "title = 'random reads'\ndevice = 'nvme'\nkernel = '6.12'\nschedulers = ['none', 'bfq']\n\
//!             jobs = \"\"\"[db]\nrw=randread\nsize=1m\ndirect=1\n\"\"\"\n";
//! let scenario = parse(text, "example.toml").map_err(|e| e.to_string())?;
//! let runs = run_all(&scenario, 1, &()).map_err(|e| e.to_string())?;
//! let report = fairlift_report::Report {
//!     scenario: &scenario,
//!     runs: runs.iter().map(|case| case.iter().map(|run| vec![run]).collect()).collect(),
//!     question: String::new(),
//!     percentile: fairlift_report::PERCENTILE,
//!     answers: Vec::new(),
//!     repeat: "fairlift compare example.toml".to_owned(),
//! };
//! let page = fairlift_report::page(&report);
//! assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
//! # Ok::<(), String>(())
//! ```

mod canvas;
mod chart;
mod curves;
mod document;
mod estimate;
mod groups;
mod job;
mod page;
mod report;
mod scatter;
mod series;
mod shares;
pub mod spread;
mod ticks;
mod unit;
mod windows;

pub use canvas::load_font;
pub use chart::DrawError;
pub use curves::{Figure, figures};
pub use document::{Block, Document, Drawing, Table};
pub use page::page;
pub use report::{PERCENTILE, Report, Told};
pub use scatter::{Dot, Scatter};
