//! Results as people would rather look at them: figures (SVG, PNG) and one page that holds everything.
//!
//! [`figures`] draws a scenario's results, [`page`] puts them beside the comparison, the settings and the story of the
//! slowest requests. Both are pure functions of the results: equal results give equal bytes.

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
