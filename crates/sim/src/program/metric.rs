//! The figures programs report, and how a table shows them.

/// Which of two figures is the better one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Better {
    /// The larger one: a rate.
    Higher,
    /// The smaller one: a time.
    Lower,
    /// Neither: how much was done.
    Neither,
}

/// A figure a program reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProgramMetric {
    /// Its name, by which experiments refer to it.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The head of its column.
    pub heading: &'static str,
    /// The part of the program it is about, such as `random read`; empty: the whole.
    pub part: &'static str,
    /// Which is better.
    pub better: Better,
}

impl ProgramMetric {
    /// How much was done.
    pub(super) const fn amount(
        name: &'static str,
        heading: &'static str,
        unit: &'static str,
    ) -> ProgramMetric {
        ProgramMetric { name, unit, heading, part: "", better: Better::Neither }
    }

    /// The more the better.
    pub(super) const fn rate(name: &'static str, heading: &'static str, unit: &'static str) -> ProgramMetric {
        ProgramMetric { better: Better::Higher, ..ProgramMetric::amount(name, heading, unit) }
    }

    /// The less the better.
    pub(super) const fn time(name: &'static str, heading: &'static str, unit: &'static str) -> ProgramMetric {
        ProgramMetric { better: Better::Lower, ..ProgramMetric::amount(name, heading, unit) }
    }

    /// The same, of a part of the program.
    pub(super) const fn of(self, part: &'static str) -> ProgramMetric {
        ProgramMetric { part, ..self }
    }
}

/// A figure as it was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Which.
    pub metric: ProgramMetric,
    /// How much, in the metric's unit.
    pub value: f64,
}
