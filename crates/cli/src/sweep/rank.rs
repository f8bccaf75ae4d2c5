//! Which settings are best under a circumstance, how sure that is, what no setting beats, and what each setting is worth.

use std::cmp::Ordering;

use super::goal::{Limit, Term};
use super::journal::Journal;
use super::plan::Plan;

/// Quantiles of Student's distribution for 95 %, two-sided, by degrees of freedom from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// A smaller part than this makes no difference in use, however sure it is.
const FELT: f64 = 0.01;
/// Most values of a range that are listed apart.
const BINS: usize = 4;

/// A figure of a point over its seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// By seed, in order.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// The mean of all seeds there are lies within this of `mean`, with 95 %; `None` of one seed.
    pub within: Option<f64>,
}

/// What came of a point under a circumstance.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The point.
    pub point: usize,
    /// The highest rung it was in.
    pub rung: usize,
    /// Why it has no figures.
    pub error: Option<String>,
    /// By how much it misses the limits, as shares of them, of its worst seed.
    pub missed: f64,
    /// A figure for each term of the goal.
    pub stats: Vec<Stat>,
}

/// What one value of a setting is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The setting.
    pub key: String,
    /// Part of the points' differences that goes with it, 0 to 1: Sobol's first index, estimated.
    pub share: f64,
    /// By value or range of values: mean of the first figure, and of how many points.
    pub values: Vec<(String, f64, usize)>,
}

impl Stat {
    fn of(values: Vec<f64>) -> Stat {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let within = half_width(&values, mean);
        Stat { values, mean, within }
    }
}

/// Half the width of the mean's 95 % interval.
fn half_width(values: &[f64], mean: f64) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|f| *f > 0)?;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let student = STUDENT.get(freedom - 1).copied().unwrap_or(1.96 + 2.4 / freedom as f64);
    Some(student * (squares / freedom as f64 / values.len() as f64).sqrt())
}

/// The results of a sweep so far.
pub struct Ranking<'a> {
    /// What was run.
    pub plan: &'a Plan,
    /// What came of it.
    pub journal: &'a Journal,
}

