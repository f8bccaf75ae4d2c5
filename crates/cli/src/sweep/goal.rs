//! What a sweep looks for: `p99 of db < 20 ms, then bandwidth of batch`.

use fairlift_sim::scheduler::nearest;

/// Which settings are best: those that keep all limits, and of them those with the best figures, the first figure first.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// As written.
    pub text: String,
    /// Limits and figures, in the order written.
    pub terms: Vec<Term>,
}

/// One figure, and what is wanted of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// As written.
    pub text: String,
    /// The column of the results.
    pub column: String,
    /// Whose figure: a job, program or group; empty: the run's.
    pub of: String,
    /// More is better.
    pub higher: bool,
    /// It must be below or above this, in the column's unit.
    pub limit: Option<Limit>,
}

/// What a figure must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Below this (or equal, if so).
    Below(f64, bool),
    /// Above this (or equal, if so).
    Above(f64, bool),
    /// Not above this share of the lowest of all settings.
    BelowBest(f64),
    /// Not below this share of the highest of all settings.
    AboveBest(f64),
}

/// A figure by the word for it.
struct Named {
    word: &'static str,
    column: &'static str,
    higher: bool,
    units: &'static [(&'static str, f64)],
}

const TIME: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SECONDS: &[(&str, f64)] = &[("ms", 1e-3), ("s", 1.0)];
const RATE: &[(&str, f64)] = &[
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
];
const SHARE: &[(&str, f64)] = &[("%", 0.01), ("", 1.0)];
const PLAIN: &[(&str, f64)] = &[("", 1.0)];

const NAMES: [Named; 12] = [
    named("bandwidth", "bandwidth_bytes_per_s", true, RATE),
    named("iops", "iops_per_s", true, PLAIN),
    named("mean", "mean_ns", false, TIME),
    named("p50", "p50_ns", false, TIME),
    named("p90", "p90_ns", false, TIME),
    named("p95", "p95_ns", false, TIME),
    named("p99", "p99_ns", false, TIME),
    named("p99.9", "p999_ns", false, TIME),
    named("max", "max_ns", false, TIME),
    named("share", "device_share", true, SHARE),
    named("jain", "jain_index", true, SHARE),
    named("time", "simulated_s", false, SECONDS),
];

const fn named(
    word: &'static str,
    column: &'static str,
    higher: bool,
    units: &'static [(&'static str, f64)],
) -> Named {
    Named { word, column, higher, units }
}

/// Words before a figure that name a direction of a job.
const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "sync"];
/// How the figures of a whole run are called.
pub const RUN: &str = "run";

/// A goal that cannot be read: what is wrong, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    /// One sentence.
    pub message: String,
    /// What would be right.
    pub allowed: String,
    /// The nearest right word.
    pub nearest: Option<String>,
}

impl Goal {
    /// Read terms separated by commas, each `[lowest|highest] FIGURE [of JOB] [< NUMBER UNIT]`; "then" may stand before a term.
    ///
    /// # Errors
    /// An unknown figure or unit, or a term without either.
    pub fn parse(text: &str) -> Result<Goal, GoalError> {
        let terms = text.split(',').map(term).collect::<Result<Vec<_>, _>>()?;
        if !terms.iter().any(|term| term.limit.is_none()) {
            return Err(error(
                "the goal has limits only: say what is to be best within them",
                "such as 'p99 of db < 20 ms, then bandwidth of batch'",
            ));
        }
        Ok(Goal { text: text.trim().to_owned(), terms })
    }

    /// The terms to be best in, the first one first.
    pub fn figures(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().filter(|term| term.limit.is_none())
    }
}

impl Limit {
    /// By how much a figure misses it, as a share of it; 0 if it keeps it. `best`: the best of all settings.
    pub fn missed_by(self, value: f64, best: f64) -> f64 {
        let (limit, kept, over) = match self {
            Limit::Below(limit, equal) => (limit, value < limit || (equal && value == limit), value - limit),
            Limit::Above(limit, equal) => (limit, value > limit || (equal && value == limit), limit - value),
            Limit::BelowBest(share) => (share * best, value <= share * best, value - share * best),
            Limit::AboveBest(share) => (share * best, value >= share * best, share * best - value),
        };
        match kept {
            true => 0.0,
            // A figure that is exactly at a limit it must not reach misses it, too.
            false => (over / limit.abs().max(f64::MIN_POSITIVE)).max(f64::EPSILON),
        }
    }
}

