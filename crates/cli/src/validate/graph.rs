//! Two distributions as a graph of characters.

use fairlift_sim::validate::Measured;

use super::{percentile, sorted_ms};

const COLUMNS: usize = 72;
const ROWS: usize = 16;
/// The slowest part of the requests is left off the graph: it would squeeze all others together.
const SHOWN_PERCENT: f64 = 99.8;

/// The cumulative distribution of response times: `o` measured, `+` simulated, `*` both.
pub fn cumulative(requests: &[Measured], simulated_ns: &[u64]) -> String {
    let measured = sorted_ms(requests.iter().map(|request| request.response_ns));
    let simulated = sorted_ms(simulated_ns.iter().copied());
    let longest = percentile(&measured, SHOWN_PERCENT).max(percentile(&simulated, SHOWN_PERCENT));
    let mut cells = vec![[' '; COLUMNS]; ROWS + 1];
    for (mark, times) in [('o', &measured), ('+', &simulated)] {
        for column in 0..COLUMNS {
            let at = longest * (column as f64 + 0.5) / COLUMNS as f64;
            let share = times.partition_point(|&ms| ms <= at) as f64 / times.len() as f64;
            let row = ROWS - (share * ROWS as f64).round() as usize;
            if let Some(cell) = cells[row].get_mut(column) {
                *cell = if *cell == ' ' { mark } else { '*' };
            }
        }
    }
    let mut out = String::new();
    for (row, line) in cells.iter().enumerate() {
        let percent = 100 - row * 100 / ROWS;
        let label = if row.is_multiple_of(4) { format!("{percent:>4} %") } else { String::new() };
        let line: String = line.iter().collect();
        out.push_str(format!("{label:>6} |{line}").trim_end());
        out.push('\n');
    }
    out.push_str(&format!("{:>6} +{}\n", "", "-".repeat(COLUMNS)));
    let middle = format!("{:.1}", longest / 2.0);
    let end = format!("{longest:.1} ms");
    let gap = COLUMNS / 2 - 1 - middle.len() / 2;
    let rest = COLUMNS.saturating_sub(gap + 1 + middle.len() + end.len());
    out.push_str(&format!("{:>6}  0{}{middle}{}{end}\n", "", " ".repeat(gap), " ".repeat(rest)));
    out.push_str(&format!(
        "{:>6}  share of requests by response time: o measured, + simulated, * both\n",
        ""
    ));
    out
}