impl Ranking<'_> {
    /// The points under a circumstance that have results, the best first.
    pub fn scores(&self, circumstance: usize) -> Vec<Score> {
        let points = &self.plan.distinct[circumstance];
        let mut scores: Vec<Score> = points.iter().filter_map(|p| self.score(circumstance, *p)).collect();
        self.judge(&mut scores);
        scores.sort_by(|a, b| self.order(a, b));
        scores
    }

    /// What came of a point in the highest rung that it was in.
    pub fn score(&self, circumstance: usize, point: usize) -> Option<Score> {
        let rungs = self.plan.rungs.len();
        (0..rungs).rev().find_map(|rung| self.score_in(circumstance, point, rung))
    }

    /// In this rung, with the seeds of the rungs below if they ran the same; `None`: not all of it has run.
    fn score_in(&self, circumstance: usize, point: usize, rung: usize) -> Option<Score> {
        let first = if self.plan.has_runtimes() { self.plan.rungs[rung].seeds.start } else { 0 };
        let seeds = first..self.plan.rungs[rung].seeds.end;
        let numbers: Vec<u64> = seeds.map(|seed| self.plan.number(rung, circumstance, point, seed)).collect();
        let mut error = None;
        for number in &numbers {
            if !self.journal.has(*number) {
                return None;
            }
            error = error.or_else(|| self.journal.error(*number).map(str::to_owned));
        }
        let mut stats = Vec::new();
        for (at, term) in self.plan.sweep.goal.terms.iter().enumerate() {
            let values: Vec<f64> = numbers.iter().filter_map(|n| self.journal.goal_figure(*n, at)).collect();
            if values.len() < numbers.len() {
                error = error.or(Some(format!("no figure '{}'", term.column)));
            }
            stats.push(Stat::of(values));
        }
        Some(Score { point, rung, error, missed: f64::INFINITY, stats })
    }

    /// Say by how much each misses the limits.
    fn judge(&self, scores: &mut [Score]) {
        let terms = self.plan.sweep.goal.terms.iter().enumerate();
        let best: Vec<f64> =
            terms.map(|(at, term)| best_mean(term, scores.iter().map(|score| (score, at)))).collect();
        for score in scores.iter_mut().filter(|score| score.error.is_none()) {
            let terms = self.plan.sweep.goal.terms.iter().zip(score.stats.iter().zip(&best));
            score.missed = terms.map(|(term, (stat, best))| missed(term, stat, *best)).sum();
        }
    }

    /// The better one first: no errors, further up the rungs, all limits kept or less missed, better figures, and the one that came first.
    fn order(&self, a: &Score, b: &Score) -> Ordering {
        let figures = || {
            let terms = self.plan.sweep.goal.terms.iter().zip(a.stats.iter().zip(&b.stats));
            terms.filter(|(term, _)| term.limit.is_none()).map(|(term, (a, b))| match term.higher {
                true => b.mean.total_cmp(&a.mean),
                false => a.mean.total_cmp(&b.mean),
            })
        };
        (a.error.is_some().cmp(&b.error.is_some()))
            .then(b.rung.cmp(&a.rung))
            .then(a.missed.total_cmp(&b.missed))
            .then_with(|| figures().find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal))
            .then(a.point.cmp(&b.point))
    }

    /// Can it be told from `best`? Their seeds are the same: it is the differences by seed that count, of the first figure, and more than
    /// [`FELT`] of it. With one seed each this is not known.
    pub fn is_told_from(&self, best: &Score, other: &Score) -> Option<bool> {
        let figure = self.plan.sweep.goal.terms.iter().position(|term| term.limit.is_none())?;
        let (best, other) = (&best.stats[figure], &other.stats[figure]);
        let differences: Vec<f64> = best.values.iter().zip(&other.values).map(|(a, b)| a - b).collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        half_width(&differences, mean)
            .map(|within| mean.abs() > within && mean.abs() > FELT * best.mean.abs())
    }

    /// The scores that no other beats in every figure of the goal, limits among them.
    pub fn front(&self, scores: &[Score]) -> Vec<bool> {
        let terms = &self.plan.sweep.goal.terms;
        let beats = |a: &Score, b: &Score| {
            let by_term = || terms.iter().zip(a.stats.iter().zip(&b.stats));
            let better = |(term, (a, b)): (&Term, (&Stat, &Stat))| {
                if term.higher { a.mean > b.mean } else { a.mean < b.mean }
            };
            let as_good = |(term, (a, b)): (&Term, (&Stat, &Stat))| {
                if term.higher { a.mean >= b.mean } else { a.mean <= b.mean }
            };
            by_term().all(as_good) && by_term().any(better)
        };
        let whole = |score: &Score| score.error.is_none();
        scores
            .iter()
            .map(|score| whole(score) && !scores.iter().any(|other| whole(other) && beats(other, score)))
            .collect()
    }

    /// What each setting is worth for the first figure, by the rows of the first rung, which all points have.
    pub fn effects(&self, circumstance: usize) -> Vec<Effect> {
        let Some(figure) = self.plan.sweep.goal.terms.iter().position(|term| term.limit.is_none()) else {
            return Vec::new();
        };
        let points = self.plan.distinct[circumstance].iter();
        let scores = points.filter_map(|p| self.score_in(circumstance, *p, 0)).filter(|s| s.error.is_none());
        let means: Vec<(usize, f64)> = scores.map(|s| (s.point, s.stats[figure].mean)).collect();
        self.plan.sweep.vary.iter().filter_map(|axis| self.effect(&axis.key, &means)).collect()
    }

    fn effect(&self, key: &str, means: &[(usize, f64)]) -> Option<Effect> {
        let value =
            |point: usize| self.plan.points[point].iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        // Points at which the setting does not matter have no value.
        let with: Vec<(&str, f64)> = means.iter().filter_map(|(p, mean)| Some((value(*p)?, *mean))).collect();
        let bins = binned(with);
        let count: usize = bins.iter().map(|(_, values)| values.len()).sum();
        if bins.len() < 2 {
            return None;
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let all = mean(&bins.iter().flat_map(|(_, values)| values.iter().copied()).collect::<Vec<_>>());
        let square = |value: f64| (value - all) * (value - all);
        let total: f64 = bins.iter().flat_map(|(_, values)| values).map(|v| square(*v)).sum();
        let between: f64 = bins.iter().map(|(_, values)| values.len() as f64 * square(mean(values))).sum();
        let share = if total > 0.0 && count > bins.len() { between / total } else { f64::NAN };
        let values = bins.iter().map(|(name, values)| (name.clone(), mean(values), values.len())).collect();
        Some(Effect { key: key.to_owned(), share, values })
    }
}