fn term(text: &str) -> Result<Term, GoalError> {
    let text = text.trim();
    let text = text.strip_prefix("then ").unwrap_or(text).trim();
    let (figure, limit) = match text.find(['<', '>']) {
        None => (text, None),
        Some(at) => (text[..at].trim(), Some(&text[at..])),
    };
    let (figure, of) = figure.split_once(" of ").map_or((figure, ""), |(figure, of)| (figure, of.trim()));
    let mut words: Vec<&str> = figure.split_whitespace().collect();
    let asked = match words.first() {
        Some(&"lowest") => Some(false),
        Some(&"highest") => Some(true),
        _ => None,
    };
    words.drain(..usize::from(asked.is_some()));
    let (direction, name) = match words[..] {
        [name] => (None, name),
        [direction, name] if DIRECTIONS.contains(&direction) => (Some(direction), name),
        _ => {
            return Err(error(
                &format!("'{text}' is not a figure"),
                "[lowest|highest] [read|write|trim|sync] FIGURE [of JOB] [< NUMBER UNIT]",
            ));
        }
    };
    let found = NAMES.iter().find(|n| n.word == name);
    let (suffix, higher, units) = match found {
        Some(found) => (found.column, asked.unwrap_or(found.higher), found.units),
        // A figure of a program or group goes by the name of its column, and only its reader knows which way is better.
        None if !of.is_empty() && (asked.is_some() || limit.is_some()) => {
            (name, asked.unwrap_or(false), PLAIN)
        }
        None => {
            let names = || NAMES.iter().map(|n| n.word);
            let mut unknown =
                error(&format!("unknown figure '{name}'"), &names().collect::<Vec<_>>().join(", "));
            unknown.nearest = nearest(name, names());
            unknown.allowed.push_str("; figures of programs and groups with lowest or highest and their owner: highest files_per_s of fs_mark");
            return Err(unknown);
        }
    };
    let limit = limit.map(|limit| parse_limit(limit, units)).transpose()?;
    let owner = if of.is_empty() { RUN } else { of };
    let column = [Some(owner), direction, Some(suffix)].into_iter().flatten().collect::<Vec<_>>().join(".");
    let higher = match limit {
        Some(Limit::Above(..) | Limit::AboveBest(_)) => true,
        Some(Limit::Below(..) | Limit::BelowBest(_)) => false,
        None => higher,
    };
    Ok(Term { text: text.to_owned(), column, of: of.to_owned(), higher, limit })
}

/// `< 20 ms`, `>= 0.5`.
fn parse_limit(text: &str, units: &[(&str, f64)]) -> Result<Limit, GoalError> {
    let (above, rest) = (text.starts_with('>'), &text[1..]);
    let (equal, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
    let rest = rest.trim();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let (digits, unit) = (&rest[..end], rest[end..].trim());
    let names = units.iter().map(|(name, _)| if name.is_empty() { "no unit" } else { name });
    let allowed = format!("a number and one of: {}, % of best", names.collect::<Vec<_>>().join(", "));
    let wrong = |what: String| error(&what, &allowed);
    let number: f64 = digits.parse().map_err(|_| wrong(format!("'{rest}' is not a limit")))?;
    if unit.split_whitespace().eq(["%", "of", "best"]) {
        let share = number / 100.0;
        return Ok(if above { Limit::AboveBest(share) } else { Limit::BelowBest(share) });
    }
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let factor = factor.ok_or_else(|| match unit {
        "" => wrong(format!("'{rest}' has no unit")),
        unit => wrong(format!("'{unit}' is not a unit of this figure")),
    })?;
    let limit = number * factor;
    Ok(if above { Limit::Above(limit, equal) } else { Limit::Below(limit, equal) })
}

fn error(message: &str, allowed: &str) -> GoalError {
    GoalError { message: message.to_owned(), allowed: allowed.to_owned(), nearest: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<Term> {
        Goal::parse(text).unwrap_or_else(|e| panic!("{}", e.message)).terms
    }

    fn message(text: &str) -> String {
        Goal::parse(text).expect_err("a wrong goal").message
    }

    #[test]
    fn limits_come_with_units_and_figures_with_a_direction() {
        let read = terms("p99 of db < 20 ms, then bandwidth of batch");
        assert_eq!((read[0].column.as_str(), read[0].limit), ("db.p99_ns", Some(Limit::Below(20e6, false))));
        assert_eq!((read[1].column.as_str(), read[1].higher), ("batch.bandwidth_bytes_per_s", true));
        let read = terms(
            "sync p99.9 of log <= 1.5 s, share of db >= 40 %, lowest mean, highest files_per_s of fs_mark",
        );
        assert_eq!(
            read.iter().map(|t| t.column.as_str()).collect::<Vec<_>>(),
            ["log.sync.p999_ns", "db.device_share", "run.mean_ns", "fs_mark.files_per_s"]
        );
        assert_eq!(read[1].limit, Some(Limit::Above(0.4, true)));
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        assert_eq!(message("p99 of db < 20, iops"), "'20' has no unit");
        assert_eq!(message("p99 of db < 20 MB/s, iops"), "'MB/s' is not a unit of this figure");
        assert_eq!(message("p99 < 20 ms"), "the goal has limits only: say what is to be best within them");
        assert_eq!(message("bandwith of db"), "unknown figure 'bandwith'");
        assert_eq!(message("iops,"), "'' is not a figure");
        assert_eq!(Goal::parse("bandwith").expect_err("a typo").nearest.as_deref(), Some("bandwidth"));
    }

    #[test]
    fn a_limit_is_missed_by_a_share_of_it() {
        let below = |equal| Limit::Below(10.0, equal);
        assert_eq!([below(false).missed_by(9.0, 1.0), below(false).missed_by(15.0, 1.0)], [0.0, 0.5]);
        assert!(below(false).missed_by(10.0, 1.0) > 0.0);
        assert_eq!(below(true).missed_by(10.0, 1.0), 0.0);
        assert_eq!(Limit::Above(10.0, false).missed_by(5.0, 1.0), 0.5);
    }

    #[test]
    fn a_limit_may_be_a_share_of_the_best() {
        let term = &terms("bandwidth of load >= 50 % of best, p99")[0];
        assert_eq!(
            (term.column.as_str(), term.limit),
            ("load.bandwidth_bytes_per_s", Some(Limit::AboveBest(0.5)))
        );
        assert_eq!(Limit::AboveBest(0.5).missed_by(25.0, 100.0), 0.5);
        assert_eq!(
            [Limit::AboveBest(0.5).missed_by(50.0, 100.0), Limit::BelowBest(2.0).missed_by(4.0, 2.0)],
            [0.0; 2]
        );
    }
}
