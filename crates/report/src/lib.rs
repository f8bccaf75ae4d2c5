//! Results as people would rather look at them: figures (SVG, PNG) and one page that holds everything.
//!
//! [`figures`] draws a scenario's results, [`page`] puts them beside the comparison, the settings and the story of the
//! slowest requests. Both are pure functions of the results: equal results give equal bytes.
//!
//! ```
//! use fairlift_sim::scenario::{parse, run_all};
//!
//! let text = "title = 'random reads'\ndevice = 'nvme'\nkernel = '6.12'\nschedulers = ['none', 'bfq']\n\
//!             jobs = \"\"\"[db]\nrw=randread\nsize=1m\ndirect=1\n\"\"\"\n";
//! let scenario = parse(text, "example.toml").map_err(|e| e.to_string())?;
//! let runs = run_all(&scenario, 1, &()).map_err(|e| e.to_string())?;
//! let page = fairlift_report::page(&scenario, &runs, "fairlift compare example.toml").map_err(|e| e.to_string())?;
//! assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
//! # Ok::<(), String>(())
//! ```

mod chart;
mod curves;
mod document;
mod groups;
mod page;
mod scatter;
mod shares;
mod ticks;
mod unit;

pub use chart::{DrawError, load_font};
pub use curves::{Figure, figures};
pub use document::{Block, Document, Drawing, Table};
pub use page::page;
pub use scatter::{Dot, Scatter};