/// By how much a figure misses its limit with its worst seed; a limit by the best of all is kept by the mean.
fn missed(term: &Term, stat: &Stat, best: f64) -> f64 {
    match term.limit {
        None => 0.0,
        Some(limit @ (Limit::AboveBest(_) | Limit::BelowBest(_))) => limit.missed_by(stat.mean, best),
        Some(limit) => stat.values.iter().map(|value| limit.missed_by(*value, best)).fold(0.0, f64::max),
    }
}

/// The best mean of a term.
fn best_mean<'a>(term: &Term, scores: impl Iterator<Item = (&'a Score, usize)>) -> f64 {
    let means = scores.filter(|(score, _)| score.error.is_none()).map(|(score, at)| score.stats[at].mean);
    match term.higher {
        true => means.fold(f64::NEG_INFINITY, f64::max),
        false => means.fold(f64::INFINITY, f64::min),
    }
}

/// Figures by value, in the values' order; numbers of which there are many by quarters.
fn binned(mut with: Vec<(&str, f64)>) -> Vec<(String, Vec<f64>)> {
    let number = |text: &str| text.parse::<f64>().ok();
    let numeric = with.iter().all(|(value, _)| number(value).is_some());
    if numeric {
        with.sort_by(|a, b| number(a.0).unwrap_or(0.0).total_cmp(&number(b.0).unwrap_or(0.0)));
    }
    let mut bins: Vec<(String, Vec<f64>)> = Vec::new();
    for (value, figure) in &with {
        match bins.iter_mut().find(|(name, _)| name == value) {
            Some((_, figures)) => figures.push(*figure),
            None => bins.push(((*value).to_owned(), vec![*figure])),
        }
    }
    if !numeric || bins.len() <= 2 * BINS {
        return bins;
    }
    let per_bin = with.len().div_ceil(BINS);
    with.chunks(per_bin)
        .map(|part| {
            let ends = (part[0].0, part[part.len() - 1].0);
            (format!("{} to {}", ends.0, ends.1), part.iter().map(|(_, figure)| *figure).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // Five values, mean 3, deviation 1.5811; 2.776 * 1.5811 / sqrt(5) = 1.963.
        let stat = Stat::of(vec![1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((stat.within.expect("five values") - 1.963).abs() < 1e-3);
        assert_eq!(Stat::of(vec![1.0]).within, None);
    }

    #[test]
    fn few_values_stand_by_themselves_and_many_by_quarters() {
        let words = ["b", "a", "b"].map(|word| (word, 1.0)).to_vec();
        assert_eq!(
            binned(words).iter().map(|(n, v)| (n.as_str(), v.len())).collect::<Vec<_>>(),
            [("b", 2), ("a", 1)]
        );
        let texts: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        let bins = binned(texts.iter().rev().map(|text| (text.as_str(), 1.0)).collect());
        assert_eq!(
            bins.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["0 to 4", "5 to 9", "10 to 14", "15 to 19"]
        );
    }
}
